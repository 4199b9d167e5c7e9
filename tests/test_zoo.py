"""Small graphs for the faults that users of converters report, with ONNX Runtime's outputs.

Each goes through the whole job in a process of this test: right in float, close in integers, the
parts equal to the whole, no float left; or refused with the reason.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.corpus.cases import Case, find
from bench.corpus.measure import measure
from bench.corpus.verdict import FLOAT_LIMIT, INTEGER_LIMIT

ZOO = Path(__file__).parent / "data" / "zoo"
REFUSED: dict[str, str] = {}
"""What cannot be done, with a word of the reason."""


@pytest.mark.parametrize("case", find(ZOO, "zoo"), ids=lambda case: case.name)
@pytest.mark.parametrize("target", ["imx95", "cpu"])
def test_a_graph_of_the_zoo_is_right_or_refused(case: Case, target: str, tmp_path: Path) -> None:
    row = measure(case, target, (), tmp_path)
    if case.name in REFUSED:
        assert row.status == "refused" and REFUSED[case.name] in row.reason
        return
    assert row.status == "done", f"at {row.stage}: {row.reason}"
    assert all(error <= FLOAT_LIMIT for error in row.float_error.values()), row.float_error
    assert row.split is not False and not row.floats
    same_sets = row.decisions and all(agree == total for agree, total in row.decisions.values())
    fine = all(error <= INTEGER_LIMIT for error in row.integer_error.values())
    assert fine or same_sets, row.integer_error
