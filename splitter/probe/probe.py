"""Learn a rule file from a compiler, from the command line to the file.

Decides what the file says about itself: name, version, command.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from splitter.compilers import Compiler
from splitter.compilers.choose import compiler_of
from splitter.diagnostics import SplitterError, nearest
from splitter.probe.ask import Asker, Step
from splitter.probe.learn import SOURCE, Learned, learn
from splitter.probe.questions import Question, codes
from splitter.probe.rewrite import rule_file
from splitter.rules.schema import Limit, OperatorRule, Target, in_versions
from splitter.rules.targets import load_target

HEADING = "Learned by split rules probe"

PLAINEST = ("ADD", "CONV_2D", "RELU")
"""Tried alone before all else: a compiler that survives none of them cannot be asked."""


@dataclass(frozen=True)
class Probed:
    """What was learned, from which file and compiler, by how many specimens, written where."""

    learned: Learned
    target: Target
    compiler: str
    version: str
    specimens: int
    out: Path

    def to_text(self) -> str:
        found = self.learned
        lines = [
            f"{self.compiler} {self.version}, {self.specimens} specimen(s): {found.operators}"
            f" operator(s) and {found.limits} limit(s) of {self.target.file} tried",
            f"written: {self.out}; use it with --target {self.out}",
        ]
        if self.version not in self.target.tool.versions:
            versions = ", ".join(self.target.tool.versions)
            lines.append(f"the file knows {versions}, and was read for {self.target.version}")
        lines += ["", f"{len(found.differences)} differences from {self.target.file}"]
        for one in found.differences:
            lines.append(f"  {one.place}: the file says {one.file}; {one.compiler}")
            lines.append(f"    now: {one.learned}{f' ({_line(one.why)})' if one.why else ''}")
        if found.untried:
            lines += ["", f"{len(found.untried)} rules not tried, left as they are"]
            lines += [f"  {one}" for one in found.untried]
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        return {
            "target": self.target.name,
            "file": self.target.file,
            "compiler": self.compiler,
            "version": self.version,
            "specimens": self.specimens,
            "operators": self.learned.operators,
            "limits": self.learned.limits,
            "differences": [asdict(one) for one in self.learned.differences],
            "untried": list(self.learned.untried),
            "written": str(self.out),
        }


def _line(text: str) -> str:
    return " ".join(text.split())


def probe(
    name: str,
    command: str,
    out: Path,
    *,
    only: Sequence[str] = (),
    step: Step = lambda done, total: None,
) -> Probed:
    """Ask the target's compiler, called by `command`, and write what it takes to `out`.

    only: these operators; the others stay as the file has them. Raises SplitterError for a target
    whose compiler cannot be asked, a command that does not run, and a file that is not ours to
    overwrite.
    """
    target = load_target(name)
    operators = _operators(target, only)
    compiler = compiler_of(target, command)
    _refuse_foreign(out)
    version = compiler.version()
    here = target.at(version) if version in target.tool.versions else target
    asker = Asker(compiler, step)
    _refuse_mute(asker)
    found = learn(here, asker, operators)
    learned = _described(found.target, target, compiler, version)
    heading = (
        f"{HEADING} from {compiler.name} {version}.",
        f"What could not be tried is as in {target.file}, revision {target.revision}.",
    )
    _write(out, rule_file(learned, heading=heading))
    return Probed(found, target, compiler.name, version, len(asker.answers), out)


def _operators(target: Target, names: Sequence[str]) -> tuple[str, ...]:
    known = {code.casefold(): code for code in codes(target)}
    wrong = [name for name in names if name.casefold() not in known]
    if wrong:
        near = "; ".join(nearest(name.upper(), known.values()) for name in wrong)
        raise SplitterError(f"cannot try {', '.join(wrong)}", where="--only", hint=near)
    return tuple(dict.fromkeys(known[name.casefold()] for name in names))


def _described(learned: Target, target: Target, compiler: Compiler, version: str) -> Target:
    words = " ".join(compiler.command)
    told = f"{compiler.name} {version}, asked by split rules probe: {words}"
    tool = target.tool.model_copy(update={"versions": (version,), "assumed": version})
    limits = _settled_limits(learned, learned.every.limits)
    every = learned.every.model_copy(update={"limits": limits})
    operators = {code: _settled(learned, rule) for code, rule in learned.operators.items()}
    sources = {**target.sources, SOURCE: told}
    return learned.model_copy(
        update={"tool": tool, "every": every, "operators": operators, "sources": sources}
    )


def _settled(target: Target, rule: OperatorRule) -> OperatorRule:
    """The rule as it is at the one version that the file is about."""
    here = in_versions(target.version, since=rule.since, until=rule.until)
    support = "no" if rule.support == "yes" and not here else rule.support
    limits = _settled_limits(target, rule.limits) if support == "yes" else ()
    update = {"support": support, "limits": limits, "since": "", "until": ""}
    return rule.model_copy(update=update)


def _settled_limits(target: Target, limits: Sequence[Limit]) -> tuple[Limit, ...]:
    return tuple(
        limit.model_copy(update={"since": "", "until": ""})
        for limit in limits
        if in_versions(target.version, since=limit.since, until=limit.until)
    )


def _refuse_mute(asker: Asker) -> None:
    """A compiler that fails whatever it is given says nothing about the NPU."""
    for code in PLAINEST:
        asker.ask([Question(code)])
        if not asker.answers[Question(code)].failed:
            return
    raise SplitterError(
        f"it fails even on {', '.join(PLAINEST)}: {asker.answers[Question(PLAINEST[0])].why}",
        where=f"--compiler {' '.join(asker.compiler.command)}",
        hint="convert a model of your own with this command first; it may need more options",
    )


def _refuse_foreign(out: Path) -> None:
    if out.suffix != ".toml":
        raise SplitterError("a rule file ends in .toml", where=str(out))
    if not out.parent.is_dir():
        raise SplitterError("there is no such folder", where=str(out.parent))
    if out.is_dir():
        raise SplitterError("is a folder", where=str(out), hint="choose another -o")
    if not os.access(out.parent, os.W_OK):
        raise SplitterError("nothing can be written there", where=str(out.parent))
    if out.exists() and not out.read_text(errors="replace").startswith(f"# {HEADING}"):
        raise SplitterError("this file is not one that probe wrote", where=str(out), hint="-o FILE")


def _write(out: Path, text: str) -> None:
    """The whole file or nothing, and only one that reads."""
    try:
        with tempfile.TemporaryDirectory(dir=out.parent, prefix=".probe-") as folder:
            aside = Path(folder) / out.name
            aside.write_text(text)
            load_target(str(aside))
            os.replace(aside, out)
    except OSError as error:
        raise SplitterError(f"cannot write it: {error.strerror}", where=str(out)) from error
