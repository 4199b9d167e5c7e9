"""A rule file is learned from what a compiler does, whatever our file says.

The compiler here is a rule file itself: it reads the TFLite file it is given and takes what its
own rules take. Vela's own answers are in test_vela.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from splitter.compilers import Placement
from splitter.diagnostics import SplitterError
from splitter.probe import probe
from splitter.probe.ask import Asker
from splitter.probe.learn import SOURCE, learn
from splitter.probe.questions import Question
from splitter.probe.rewrite import rule_file
from splitter.rules.schema import Target
from splitter.rules.support import check_lite
from splitter.rules.targets import load_target, targets
from splitter.tflite.read import read

RULES = Path(__file__).parents[2] / "rules"


@dataclass
class Keeps:
    """A compiler that keeps the rules of a target, and does not survive one operator."""

    target: Target
    crashes_on: str = ""
    files: int = 0
    command: Sequence[str] = ("keeps",)
    name: str = "keeps"

    def version(self) -> str:
        return "1.0"

    def place(self, model: bytes) -> Placement:
        self.files += 1
        try:
            graph = read(model, where="given")
        except SplitterError as error:
            return Placement(failed=error.what)
        if any(op.code == self.crashes_on for op in graph.operators):
            return Placement(failed="ended by signal 11")
        broken = check_lite(graph, self.target, trust="inferred")
        cpu = {name: reasons[0].rule for op, reasons in broken for name in op.outputs}
        return Placement(cpu=frozenset(cpu), why=cpu)


def edited(folder: Path, base: str, *changes: tuple[str, str]) -> Target:
    text = (RULES / f"{base}.toml").read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    path = folder / "other.toml"
    path.write_text(text)
    return load_target(str(path))


def section(code: str, limits: str, *, support: str = "yes") -> str:
    return (
        f'[operators.{code}]\nsupport = "{support}"\nsource = "S1"\nconfidence = "proxy"\n{limits}'
    )


def without(text: str, code: str) -> str:
    """The text of an operator in imx95.toml up to the next one."""
    start = text.index(f"[operators.{code}]")
    return text[start : text.index("\n[", start + 1)]


@pytest.mark.parametrize("name", targets())
def test_a_target_written_as_a_rule_file_reads_back_the_same(name: str, tmp_path: Path) -> None:
    target = load_target(name)
    path = tmp_path / "again.toml"
    path.write_text(rule_file(target, heading=("a heading",)))
    again = load_target(str(path))
    same = again.model_copy(update={"file": target.file, "sha256": target.sha256})
    assert same == target


def test_a_compiler_that_keeps_the_file_differs_nowhere_and_its_rules_are_probed() -> None:
    target = load_target("imx95")
    only = ("ADD", "SOFTMAX", "TRANSPOSE_CONV", "SIN", "RESIZE_BILINEAR", "CONCATENATION")
    found = learn(target, Asker(Keeps(target)), only)
    assert found.differences == ()
    assert found.operators == len(only)
    for code in only:
        rule = found.target.operators[code]
        assert (rule.source, rule.confidence) == (SOURCE, "probed")
    assert found.target.operators["SIN"].support == "no"
    assert found.target.operators["MUL"] == target.operators["MUL"]


def test_limits_that_the_compiler_sets_otherwise_are_found_where_they_are(tmp_path: Path) -> None:
    text = (RULES / "imx95.toml").read_text()
    other = edited(
        tmp_path,
        "imx95",
        (without(text, "SOFTMAX"), section("SOFTMAX", SOFTMAX)),
        (without(text, "TRANSPOSE_CONV"), section("TRANSPOSE_CONV", TRANSPOSE_CONV)),
    )
    found = learn(load_target("imx95"), Asker(Keeps(other)), ("SOFTMAX", "TRANSPOSE_CONV"))
    learned = {a: limit for a, limit in found.target.limits("SOFTMAX") if a.startswith("SOFTMAX")}
    assert learned["SOFTMAX.rows"].max == 1000
    strides = [one for a, one in found.target.limits("TRANSPOSE_CONV") if a.endswith(".stride_h")]
    assert [limit.max for limit in strides] == [5]
    places = {one.place for one in found.differences}
    assert places == {"SOFTMAX.rows", "TRANSPOSE_CONV.stride_h"}
    tighter = next(one for one in found.differences if one.place == "SOFTMAX.rows")
    assert (tighter.compiler, tighter.why) == ("4096 refused", "SOFTMAX.rows")
    assert "1000" in tighter.learned


SOFTMAX = """limits = [
  { fact = "rows", max = 1000, source = "S1", confidence = "proxy" },
  { fact = "channels", max = 2040, source = "S1", confidence = "proxy" },
]
"""
TRANSPOSE_CONV = """limits = [
  { fact = "weights_constant", equals = true, source = "S1", confidence = "proxy" },
  { fact = "weights_dtype", equals = "int8", source = "S1", confidence = "proxy" },
  { fact = "bias_constant", equals = true, source = "S1", confidence = "proxy" },
  { fact = "bias_dtype", in = ["int32", "none"], source = "S1", confidence = "proxy" },
  { fact = "kernel_h", max = 4096, source = "S1", confidence = "proxy" },
  { fact = "kernel_w", max = 4096, source = "S1", confidence = "proxy" },
  { fact = "stride_h", max = 5, source = "S1", confidence = "proxy" },
  { fact = "stride_w", max = 2, source = "S1", confidence = "proxy" },
  { fact = "stride_within_kernel", equals = true, source = "S1", confidence = "proxy" },
  { fact = "kernel_volume_16", max = 65535, source = "S1", confidence = "proxy" },
]
"""


def test_operators_that_the_file_has_otherwise_are_taken_or_refused_as_they_are(
    tmp_path: Path,
) -> None:
    text = (RULES / "imx95.toml").read_text()
    limits = 'limits = [{ fact = "rank", max = 4, source = "S1", confidence = "proxy" }]\n'
    other = edited(
        tmp_path,
        "imx95",
        (without(text, "LOGISTIC"), section("LOGISTIC", "", support="no")),
        (without(text, "TANH"), f"{section('SIN', limits)}\n{section('TANH', '')}"),
    )
    found = learn(load_target("imx95"), Asker(Keeps(other)), ("LOGISTIC", "SIN", "TANH"))
    told = {one.place: (one.file, one.compiler) for one in found.differences}
    assert set(told) == {"LOGISTIC", "SIN"}
    assert told["SIN"] == ("not listed", "taken")
    assert found.target.operators["LOGISTIC"].support == "no"
    ranks = [limit for limit in found.target.operators["SIN"].limits if limit.fact == "rank"]
    assert [limit.among for limit in ranks] == [(1, 2, 3, 4)]


def test_an_operator_that_the_compiler_does_not_survive_is_left_and_the_others_are_not() -> None:
    target = load_target("imx95")
    only = ("ABS", "EXP", "LOG", "LOGISTIC", "TANH")
    found = learn(target, Asker(Keeps(target, crashes_on="LOG")), only)
    assert found.differences == ()
    assert found.untried == ("LOG: the compiler fails: ended by signal 11",)
    assert found.target.operators["LOG"] == target.operators["LOG"]
    assert found.target.operators["EXP"].confidence == "probed"


def test_many_specimens_go_in_one_file_and_nothing_is_asked_twice() -> None:
    compiler = Keeps(load_target("imx95"))
    asker = Asker(compiler)
    questions = [Question(code) for code in ("ABS", "EXP", "LOG", "TANH", "SIN")]
    asker.ask(questions)
    asker.ask(questions)
    assert compiler.files == 1
    assert [asker.answers[one].taken for one in questions] == [True] * 4 + [False]


def test_what_cannot_be_asked_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    out = tmp_path / "out.toml"
    for name, command, only, words in (
        ("coral", "edgetpu_compiler", (), "cannot be asked from here"),
        ("rk3588", "rknn", (), "cannot be asked from here"),
        ("imx95", "no-such-program", (), "no program"),
        ("imx95", "", (), "give the compiler's command"),
        ("imx95", "'", (), "not a command line"),
        ("imx95", "true", ("SOFTMAXX",), "cannot try SOFTMAXX"),
        ("imx95", "true", (), "does not print a version"),
    ):
        with pytest.raises(SplitterError, match=words):
            probe(name, command, out, only=only)
    assert not out.exists()
    out.write_text("mine")
    with pytest.raises(SplitterError, match="not one that probe wrote"):
        probe("imx95", "true", out)
    assert out.read_text() == "mine"


FAILING = "#!/bin/sh\n[ $1 = --version ] && echo 5.2.0 && exit 0\necho out of cheese; exit 3\n"


def test_a_compiler_that_fails_on_everything_teaches_nothing(tmp_path: Path) -> None:
    compiler, out = tmp_path / "vela", tmp_path / "learned.toml"
    compiler.write_text(FAILING)
    compiler.chmod(0o755)
    with pytest.raises(SplitterError, match="fails even on ADD, CONV_2D, RELU: out of cheese"):
        probe("ethos-u85", str(compiler), out, only=["EXP"])
    assert not out.exists()


def test_a_folder_is_no_place_for_a_rule_file(tmp_path: Path) -> None:
    (tmp_path / "folder.toml").mkdir()
    with pytest.raises(SplitterError, match="is a folder"):
        probe("ethos-u85", "vela", tmp_path / "folder.toml")
