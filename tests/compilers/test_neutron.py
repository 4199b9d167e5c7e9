"""neutron-converter, called by its documented command line.

The program here stands for the converter: it takes its documented options and writes the form of
its answer, reconstructed from the documentation and from what users quote; none of it was recorded
from the converter, which is under licence and was never run here.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from splitter.compilers.choose import compiler_of
from splitter.compilers.neutron import Neutron
from splitter.diagnostics import SplitterError
from splitter.probe import probe
from splitter.rules.targets import load_target
from splitter.specimens import specimen
from splitter.tflite.write import write

STAND_IN = """#!{python}
import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, {root!r})
if sys.argv[1:] == ["--version"]:
    print("neutron-converter 3.2.2+0X6d41ac8b")
    sys.exit()
options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
if options["--target"] != "imx95":
    sys.exit("unknown target")

from splitter.tflite.read import read
from splitter.tflite.write import write

graph = read(Path(options["--input"]).read_bytes(), where="input")
taken = [op for op in graph.operators if op.code in ("TANH", "LOGISTIC")]
operators = tuple(
    replace(op, code="CUSTOM:NeutronGraph", options={{}}) if op in taken else op
    for op in graph.operators
)
Path(options["--output"]).write_bytes(write(replace(graph, operators=operators)))
print("Number of operators after optimize =", len(operators))
print("Number of Neutron graphs =", len(taken))
counts = len(taken), len(operators)
print("Operator conversion ratio = %d / %d = %f" % (*counts, counts[0] / counts[1]))
"""


@pytest.fixture(scope="module")
def converter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sdk") / "neutron-converter"
    root = Path(__file__).parents[2]
    path.write_text(STAND_IN.format(python=sys.executable, root=str(root)))
    path.chmod(0o755)
    return path


def test_the_target_of_the_rule_file_is_asked_for_unless_the_command_has_one(
    converter: Path,
) -> None:
    target = load_target("imx95")
    assert compiler_of(target, str(converter)) == Neutron((str(converter), "--target", "imx95"))
    given = compiler_of(target, f"{converter} --target mcxn94x")
    assert given == Neutron((str(converter), "--target", "mcxn94x"))


def test_the_version_is_read_without_its_build_hash(converter: Path) -> None:
    assert Neutron((str(converter),)).version() == "3.2.2"


def test_what_became_a_neutron_graph_is_taken_and_the_ratio_is_the_logs(converter: Path) -> None:
    command = Neutron((str(converter), "--target", "imx95"))
    placed = command.place(write(specimen("TANH", {})))
    assert (placed.takes(["y"]), placed.npu_nodes, placed.ratio) == (True, 1, (1, 1))
    left = command.place(write(specimen("SIN", {})))
    assert (left.takes(["y"]), left.npu_nodes, left.ratio) == (False, 0, (0, 1))


def test_a_converter_that_refuses_the_file_takes_nothing_and_its_words_are_kept(
    converter: Path,
) -> None:
    placed = Neutron((str(converter), "--target", "imx94")).place(write(specimen("TANH", {})))
    assert placed.failed == "unknown target"
    assert not placed.takes(["y"])


def test_a_rule_file_is_learned_from_it(converter: Path, tmp_path: Path) -> None:
    out = tmp_path / "neutron.toml"
    done = probe("imx95", str(converter), out, only=("TANH", "EXP", "SIN"))
    assert [(one.place, one.compiler) for one in done.learned.differences] == [
        ("EXP", "refused in its plain form")
    ]
    learned = load_target(str(out))
    assert (learned.version, learned.operators["EXP"].support) == ("3.2.2", "no")
    with pytest.raises(SplitterError, match="no such folder"):
        probe("imx95", str(converter), tmp_path / "none" / "x.toml")
