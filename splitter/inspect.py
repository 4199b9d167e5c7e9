"""What a .tflite file holds and what is wrong with it, read from the file alone.

Decides what counts as wrong by the TFLite 8-bit quantization specification: float tensors left
over, operators that only move bytes between unequal scales, parameters that a kernel ignores,
outputs that depend on no input. Which operators break a target's rules is `support.check_lite`'s
to say; its answer is handed in. Printing and the exit status are the command line's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from splitter.diagnostics import Reason
from splitter.quantize.kernels import KERNELS, Fixed, data_inputs
from splitter.tflite.types import LiteGraph, Operator, Quantization, Tensor
from splitter.tflite.view import BIAS_SLOT, WEIGHT_SLOT, View

NEUTRON = "CUSTOM:NeutronGraph"
"""What neutron-converter puts in place of the operators it takes (eIQ Neutron SDK 2.0 to 3.2)."""

_FLOATS = ("float16", "float32", "float64", "bfloat16")
_QUANTIZED = ("int8", "uint8", "int16")

_MOVES = {
    "SELECT": (1, 2),
    "SPACE_TO_BATCH_ND": (0,),
    "BATCH_TO_SPACE_ND": (0,),
    "DYNAMIC_UPDATE_SLICE": (0, 1),
    "REVERSE_SEQUENCE": (0,),
}
"""Same-scale operators that this tool does not write itself, and their data inputs; the others are
in `quantize.kernels`."""

_CHANNEL_AXIS = {"CONV_2D": 0, "DEPTHWISE_CONV_2D": 3, "FULLY_CONNECTED": 0, "TRANSPOSE_CONV": 0}
"""Axis of per-channel weight scales (TFLite 8-bit quantization specification)."""

_RELATIVE = 1e-5
"""Two scales closer than this are one: float32 products round at 6e-8."""


@dataclass(frozen=True, slots=True)
class Count:
    """How many operators of one code and type; types "int8", or "int8 to bool" when they differ."""

    code: str
    types: str
    number: int


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong: the operator's code, the tensor it writes, what and why."""

    code: str
    tensor: str
    what: str


@dataclass(frozen=True, slots=True)
class Broken:
    """An operator that breaks rules of the target: its code, what it writes, all the reasons."""

    code: str
    tensor: str
    reasons: tuple[Reason, ...]


@dataclass(frozen=True)
class Inspection:
    """What a file holds. Empty tuples are good news.

    float_tensors:   (name, type) of tensors of floating point that operators or outputs use.
    unequal_scales:  same-scale operators whose tensors have different parameters.
    parameters:      scales and zero points that the kernels do not honor.
    constants:       outputs that depend on no input.
    rules:           operators that break a rule of the target, with all their reasons.
    judged:          whether any rules were looked at; if not, `rules` is empty and says nothing.
    neutron_graphs:  NeutronGraph nodes; `rest` counts the operators beside them.
    """

    operators: tuple[Count, ...]
    float_tensors: tuple[tuple[str, str], ...]
    unequal_scales: tuple[Finding, ...]
    parameters: tuple[Finding, ...]
    constants: tuple[Finding, ...]
    rules: tuple[Broken, ...]
    judged: bool
    neutron_graphs: int
    rest: tuple[Count, ...]

    @property
    def total(self) -> int:
        return sum(count.number for count in self.operators)

    @property
    def on_cpu(self) -> int:
        return sum(count.number for count in self.rest)


def inspect(
    graph: LiteGraph, *, rules: Sequence[tuple[Operator, tuple[Reason, ...]]] | None = None
) -> Inspection:
    """Look a graph over, as read back from its file. `rules` is the answer of `check_lite`, None
    when no target was asked."""
    rest = [op for op in graph.operators if not _is_neutron(op)]
    return Inspection(
        operators=_counts(graph, graph.operators),
        float_tensors=_floats(graph),
        unequal_scales=tuple(_unequal(graph)),
        parameters=tuple(_wrong_parameters(graph)),
        constants=tuple(_constants(graph)),
        rules=tuple(Broken(op.code, ", ".join(op.outputs), reasons) for op, reasons in rules or ()),
        judged=rules is not None,
        neutron_graphs=len(graph.operators) - len(rest),
        rest=_counts(graph, rest),
    )


def placement(inspection: Inspection) -> str:
    """Where a converted file runs, in one sentence."""
    graphs, rest = inspection.neutron_graphs, inspection.on_cpu
    if graphs == 0:
        return f"0 of {rest} operators are on the NPU: the file holds no NeutronGraph node"
    nodes = "node" if graphs == 1 else "nodes"
    left = ", ".join(f"{count.number} {count.code}" for count in inspection.rest)
    stays = f"{rest} operators stay on the CPU ({left})" if rest else "nothing stays on the CPU"
    return f"{graphs} NeutronGraph {nodes} on the NPU; {stays}"


def problems(inspection: Inspection) -> tuple[str, ...]:
    """One line for each kind of thing that is wrong; nothing when the file may be trusted."""
    kinds = (
        (len(inspection.float_tensors), "float tensors left"),
        (len(inspection.unequal_scales), "same-scale operators with unequal scales"),
        (len(inspection.parameters), "parameters that the kernels do not honor"),
        (len(inspection.constants), "outputs that depend on no input"),
        (len(inspection.rules), "operators that break a rule of the target"),
    )
    return tuple(f"{number} {what}" for number, what in kinds if number)


def text(inspection: Inspection, *, limit: int = 20) -> str:
    """The inspection as lines for people; at most `limit` entries of each kind."""
    rules = _rule_lines(inspection)
    sections = [
        ("operators", [f"{c.number:5d}  {c.code}  {c.types}" for c in inspection.operators]),
        ("float tensors left", [f"{name}  {kind}" for name, kind in inspection.float_tensors]),
        ("unequal scales on same-scale operators", _lines(inspection.unequal_scales)),
        ("parameters that the kernels do not honor", _lines(inspection.parameters)),
        ("outputs that depend on no input", _lines(inspection.constants)),
        ("operators that break a rule of the target", rules),
    ]
    lines: list[str] = []
    for title, entries in sections:
        if entries is rules and not inspection.judged:
            lines.append(f"{title}: not looked at")
            continue
        lines.append(f"{title}: {len(entries) if title != 'operators' else inspection.total}")
        shown = entries if title == "operators" else entries[:limit]
        lines.extend(f"  {entry}" for entry in shown)
        if len(entries) > len(shown):
            lines.append(f"  and {len(entries) - len(shown)} more")
    return "\n".join(lines)


def _lines(findings: Sequence[Finding]) -> list[str]:
    return [f"{f.code} ({f.tensor}): {f.what}" if f.code else f.what for f in findings]


def _rule_lines(inspection: Inspection) -> list[str]:
    return [
        f"{broken.code} ({broken.tensor}): {'; '.join(str(reason) for reason in broken.reasons)}"
        for broken in inspection.rules
    ]


def _is_neutron(op: Operator) -> bool:
    return op.code.casefold() == NEUTRON.casefold()


def _counts(graph: LiteGraph, operators: Sequence[Operator]) -> tuple[Count, ...]:
    counter = Counter((op.code, _types(graph, op)) for op in operators)
    ordered = sorted(counter.items(), key=lambda item: (-item[1], item[0]))
    return tuple(Count(code, types, number) for (code, types), number in ordered)


def _types(graph: LiteGraph, op: Operator) -> str:
    view = View(graph, op)
    made = view.outputs[0].dtype if view.outputs else ""
    taken = view.data[0].dtype if view.data else made
    return made if taken == made else f"{taken} to {made}"


def _floats(graph: LiteGraph) -> tuple[tuple[str, str], ...]:
    used = {name for op in graph.operators for name in (*op.inputs, *op.outputs)}
    used.update(graph.inputs, graph.outputs)
    return tuple(
        (name, tensor.dtype)
        for name, tensor in graph.tensors.items()
        if name in used and tensor.dtype in _FLOATS
    )


def _same_scale_inputs(op: Operator) -> tuple[int, ...]:
    if op.code in KERNELS:
        return data_inputs(op.code, len(op.inputs)) if KERNELS[op.code].same else ()
    return _MOVES.get(op.code, ())


def _unequal(graph: LiteGraph) -> Iterator[Finding]:
    for op in graph.operators:
        slots = _same_scale_inputs(op)
        if not slots:
            continue
        names = [op.inputs[i] for i in slots if i < len(op.inputs) and op.inputs[i]]
        tensors = [graph.tensors[name] for name in (*names, *op.outputs) if name]
        found = {
            _shown(t.quantization): None
            for t in tensors
            if t.quantization and t.dtype in _QUANTIZED
        }
        if len(found) > 1:
            yield Finding(op.code, op.outputs[0], " and ".join(found))


def _shown(quantization: Quantization | None) -> str:
    if quantization is None:
        return "no parameters"
    if quantization.per_channel:
        return f"{len(quantization.scale)} scales on axis {quantization.axis}"
    # The file holds float32: its shortest digits tell any two apart.
    return f"scale {np.float32(quantization.scale[0])!s} zero point {quantization.zero_point[0]}"


def _wrong_parameters(graph: LiteGraph) -> Iterator[Finding]:
    for op in graph.operators:
        for name in op.outputs:
            yield from _wrong_fixed(op, graph.tensors[name])
            yield from _wrong_zero_point(op, graph.tensors[name])
        if op.code in WEIGHT_SLOT:
            yield from _wrong_weights(graph, op)
        if op.code == "BATCH_MATMUL":
            yield from _wrong_matmul(graph, op)


def _wrong_fixed(op: Operator, tensor: Tensor) -> Iterator[Finding]:
    """The output of a kernel that writes one scale and zero point whatever the file says."""
    kernel, q = KERNELS.get(op.code), tensor.quantization
    if kernel is None or q is None:
        return
    fixed: Fixed | None = {"int8": kernel.fixed8, "int16": kernel.fixed16}.get(tensor.dtype)
    if fixed and (not _close(q.scale[0], fixed[0]) or q.zero_point[0] != fixed[1]):
        wanted = _shown(Quantization((fixed[0],), (fixed[1],)))
        yield Finding(op.code, tensor.name, f"{_shown(q)}; the kernel writes {wanted}")


def _wrong_zero_point(op: Operator, tensor: Tensor) -> Iterator[Finding]:
    q = tensor.quantization
    if q is not None and tensor.dtype == "int16" and any(q.zero_point):
        yield Finding(op.code, tensor.name, f"{_shown(q)}; int16 takes zero point 0 only")


def _wrong_weights(graph: LiteGraph, op: Operator) -> Iterator[Finding]:
    view = View(graph, op)
    weights, bias = view.input(WEIGHT_SLOT[op.code]), view.input(BIAS_SLOT[op.code])
    data = view.data[0] if view.data else None
    if weights is None or data is None or weights.quantization is None:
        return
    q = weights.quantization
    if weights.dtype == "int8" and any(q.zero_point):
        yield Finding(op.code, weights.name, "weights in int8 take zero point 0 only")
    if q.per_channel and q.axis != _CHANNEL_AXIS[op.code]:
        yield Finding(
            op.code,
            weights.name,
            f"scales on axis {q.axis}; the kernel reads them on axis {_CHANNEL_AXIS[op.code]}",
        )
    if bias is not None and data.quantization is not None:
        yield from _wrong_bias(op, bias, data.quantization, q)


def _wrong_bias(
    op: Operator, bias: Tensor, data: Quantization, weights: Quantization
) -> Iterator[Finding]:
    if bias.dtype not in ("int32", "int64") or bias.quantization is None:
        return
    wanted = np.asarray(weights.scale) * data.scale[0]
    given = np.asarray(bias.quantization.scale)
    if given.size not in (1, wanted.size) or not np.allclose(given, wanted, _RELATIVE, 0.0):
        yield Finding(
            op.code,
            bias.name,
            "the scale of a bias is the input's times the weights'; "
            f"the file says {_shown(bias.quantization)}",
        )
    if any(bias.quantization.zero_point):
        yield Finding(op.code, bias.name, "a bias takes zero point 0 only")


def _wrong_matmul(graph: LiteGraph, op: Operator) -> Iterator[Finding]:
    """Measured on ai-edge-litert 2.3.0: with per-channel scales every output is zero."""
    for name in op.inputs:
        q = graph.tensors[name].quantization if name else None
        if q is not None and q.per_channel:
            yield Finding(op.code, name, f"{_shown(q)}; the kernel reads one, and writes zeros")


def _constants(graph: LiteGraph) -> Iterator[Finding]:
    alive = set(graph.inputs)
    for op in graph.operators:
        if alive.intersection(op.inputs) or op.code.startswith("CUSTOM:"):
            alive.update(op.outputs)
    for name in graph.outputs:
        if name not in alive:
            producer = graph.producers.get(name)
            code = "" if producer is None else producer.code
            yield Finding(code, name, f"{name} is the same whatever the inputs are")


def _close(a: float, b: float) -> bool:
    return abs(a - b) <= _RELATIVE * max(abs(a), abs(b))
