"""Writes units in their layouts, with the transposes and reshapes that remain, as a `Graph`."""

from __future__ import annotations

import numpy as np

from splitter.draft import Array, Draft, Node
from splitter.graph import Graph, Unit, Value
from splitter.layout.ports import identity, renumber
from splitter.layout.views import LAST_RANK, Perm, Shape, Steps, pieces, steps
from splitter.layout.wiring import Edge, Wiring


def build(draft: Draft, wiring: Wiring, labels: dict[Node, Perm]) -> Graph:
    """The frozen graph. Its inputs and outputs have the ONNX names and layouts."""
    builder = _Builder(draft, wiring, labels)
    for node in wiring.units:
        builder.unit(node)
    for edge in wiring.outputs:
        builder.output(edge)
    return builder.graph()


class _Builder:
    def __init__(self, draft: Draft, wiring: Wiring, labels: dict[Node, Perm]) -> None:
        self.draft, self.wiring, self.labels = draft, wiring, labels
        self.values: dict[str, Value] = {}
        self.constants: dict[str, Array] = {}
        self.units: list[Unit] = []
        self.names: set[str] = set()
        self.stored: dict[str, str] = {}
        self.made: dict[tuple[object, ...], str] = {}
        self.inner: dict[str, str] = {}
        for name in draft.inputs:
            self.values[name] = Value(name, draft.shape(name) or (), draft.dtype(name))
            self.stored[name] = name

    def graph(self) -> Graph:
        used = {name for unit in self.units for name in unit.inputs} | set(self.draft.outputs)
        used |= set(self.draft.inputs) | {name for unit in self.units for name in unit.outputs}
        values = {name: value for name, value in self.values.items() if name in used}
        constants = {name: data for name, data in self.constants.items() if name in used}
        return Graph(self.draft.inputs, self.draft.outputs, values, constants, tuple(self.units))

    def unit(self, node: Node) -> None:
        port, label = self.wiring.ports[node], self.labels[node]
        edges = {edge.index: edge for edge in self.wiring.into[node]}
        inputs = [
            self.edge(edges[index]) if index in edges else self.constant(node, index)
            for index in range(len(node.inputs))
        ]
        outputs = []
        for index, out in enumerate(node.outputs):
            perm = port.output_perm(index, label)
            outputs.append(self.stored_value(out, perm) if out else "")
        while outputs and not outputs[-1]:
            outputs.pop()
        attrs = dict(renumber(node, label))
        if node.op == "MatMul":
            attrs |= {"adj_x": self.swapped(edges.get(0)), "adj_y": self.swapped(edges.get(1))}
        self.add(node.name, node.op, inputs, outputs, attrs, node.sources)

    def swapped(self, edge: Edge | None) -> bool:
        """Whether this operand of a MatMul is read with its last two axes swapped."""
        node = edge.consumer if edge is not None else None
        if edge is None or node is None or not self.wiring.ports[node].swaps:
            return False
        have, wants = self.wiring.have(edge, self.labels), self.wiring.wants(edge, self.labels)
        return have != wants[0] and have in wants

    def stored_value(self, value: str, perm: Perm) -> str:
        """Declare the value as its unit makes it."""
        shape = self.draft.shape(value) or ()
        plain = perm == identity(len(perm))
        name = value if plain or value not in self.draft.outputs else self.fresh(value, perm)
        self.stored[value] = name
        axes = () if plain else perm
        self.values[name] = Value(
            name, tuple(shape[a] for a in perm), self.draft.dtype(value), axes
        )
        return name

    def edge(self, edge: Edge) -> str:
        """The value a unit reads: the source, reshaped and transposed as needed."""
        perm = self.wiring.target_perm(edge, self.labels)
        own = self.draft.shape(edge.value) or ()
        lower = len(perm) - len(own)
        if lower and perm == identity(len(perm)):
            perm, shape = identity(len(own)), own
        else:
            shape = edge.shape
        if self.swapped(edge):
            perm = (*perm[:-2], perm[-1], perm[-2])
        shape = tuple(shape[a] for a in perm)
        return self.realize(edge, self.plan(edge, shape), shape, perm, "")

    def plan(self, edge: Edge, shape: Shape) -> Steps:
        have, want = self.wiring.have(edge, self.labels), self.wiring.want(edge, self.labels)
        if self.swapped(edge):
            want = have
        source = self.values[self.stored[edge.source]].shape
        return steps(edge.sizes, have, want, source, shape)

    def realize(self, edge: Edge, plan: Steps, shape: Shape, perm: Perm, final: str) -> str:
        """Write the steps; `final` is the name the last one must have, "" for a free choice."""
        value = self.stored[edge.source]
        moves = _moves(plan, self.values[value].shape)
        for index, (op, attr) in enumerate(moves):
            last = index == len(moves) - 1
            value = self.move(value, op, attr, edge, final if last else "", perm if last else None)
        return value

    def move(
        self, value: str, op: str, attr: Shape, edge: Edge, final: str, perm: Perm | None
    ) -> str:
        key = (value, op, attr)
        if key in self.made and not final:
            return self.made[key]
        known = self.values[value]
        shape = attr if op == "Reshape" else tuple(known.shape[a] for a in attr)
        plain = perm is not None and perm == identity(len(perm)) and len(shape) == len(perm)
        if final:
            name = final
        elif plain and edge.value not in self.values and edge.value not in self.draft.outputs:
            name = edge.value
        else:
            name = self.fresh(edge.value, attr if op == "Transpose" else ())
        self.values[name] = Value(name, shape, known.dtype)
        sources = tuple(
            dict.fromkeys(s for node in edge.chain if node.op == op for s in node.sources)
        )
        unit = sources[-1] if sources else f"{op}_{name}"
        attrs: dict[str, object] = {"shape": attr} if op == "Reshape" else {"perm": attr}
        self.add(unit, op, [value], [name], attrs, sources)
        self.made.setdefault(key, name)
        return name

    def output(self, edge: Edge) -> None:
        shape = self.draft.shape(edge.value) or ()
        plan = self.plan(edge, shape) if edge.source in self.stored else Steps(None, None, None)
        perm = identity(len(shape))
        if edge.value in self.values:
            return
        if edge.source not in self.stored:
            self.constant_output(edge)
        elif plan == Steps(None, None, None):
            source = self.stored[edge.source]
            self.values[edge.value] = Value(edge.value, shape, self.values[source].dtype)
            self.add(f"Identity_{edge.value}", "Identity", [source], [edge.value], {}, ())
        else:
            self.realize(edge, plan, shape, perm, edge.value)

    def constant_output(self, edge: Edge) -> None:
        data = self.draft.constants[edge.source]
        inner = self.inner_name(edge.source)
        self.values[inner] = Value(inner, data.shape, data.dtype.name)
        self.constants[inner] = data
        self.values[edge.value] = Value(edge.value, data.shape, data.dtype.name)
        self.add(f"Identity_{edge.value}", "Identity", [inner], [edge.value], {}, ())

    def inner_name(self, value: str) -> str:
        """What units read of a constant that is a model output too: an output is computed."""
        if value not in self.inner:
            self.inner[value] = self.fresh(value, ()) if value in self.draft.outputs else value
        return self.inner[value]

    def constant(self, node: Node, index: int) -> str:
        """A constant input, its axes stored as the unit's label says."""
        value = node.inputs[index]
        if not value:
            return ""
        data = self.draft.constants[value]
        port = self.wiring.ports[node]
        perm = port.input_perm(index, self.labels[node])
        name = self.inner_name(value)
        if perm != identity(len(perm)) and data.size > 1:
            shape = port.input_shapes[index]
            data = np.transpose(data.reshape(shape), perm)
            name = f"{value}/{_digits(perm)}"
        if name not in self.constants:
            self.constants[name] = data
            self.values[name] = Value(name, data.shape, data.dtype.name)
        return name

    def add(
        self,
        name: str,
        op: str,
        inputs: list[str],
        outputs: list[str],
        attrs: dict[str, object],
        sources: tuple[str, ...],
    ) -> None:
        unique = name
        count = 1
        while unique in self.names:
            count += 1
            unique = f"{name}_{count}"
        self.names.add(unique)
        self.units.append(Unit(unique, op, tuple(inputs), tuple(outputs), attrs, sources))

    def fresh(self, value: str, perm: tuple[int, ...]) -> str:
        stem = f"{value}/{_digits(perm) if perm else 'view'}"
        name, count = stem, 1
        while name in self.values or name in self.draft.types:
            count += 1
            name = f"{stem}_{count}"
        return name


def _moves(plan: Steps, source: Shape) -> list[tuple[str, Shape]]:
    """Operators with their shape or permutation; a Transpose of too many axes is several."""
    todo: list[tuple[str, Shape | None]] = [("Reshape", plan.before), ("Transpose", plan.perm)]
    if plan.perm is not None and len(plan.perm) > LAST_RANK:
        before = source if plan.before is None else plan.before
        after = tuple(before[axis] for axis in plan.perm)
        todo = []
        for shape, perm in pieces(before, plan.perm):
            todo += [("Reshape", shape), ("Transpose", perm)]
        todo.append(("Reshape", after if plan.after is None else None))
    todo.append(("Reshape", plan.after))
    return [(op, attr) for op, attr in todo if attr is not None]


def _digits(perm: tuple[int, ...]) -> str:
    return "".join(str(axis) for axis in perm)
