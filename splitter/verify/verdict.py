"""One line that says whether the result may be trusted, from gates that are stated.

Decides the gates and what missing one means: a gate failed is NOT trusted; a doubt (few samples,
the same samples as for calibration) is a reservation. A share under its limit fails when its 95 %
interval is under it too; else there are too few samples to say so, which is a doubt. Never by
cosine.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Literal

from splitter.verify.behind import BehindError
from splitter.verify.classification import Answers
from splitter.verify.compare import Findings, StageErrors
from splitter.verify.decisions import Decisions, DetectionDecisions
from splitter.verify.rows import RowsFound
from splitter.verify.statistics import Share, share_of
from splitter.verify.tensors import TensorError

Level = Literal["trusted", "trusted with reservations", "NOT trusted"]
Weight = Literal["gate", "doubt"]


@dataclass(frozen=True, slots=True)
class Gates:
    """The limits, all shares 0..1.

    conversion: relative RMS of a float output over which there is a doubt, and over which it fails.
    found, extra: detections over score 0.5 of the float model found again; beyond them.
    ap50_drop, ap_drop: COCO precision lost. agreement: top-1 answers unchanged.
    p_value: McNemar, under which a loss of accuracy is no chance.
    tensor: relative RMS of an output when no decision can be read: doubt, and fail.
    gain: how far the slope may be from 1 when no decision can be read.
    few, many: decisions under which a share says little, from which on lost precision is no chance.
    far: a loss of so many times its limit fails however few the decisions are.
    board: relative RMS of recorded outputs.
    """

    conversion: tuple[float, float] = (1e-4, 1e-2)
    found: float = 0.97
    extra: float = 0.02
    ap50_drop: float = 0.005
    ap_drop: float = 0.02
    agreement: float = 0.97
    p_value: float = 0.01
    tensor: tuple[float, float] = (0.1, 0.3)
    gain: float = 0.1
    few: int = 30
    many: int = 300
    far: float = 3.0
    board: float = 0.02


GATES = Gates()


@dataclass(frozen=True, slots=True)
class Check:
    """One gate: what was measured, what it may be. A failed "doubt" is a reservation only."""

    name: str
    measured: str
    limit: str
    passed: bool
    weight: Weight = "gate"


@dataclass(frozen=True)
class Verdict:
    """level and line for people; `passed` when no gate failed (the exit status)."""

    level: Level
    line: str
    passed: bool
    checks: tuple[Check, ...]


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What the figures rest on. shared: verified on samples that calibration has seen."""

    random: bool = False
    shared: bool = False


def decide(findings: Findings, circumstances: Circumstances, *, gates: Gates = GATES) -> Verdict:
    """The verdict; the same findings always give the same line."""
    checks = tuple(_checks(findings, circumstances, gates))
    failed = [check for check in checks if not check.passed and check.weight == "gate"]
    doubts = [check for check in checks if not check.passed and check.weight == "doubt"]
    facts = "; ".join(_facts(findings))
    if circumstances.random:
        line = "NOT trusted: calibrated with random numbers, so no figure here means anything"
        return Verdict("NOT trusted", line, not failed, checks)
    if failed:
        reasons = "; ".join(f"{c.name} {c.measured} (gate: {c.limit})" for c in failed)
        line = f"NOT trusted: {reasons}{_hint(findings)}"
        return Verdict("NOT trusted", line, False, checks)
    if doubts:
        reasons = "; ".join(_doubt(check) for check in doubts)
        line = f"Trusted with reservations: {facts}. But: {reasons}"
        return Verdict("trusted with reservations", line, True, checks)
    return Verdict("trusted", f"Trusted: {facts}", True, checks)


def _hint(findings: Findings) -> str:
    """What else may be behind a failure."""
    decisions = findings.decisions
    if isinstance(decisions, DetectionDecisions) and decisions.agreement.crowded:
        same = decisions.agreement
        return (
            f". The float model takes {same.reference} of {same.rows} queries for objects, as one "
            "with untrained weights does: then these decisions mean nothing"
        )
    return ""


def _doubt(check: Check) -> str:
    limit = f" ({check.limit} wanted)" if check.limit[:2] == "at" else ""
    return f"{check.name} {check.measured}{limit}"


def _checks(findings: Findings, circumstances: Circumstances, gates: Gates) -> Iterator[Check]:
    conversion = findings.stage("conversion")
    if conversion:
        yield from _conversion(conversion, gates)
    split = findings.stage("split")
    if split:
        worst = min((t.equal_share for t in split.tensors), default=1.0)
        measured = "equal bit for bit" if worst == 1.0 else f"{100 * worst:.3f} % of values equal"
        yield Check("parts against the whole:", measured, "bit for bit", worst == 1.0)
    quantization = findings.stage("quantization")
    if quantization:
        yield from _sanity(quantization)
    yield from _decision_checks(findings, gates)
    for output in findings.behind:
        yield from _behind(output, gates)
    board = findings.stage("board")
    if board:
        yield from _board(board, findings.board, gates)
    if circumstances.random:
        yield Check("calibration", "random numbers", "real samples", False, "doubt")
    if circumstances.shared:
        yield Check("verified", "on samples that calibration has seen", "others", False, "doubt")


def _conversion(stage: StageErrors, gates: Gates) -> Iterator[Check]:
    good, bad = gates.conversion
    for name in (tensor.name for tensor in stage.tensors):
        error, rows = stage.unordered(name).relative_rms, stage.unordered(name).rows
        if rows is not None and rows.alike < rows.runs:
            yield Check(f"float TFLite, {name}:", f"{rows}", "as many rows", False)
        if rows is not None and rows.reordered and error > good:
            yield Check(f"float TFLite, {name}:", "the same rows in another order", "these", True)
            continue
        measured = f"{error:.1e} relative RMS"
        weight: Weight = "gate" if not error <= bad else "doubt"
        limit = f"at most {good:.0e}" if weight == "doubt" else f"at most {bad:.0e}"
        yield Check(f"float TFLite, {name}:", measured, limit, error <= good, weight)


def _behind(output: BehindError, gates: Gates) -> Iterator[Check]:
    """The cut must be right; how near integers before it come is a doubt at most: no bits, no
    decisions that are known, and rows that come and go with a threshold."""
    good, bad = gates.conversion
    weight: Weight = "gate" if not output.cut <= bad else "doubt"
    limit = f"at most {good if weight == 'doubt' else bad:.0e}"
    name = f"ONNX part, {output.name}:"
    yield Check(name, f"{output.cut:.1e} relative RMS", limit, output.cut <= good, weight)
    error, most = output.relative_rms, gates.tensor[0]
    if error is not None:
        measured = f"{error:.3g} relative RMS after integers"
        yield Check(f"output {output.name}:", measured, f"at most {most:g}", error <= most, "doubt")
    if output.alike < output.runs:
        rows = f"{output.rows[1]} rows after integers, {output.rows[0]} in float"
        yield Check(f"output {output.name}:", rows, "as many", False, "doubt")


def _sanity(stage: StageErrors) -> Iterator[Check]:
    for tensor in stage.tensors:
        if tensor.constant:
            yield Check(f"output {tensor.name}", "has one value everywhere", "varies", False)
        if tensor.not_finite:
            measured = f"holds {tensor.not_finite} values that are NaN or infinite"
            yield Check(f"output {tensor.name}", measured, "finite", False)


def _decision_checks(findings: Findings, gates: Gates) -> Iterator[Check]:
    decisions = findings.decisions
    if isinstance(decisions, DetectionDecisions) and decisions.agreement.reference:
        yield from _detections(decisions, gates)
    elif isinstance(decisions, Answers) and decisions.flips.total:
        yield from _answers(decisions, gates)
    else:
        quantization = findings.stage("quantization")
        handed = findings.handed
        yield from _tensors(quantization, gates, handed) if quantization else ()
        known = "no float detection over 0.5" if decisions else "none known of these outputs"
        yield Check("decisions:", known, "some to compare", False, "doubt")


def _detections(decisions: DetectionDecisions, gates: Gates) -> Iterator[Check]:
    same = decisions.agreement
    yield _at_least("detections found again", decisions.found, gates.found)
    yield _at_most("extra detections", same.extra, same.reference, gates.extra)
    if same.reference < gates.few:
        measured = f"{same.reference} in {same.images} images"
        yield Check("only few detections:", measured, f"at least {gates.few}", False, "doubt")
    if decisions.annotated and decisions.reference and decisions.candidate:
        before, after = decisions.reference, decisions.candidate
        many = same.reference >= gates.many
        yield _lost("mAP50 lost", before.ap50 - after.ap50, gates.ap50_drop, gates, many=many)
        yield _lost("mAP50-95 lost", before.ap - after.ap, gates.ap_drop, gates, many=many)


def _answers(answers: Answers, gates: Gates) -> Iterator[Check]:
    flips = answers.flips
    kept = share_of(flips.total - flips.count, flips.total)
    yield _at_least("answers unchanged", kept, gates.agreement)
    if answers.flips.total < gates.few:
        measured = f"{answers.flips.total}"
        yield Check("only few answers:", measured, f"at least {gates.few}", False, "doubt")
    accuracy = answers.accuracy
    if accuracy:
        worse = accuracy.lost > accuracy.gained and accuracy.p_value < gates.p_value
        measured = (
            f"{accuracy.lost} lost, {accuracy.gained} gained, McNemar p {accuracy.p_value:.3g}"
        )
        yield Check("right answers:", measured, f"p at least {gates.p_value:g}", not worse)


def _tensors(stage: StageErrors, gates: Gates, handed: Collection[str] = ()) -> Iterator[Check]:
    """handed: integers, and rows in the order of a ranking, that the ONNX part alone reads. How far
    an index is off says nothing of what is read there, and rows that change places are no error:
    equal ones are counted, and a doubt at most; what the part makes of them is judged.
    """
    good, bad = gates.tensor
    for tensor in (stage.unordered(tensor.name) for tensor in stage.tensors):
        if tensor.rows is not None:
            yield from _rows(tensor.name, tensor.rows, gates)
            continue
        if tensor.name in handed:
            measured = f"{100 * tensor.equal_share:.1f} % of the values equal"
            least = f"at least {100 * gates.agreement:g} %"
            good_share = tensor.equal_share >= gates.agreement
            yield Check(f"handed on, {tensor.name}:", measured, least, good_share, "doubt")
            continue
        error = tensor.relative_rms
        weight: Weight = "gate" if not error <= bad else "doubt"
        limit = f"at most {bad if weight == 'gate' else good:g}"
        yield Check(
            f"output {tensor.name}:", f"{error:.3g} relative RMS", limit, error <= good, weight
        )
        off = abs(tensor.gain - 1)
        measured, limit = f"{tensor.gain:.3f}", f"within {gates.gain:g} of 1"
        yield Check(f"gain of {tensor.name}:", measured, limit, off <= gates.gain)


def _rows(name: str, rows: RowsFound, gates: Gates) -> Iterator[Check]:
    """Doubts at most: a row more or less is one score beside a threshold, or one tie."""
    if rows.reference:
        found = share_of(rows.found, rows.reference)
        least = f"at least {100 * gates.found:g} %"
        good = found.share >= gates.found
        yield Check(f"rows of {name} found again:", str(found), least, good, "doubt")
    good = rows.extra <= gates.extra * rows.reference
    yield Check(f"extra rows of {name}:", f"{rows.extra} beside {rows.reference}",
                f"at most {100 * gates.extra:g} %", good, "doubt")  # fmt: skip


def _board(stage: StageErrors, decisions: Decisions | None, gates: Gates) -> Iterator[Check]:
    if stage.bit_equal:
        yield Check("board:", "equal bit for bit", "bit for bit", True)
        return
    worst = max(stage.tensors, key=lambda tensor: stage.unordered(tensor.name).relative_rms)
    error = stage.unordered(worst.name).relative_rms
    measured = f"{worst.name} differs by {error:.2g} relative RMS"
    weight: Weight = "gate" if not error <= gates.board else "doubt"
    limit = f"at most {gates.board:g}" if weight == "gate" else "bit for bit"
    yield Check("board:", measured, limit, False, weight)
    if isinstance(decisions, DetectionDecisions) and decisions.agreement.reference:
        yield _at_least("board: detections found again", decisions.found, gates.found)


def _at_least(name: str, share: Share, limit: float) -> Check:
    weight: Weight = "gate" if share.high < limit else "doubt"
    least = f"at least {100 * limit:g} %"
    return Check(name, str(share), least, share.share >= limit, weight)


def _at_most(name: str, count: int, total: int, limit: float) -> Check:
    """`count` may be over `total`: there is no end to inventions."""
    low = share_of(min(count, total), total).low
    weight: Weight = "gate" if low > limit else "doubt"
    measured, most = f"{100 * count / total:.1f} %", f"at most {100 * limit:g} %"
    return Check(name, measured, most, count <= limit * total, weight)


def _lost(name: str, loss: float, limit: float, gates: Gates, *, many: bool) -> Check:
    weight: Weight = "gate" if many or loss > gates.far * limit else "doubt"
    measured, most = f"{100 * loss:.1f} points", f"at most {100 * limit:g}"
    return Check(name, measured, most, loss <= limit, weight)


def _facts(findings: Findings) -> Iterator[str]:
    """The good news, in words."""
    if not findings.stages:
        yield "nothing runs as TFLite, and the ONNX part gives what the file gives"
    split = findings.stage("split")
    if split and split.bit_equal:
        yield "the parts equal the whole bit for bit"
    decisions = findings.decisions
    if isinstance(decisions, DetectionDecisions) and decisions.agreement.reference:
        same = decisions.agreement
        yield (
            f"{100 * same.found_share:.1f} % of {same.reference} detections found again, "
            f"{100 * same.extra_share:.1f} % extra"
        )
        if decisions.annotated and decisions.reference and decisions.candidate:
            before, after = decisions.reference, decisions.candidate
            yield f"mAP50-95 {before.ap:.3f} in float, {after.ap:.3f} now"
    elif isinstance(decisions, Answers) and decisions.flips.total:
        yield f"{100 * decisions.agreement:.1f} % of {decisions.flips.total} answers unchanged"
    else:
        stage = findings.stage("quantization")
        for tensor in stage.tensors if stage else ():
            if tensor.rows is not None:
                yield f"{tensor.name}: {tensor.rows}"
        worst = _worst(stage)
        if worst:
            yield f"outputs within {worst.relative_rms:.2g} relative RMS of float"


def _worst(stage: StageErrors | None) -> TensorError | None:
    if stage is None:
        return None
    errors = [stage.unordered(tensor.name) for tensor in stage.tensors if not tensor.rows]
    return max(errors, key=lambda tensor: tensor.relative_rms, default=None)
