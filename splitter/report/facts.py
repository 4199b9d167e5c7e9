"""The verification and the precision in one line each."""

from __future__ import annotations

from collections.abc import Iterator

from splitter.report import words
from splitter.report.summary import Summary
from splitter.verify import (
    BehindError,
    Comparison,
    DetectionDecisions,
    StageErrors,
    TensorError,
)
from splitter.verify.classification import Answers
from splitter.verify.decisions import Decisions
from splitter.verify.rows import SAME
from splitter.width import Widening


def more_parts(summary: Summary) -> Iterator[str]:
    """ "3 parts would take an estimated 3.03 ms instead of 5.54 ms (--max-segments 3)"."""
    now = summary.total_ms
    for row in summary.more:
        yield (
            f"{row.segments} parts would take an estimated {words.milliseconds(row.total_ms)} "
            f"instead of {words.milliseconds(now)} (--max-segments {row.segments})"
        )


def precision_fact(summary: Summary) -> str:
    """ "8.0 bits a value on average (int8 99.9 %, int16 0.1 %); no float tensor in any part"."""
    elements = summary.precision.elements
    total = sum(elements.values())
    types = ", ".join(
        f"{dtype} {words.percent(count / total)}"
        for dtype, count in sorted(elements.items(), key=lambda item: -item[1])
    )
    floats = summary.float_tensors
    tail = f"{words.counted(floats, 'float tensor')} LEFT" if floats else "no float tensor"
    return f"{summary.precision.average:.2f} bits a value on average ({types}); {tail}"


def width_facts(summary: Summary) -> Iterator[tuple[str, str]]:
    """("16 bits", words): what takes them and why, or what they would gain."""
    widening, comparison = summary.widening, summary.comparison
    if widening.everything:
        yield "16 bits", "every value outside the NPU" + _fine(widening)
    elif widening.units:
        yield "16 bits", _widened(widening)
    elif widening.samples:
        samples = words.counted(widening.samples, "calibration sample")
        yield "16 bits", f"no value: they would gain nothing outside the NPU ({samples})"
    elif comparison.wider:
        gain, figure = 100 * comparison.wider.gain, comparison.wider.figure
        runs = words.counted(comparison.wider.runs, "run")
        gains = f"they would gain {gain:.1f} points of {figure}" if gain > 0 else "nothing to gain"
        yield "16 bits", f"none; outside the NPU {gains} ({runs})"
    elif comparison.untried:
        yield "16 bits", f"none; {comparison.untried}"


def _widened(widening: Widening) -> str:
    units = f"{words.counted(len(widening.units), 'unit')} outside the NPU"
    if not widening.samples:
        return f"{', '.join(widening.units)}, as asked for"
    gain = words.percent(1 - widening.left, 0)
    samples = words.counted(widening.samples, "calibration sample")
    return (
        f"{units}, which gains {gain} of what 16 bits everywhere outside the NPU would "
        f"(squared error, {samples})" + _fine(widening)
    )


def _fine(widening: Widening) -> str:
    """What is said of weights in two pieces."""
    units = words.counted(len(widening.fine), "unit")
    return f"; weights of {units} in two 8-bit pieces, for twice the work" if widening.fine else ""


def stage_facts(summary: Summary) -> Iterator[tuple[str, str]]:
    """(stage, words) of each comparison that was made."""
    for stage in summary.comparison.findings.stages:
        what = stage.words
        if stage.stage == "rewrites":
            what = f"{what} ({_rewrites(summary)}; {words.counted(stage.runs, 'run')})"
        yield stage.stage, f"{what}: {_errors(stage)}{_left_out(stage)}"


def onnx_facts(summary: Summary) -> Iterator[tuple[str, str]]:
    """("ONNX part", words): what it is for, whether it is cut right, what integers before it do."""
    if summary.onnx_part is None:
        return
    outputs = summary.comparison.findings.behind
    yield "ONNX part", f"float, in ONNX Runtime, for {summary.onnx_part.reasons} and what follows"
    cut = ", ".join(f"{o.name} {words.error(o.cut)}" for o in outputs)
    yield (
        "its cut" if summary.parts else "it gives",
        f"on float values against the ONNX file: relative RMS {cut}",
    )
    if not summary.parts:
        return
    yield "its outputs", "after the integer parts: " + "; ".join(map(_behind, outputs))


def _behind(output: BehindError) -> str:
    error = output.relative_rms
    told = "no run of equal shape" if error is None else f"relative RMS {words.error(error)}"
    if output.alike == output.runs:
        return f"{output.name} {told}"
    shapes = f"of equal shape in {output.alike} of {output.runs} runs"
    return f"{output.name} {told} ({shapes}; {output.rows[1]} rows, {output.rows[0]} in float)"


def _rewrites(summary: Summary) -> str:
    return ", ".join(
        f"{r.op} by {r.lowering} x {r.units}, stated error {r.error:g}" for r in summary.rewrites
    )


def _left_out(stage: StageErrors) -> str:
    if not stage.ties:
        return ""
    apart = f"{words.error(stage.gap)} of the largest"
    if stage.ties == 1:
        return f"; 1 run aside, in which TopK ranks two scores that are {apart} apart differently"
    return (
        f"; {stage.ties} runs aside, in which TopK ranks two scores that are at most {apart} "
        "apart differently"
    )


def _errors(stage: StageErrors) -> str:
    if stage.bit_equal:
        return "equal bit for bit"
    names = [tensor.name for tensor in stage.tensors]
    listed = ", ".join(_error(stage.unordered(name)) for name in names)
    sets = " of all queries, in any order:" if stage.aligned else ""
    return f"relative RMS{sets} {listed}"


def _error(tensor: TensorError) -> str:
    told = f"{tensor.name} {words.error(tensor.relative_rms)}"
    rows = tensor.rows
    if rows is None:
        return told
    if rows.reordered and tensor.relative_rms > SAME:
        return f"{tensor.name} the same {rows.reference} rows in another order"
    if rows.alike == rows.runs:
        return f"{told} ({rows})"
    return f"{told} ({rows}; as many in {rows.alike} of {rows.runs} runs)"


def decision_facts(comparison: Comparison) -> Iterator[tuple[str, str]]:
    """(what, words) of the decisions, on this computer and on the board."""
    findings = comparison.findings
    yield from _facts("decisions", findings.decisions)
    yield from _facts("on the board", findings.board)
    yield "samples", _samples(comparison)


def _samples(comparison: Comparison) -> str:
    circumstances = comparison.circumstances
    tail = ", which calibration has seen too" if circumstances.shared else ", not seen before"
    return words.counted(comparison.findings.runs, "run") + tail


def _facts(name: str, decisions: Decisions | None) -> Iterator[tuple[str, str]]:
    if isinstance(decisions, DetectionDecisions):
        yield from _detection_facts(name, decisions)
    elif isinstance(decisions, Answers):
        yield name, f"answers changed: {decisions.flips} of {decisions.flips.total}"
        if decisions.accuracy:
            a = decisions.accuracy
            yield (
                "accuracy",
                f"{words.percent(a.reference)} in float, {words.percent(a.candidate)} now; "
                f"{a.lost} lost, {a.gained} gained (McNemar p {a.p_value:.3g})",
            )


def _detection_facts(name: str, decisions: DetectionDecisions) -> Iterator[tuple[str, str]]:
    same = decisions.agreement
    if not same.reference:
        yield name, "the float model has no detection over 0.5 on these samples"
        return
    lost = same.reference - same.found
    yield (
        name,
        f"found again: {decisions.found} of {same.reference} detections over {same.score:g} "
        f"({lost} lost, {same.weakened} of them still there with a lower score), "
        f"{same.extra} extra; mean overlap {same.overlap:.3f}",
    )
    before, after = decisions.reference, decisions.candidate
    if before and not decisions.annotated:
        found = f"the float model finds none of the annotated objects (mAP50 {before.ap50:.3f})"
        yield "COCO", f"not compared: {found}"
    elif before and after:
        yield (
            "COCO",
            f"mAP50 {before.ap50:.3f} in float, {after.ap50:.3f} now; "
            f"mAP50-95 {before.ap:.3f} in float, {after.ap:.3f} now",
        )
