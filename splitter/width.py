"""Which tensors take 16 bits: what the names given to `--int16` mean on a graph.

Decides that a name is a unit (all that it writes), a tensor, an ONNX node or an ONNX value (the
units it became). Values of NPU segments, and model inputs that they read, stay at 8 bits: the
compilers of the targets here refuse int16. What "auto" chooses is found in `widen`; which kernels
exist in 16 bits is `quantize`'s.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from splitter.diagnostics import SplitterError, nearest
from splitter.graph import Graph
from splitter.plan import Device, Plan
from splitter.quantize.movement import makers
from splitter.tflite.types import LiteGraph

AUTO = "auto"
OPTION = "--int16"


@dataclass(frozen=True)
class Widening:
    """Tensors that take 16 bits, and the units that write them, in the order they were chosen.

    everything: all values outside the NPU. fine: units whose weights take two 8-bit pieces. left:
    what remains of the error that int8 makes outside the NPU and 16 bits everywhere there take
    away, as squared error, 0..1, measured on `samples` calibration samples (0: not measured).
    """

    tensors: frozenset[str] = frozenset()
    units: tuple[str, ...] = ()
    everything: bool = False
    fine: tuple[str, ...] = ()
    samples: int = 0
    left: float = 0.0


NARROW = Widening()


def find_tensors(
    asked: Sequence[str],
    graph: Graph,
    lite: LiteGraph,
    plan: Plan,
    *,
    nodes: Mapping[str, str] | None = None,
) -> dict[str, frozenset[str]]:
    """The float tensors of `lite` that each name (AUTO aside) stands for.

    nodes: ONNX value -> name of the ONNX node that makes it. Raises SplitterError, for all names at
    once, when one matches nothing, is on the NPU, or has no real values.
    """
    finder = _Finder(graph, lite, plan, nodes or {})
    names = [name for name in dict.fromkeys(asked) if name != AUTO]
    found = {name: finder.tensors(name) for name in names}
    if finder.problems:
        raise SplitterError("; ".join(finder.problems), where=OPTION)
    return found


def require_wide(integer: LiteGraph, found: Mapping[str, Iterable[str]]) -> None:
    """Raises SplitterError for names none of whose tensors has 16 bits in the integer graph."""
    unmet = [
        f"{name} cannot have 16 bits: it is part of a look-up table, or keeps its author's scale"
        for name, tensors in found.items()
        if not any(t in integer.tensors and integer.tensors[t].dtype == "int16" for t in tensors)
    ]
    if unmet:
        raise SplitterError(
            "; ".join(unmet), where=OPTION, hint="name what is computed from it instead"
        )


def off_the_npu(lite: LiteGraph, plan: Plan) -> frozenset[str]:
    """Every float tensor whose values are computed outside the NPU, with what moves them; and the
    inputs that the NPU does not read."""
    cpu = units_on(plan, "cpu")
    made = {name for name, unit in makers(lite).items() if unit in cpu}
    every = made.union(free_inputs(lite, plan))
    return frozenset(name for name in every if lite.tensors[name].dtype == "float32")


def free_inputs(lite: LiteGraph, plan: Plan) -> tuple[str, ...]:
    """The model's inputs that nothing on the NPU reads."""
    npu = units_on(plan, "npu")
    return tuple(n for n in lite.inputs if not any(o.unit in npu for o in lite.consumers[n]))


def units_on(plan: Plan, device: Device) -> frozenset[str]:
    return frozenset(u for s in plan.segments if s.device == device for u in s.units)


class _Finder:
    """Looks names up and gathers what is wrong with them."""

    def __init__(self, graph: Graph, lite: LiteGraph, plan: Plan, nodes: Mapping[str, str]) -> None:
        self.problems: list[str] = []
        self._lite, self._nodes, self._makers = lite, nodes, makers(lite)
        self._npu = units_on(plan, "npu")
        self._free = free_inputs(lite, plan)
        self._written: dict[str, list[str]] = {unit.name: [] for unit in graph.units}
        for op in lite.operators:
            self._written[op.unit] += op.outputs
        self._of_node: dict[str, list[str]] = {}
        for unit in graph.units:
            for node in unit.nodes:
                self._of_node.setdefault(node, []).append(unit.name)

    def tensors(self, name: str) -> frozenset[str]:
        """Float tensors of a name; none, and a problem, when it may not be widened."""
        maker = self._lite.producers.get(name)
        units = [maker.unit] if maker is not None else self._units(name)
        if name in self._free:
            return frozenset([name])
        if name in self._lite.inputs:
            self.problems.append(f"{name} is an input of an NPU part, which takes INT8 only")
        elif not units:
            self.problems.append(self._unknown(name))
        elif self._npu.intersection(units):
            self.problems.append(
                f"{name} is inside an NPU part, whose compiler takes INT8 only; --cpu "
                f"{units[0]} moves it"
            )
        else:
            written = [name] if maker is not None else [t for u in units for t in self._written[u]]
            real = frozenset(t for t in written if self._lite.tensors[t].dtype == "float32")
            if not real:
                self.problems.append(f"{name} holds indices or conditions, which have no scale")
            elif all(self._makers[t] in self._npu for t in real):
                self.problems.append(f"{name} only moves what the NPU computes in INT8")
            return real
        return frozenset()

    def _units(self, name: str) -> list[str]:
        """Units of a unit's, an ONNX node's or an ONNX value's name."""
        if name in self._written:
            return [name]
        node = name if name in self._of_node else self._nodes.get(name, "")
        return self._of_node.get(node, [])

    def _unknown(self, name: str) -> str:
        if name in self._nodes or name in self._nodes.values():
            return f"{name} is no longer computed: constants and fused operators took its place"
        known = {*self._written, *self._lite.producers, *self._of_node, *self._nodes}
        return f"{name} is no value, unit or node; {nearest(name, known)}"
