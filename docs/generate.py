"""Writes docs/operators.md, what the ONNX node tests say of every operator and opset,
docs/support, the rules of every target, and from recorded rows docs/corpus.md, what became of real
graphs, docs/placements.md, their plans, and docs/vela-agreement.md, Vela's verdicts beside ours.

Run as python docs/generate.py [--check]. With --check nothing is written and the exit status is 1
when the page is not current.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

import onnx

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.agreement.page import page as agreement_page
from bench.corpus.page import corpus_page
from bench.corpus.recorded import load_peer, load_rows
from bench.placements.page import page as placements_page
from splitter.rules.page import support_index, support_page
from splitter.rules.targets import load_target, targets
from tests.node_suite import Outcome, node_tests, run_suite

PAGE = Path(__file__).with_name("operators.md")
DYNAMIC = "operators without a static form: "
CORPUS = Path(__file__).with_name("corpus.md")
SUPPORT = Path(__file__).with_name("support")
PLACEMENTS = Path(__file__).with_name("placements.md")
AGREEMENT = Path(__file__).with_name("vela-agreement.md")

HEAD = """# Operators

What becomes of the ONNX project's own node tests ({version}) in normalize, layout, lower and the
LiteRT interpreter, in float. Written by `make docs` (docs/generate.py); do not edit.

A test passes when its outputs agree within the test's own tolerance. "With constants" means that
all inputs but the first were given as constants, as models carry weights, axes and shapes. A
refusal names the node and the reason; no test goes through with a wrong number.

What has as many rows as the data decides (NonMaxSuppression, NonZero, Compress at run time) is as
large as it can be inside a part, with a mask; only the outputs have as many rows as ONNX gives.
Unique is refused: `--cpu-runtime onnxruntime` runs it in an ONNX part, `--outputs` ends the model
before it.

In scope {inside}, of these pass {passed} ({percent:.1f} %), refused {refused}; out of scope
{outside}.
"""


def page(outcomes: Mapping[str, Outcome]) -> str:
    """The whole page in Markdown."""
    found = list(outcomes.values())
    kinds = Counter(outcome.kind for outcome in found)
    passed = kinds["pass"] + kinds["pass with constants"]
    inside = len(found) - kinds["out of scope"]
    head = HEAD.format(
        version=f"onnx {onnx.__version__}",
        inside=inside, passed=passed, percent=100 * passed / inside,
        refused=kinds["refused"], outside=kinds["out of scope"],
    )  # fmt: skip
    return "\n".join([head, *_table(found), "", *_refusals(found), "", *_scope(found), ""])


def _table(found: Iterable[Outcome]) -> list[str]:
    rows: dict[tuple[str, int], Counter[str]] = defaultdict(Counter)
    for outcome in found:
        rows[outcome.operator, outcome.opset][outcome.kind] += 1
    lines = [
        "| operator | opset | pass | with constants | refused | out of scope |",
        "|---|---|---|---|---|---|",
    ]
    for (operator, opset), kinds in sorted(rows.items()):
        shown = ("pass", "pass with constants", "refused", "out of scope")
        cells = " | ".join(str(kinds[kind] or "") for kind in shown)
        lines.append(f"| {operator} | {opset} | {cells} |")
    return lines


def _refusals(found: Iterable[Outcome]) -> list[str]:
    """One line an operator: why tests of it are refused."""
    reasons: dict[str, set[str]] = defaultdict(set)
    for outcome in found:
        if outcome.kind in ("refused", "wrong", "broken"):
            reason = outcome.reason.rpartition("): ")[2] or outcome.reason
            reasons[outcome.operator].add(_plain(reason))
    lines = ["## Refused in scope", ""]
    return lines + [f"- {name}: {'; '.join(sorted(why))}" for name, why in sorted(reasons.items())]


def _plain(reason: str) -> str:
    """The reason without names of nodes and values, each part once."""
    if reason.startswith(DYNAMIC):
        parts = reason.removeprefix(DYNAMIC).split("; ")
        reason = "; ".join(part.rpartition(": ")[2] for part in parts)
    return "; ".join(dict.fromkeys(reason.split("; ")))


def _scope(found: Iterable[Outcome]) -> list[str]:
    why = Counter(outcome.reason for outcome in found if outcome.kind == "out of scope")
    lines = ["## Out of scope", ""]
    return lines + [f"- {reason}: {count} tests" for reason, count in why.most_common()]


def support_pages() -> dict[Path, str]:
    """docs/support: the index and a page for each rule file."""
    known = [load_target(name) for name in targets()]
    pages = {SUPPORT / f"{target.name}.md": support_page(target) for target in known}
    return {SUPPORT / "README.md": support_index(known), **pages}


def main(arguments: list[str]) -> int:
    pages = {
        PAGE: page(run_suite(node_tests())),
        CORPUS: corpus_page(load_rows(), load_peer()),
        PLACEMENTS: placements_page(),
        AGREEMENT: agreement_page(),
        **support_pages(),
    }
    if "--check" in arguments:
        old = [path for path, text in pages.items() if not _is(path, text)]
        for path in old:
            print(f"not current: {path.relative_to(PAGE.parent.parent)}; run make docs")
        return int(bool(old))
    SUPPORT.mkdir(exist_ok=True)
    for path, text in pages.items():
        path.write_text(text)
    return 0


def _is(path: Path, text: str) -> bool:
    return path.exists() and path.read_text() == text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
