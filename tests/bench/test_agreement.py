"""Our verdicts beside Vela's, on a graph that is made here; the corpus is bench.agreement's."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import onnx
import onnx.parser
import pytest

from bench.agreement.case import Row, compare
from bench.agreement.fit import check, fitted, halves, our_ms, spearman
from bench.agreement.integer_files import prepared
from bench.agreement.layers import accelerator
from bench.agreement.page import summary
from bench.agreement.table import saved
from bench.corpus.cases import Case
from splitter.latency import NpuWork, npu_work_ms
from splitter.rules.targets import load_target

VELA = os.environ.get("VELA", "vela")

MIXED = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[1,8,12,12] x) => (float[1,8,12,12] y, int64[1,8,12] best)
  <float[8,8,3,3] w = {WEIGHTS}, float[8] b = {0,0,0,0,0,0,0,0}> {
  c = Conv <pads: ints = [1, 1, 1, 1]> (x, w, b)
  r = Relu (c)
  t = Transpose <perm: ints = [0, 1, 3, 2]> (r)
  p = MatMul (r, t)
  s = Softmax <axis: int = 3> (p)
  y = Add (s, r)
  best = ArgMax <axis: int = 3, keepdims: int = 0> (y)
}
"""


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    weights = ",".join(str((i % 7 - 3) / 10) for i in range(8 * 8 * 9))
    path = tmp_path_factory.mktemp("agreement") / "mixed.onnx"
    onnx.save(onnx.parser.parse_model(MIXED.replace("WEIGHTS", weights)), path)
    return Case("mixed", "models", path)


@pytest.mark.parametrize("name", ["ethos-u55", "ethos-u65", "ethos-u85"])
def test_vela_places_what_the_rules_place(name: str, case: Case) -> None:
    if shutil.which(VELA) is None:
        pytest.skip("no vela here: pip install 'onnx-npu-splitter[vela]', or VELA=its path")
    target = load_target(name)
    row = compare("mixed", prepared(case), target, VELA)
    assert (row.status, row.failed, row.differences) == ("done", "", [])
    assert row.compared > 5
    assert row.on_cpu < row.compared
    assert row.their_ms is not None and row.their_ms > 0
    assert {"convolution", "product"} <= set(row.their_classes)
    assert sum(row.their_classes.values()) == pytest.approx(row.their_ms, rel=0.01)


def test_the_accelerator_is_what_the_rule_file_s_command_says() -> None:
    command = load_target("ethos-u85").tool.command
    assert accelerator(command)[:2] == ("--accelerator-config", "ethos-u85-256")
    assert "--output-dir" not in accelerator(command)


def test_ranks_are_compared_not_values() -> None:
    assert spearman([1, 2, 3, 4], [1, 10, 100, 1000]) == pytest.approx(1)
    assert spearman([1, 2, 3, 4], [4, 3, 2, 1]) == pytest.approx(-1)


def rows(target: str, *, slow: float) -> list[dict[str, Any]]:
    """Graphs of convolutions and products, products `slow` times what the rule file says."""
    known = load_target(target)
    made = []
    for i in range(1, 13):
        works = [NpuWork(i * 10**7, False, 0, 0, "convolution")]
        works += [NpuWork(10**8 // i, False, 0, 0, "product")]
        classes = {w.kernel: npu_work_ms(w, known) for w in works}
        classes["product"] *= slow
        row = Row(
            f"graph{i}",
            target,
            compared=2,
            their_ms=sum(classes.values()),
            their_classes=classes,
            works=[("CONV_2D", *_listed(works[0])), ("BATCH_MATMUL", *_listed(works[1]))],
        )
        made.append({**json.loads(json.dumps(row.__dict__)), "kind": "models"})
    return made


def _listed(work: NpuWork) -> tuple[object, ...]:
    return (work.macs, work.depthwise, work.elements, work.dram, work.kernel)


def test_a_kernel_that_is_slow_to_vela_is_slow_after_the_fit() -> None:
    target = load_target("ethos-u85")
    found = rows("ethos-u85", slow=20)
    new = fitted(found, target)
    before = npu_work_ms(NpuWork(10**9, False, 0, 0, "product"), target)
    after = npu_work_ms(NpuWork(10**9, False, 0, 0, "product"), new)
    assert after == pytest.approx(20 * before, rel=0.2)
    assert check(found, new).error < 0.1 < check(found, target).error
    assert halves(found, target).error < 0.2
    assert our_ms(found[0], new) == pytest.approx(found[0]["their_ms"], rel=0.2)


def test_the_page_counts_differences_by_their_cause() -> None:
    found = rows("ethos-u85", slow=1)
    found[0]["differences"] = [
        {
            "code": "ADD",
            "tensor": "t",
            "ours": True,
            "ours_why": "",
            "theirs_why": "Operation has\n shapeless tensor",
        }
    ]
    text = "\n".join(summary(saved(found), "ethos-u85"))
    assert "95.83% of 24 operators equal, in 12 of 12 graphs" in text
    assert "1 ADD: we take it, Vela does not: Operation has shapeless tensor" in text
    assert "times of 12 models: Spearman 1.000, median difference" in text


def test_a_file_that_is_no_vela_is_one_message(case: Case, tmp_path: Path) -> None:
    row = compare("mixed", prepared(case), load_target("ethos-u85"), str(tmp_path / "none"))
    assert row.status == "compiler"
    assert row.reason
