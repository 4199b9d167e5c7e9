"""Loops that end when the data says so, written as loops of a fixed number of turns; or counted.

A Loop of K turns that carries "still going" beside its states: a turn that is one too many leaves
every state as it is (Where), so all inputs that need at most K turns give the same numbers. Whether
the Loop is done after K turns is one more output of the model, a bool that is true when it is not.
Counted, the Loop ends as it did and says how many turns it took. Decides how; which Loops and how
many turns is `trips`. ONNX in, ONNX out, in the file's own opset, for ONNX Runtime as for us.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from splitter.graph import Array, Value
from splitter.model import Model, subgraphs
from splitter.normalize.exchange import MARK
from splitter.normalize.fold import SELECTS
from splitter.normalize.functions import inline_functions
from splitter.stored import array_of, tensors

SMALL = 8
"""Bytes of a constant that a Loop's count or condition may be."""
OLDEST = 9
"""The opset from which there is Where, and Less of integers."""


@dataclass(frozen=True, slots=True)
class Told:
    """What one Loop tells: its path (a Loop in a Loop: OUTER/INNER), and the value it is in."""

    loop: str
    value: str


def bounded(model: Model, turns: Mapping[str, int], loops: Collection[str]) -> Rewritten:
    """These Loops of the main graph, and those in them, with at most so many turns, by path.

    turns: a Loop without an entry has that of "". The told values are bool: true means not done.
    """
    return _rewritten(model, _Bounding(turns), loops, "bool")


def counted(model: Model, loops: Collection[str]) -> Rewritten:
    """The same model, with the turns each of these Loops took (the most of one in another)."""
    return _rewritten(model, _Counting(), loops, "int64")


@dataclass(frozen=True)
class Rewritten:
    """The model with one more output for each Loop that was written anew."""

    model: Model
    told: tuple[Told, ...]


def path_of(node: onnx.NodeProto, parent: str = "") -> str:
    """The Loop's name as refusals have it, behind that of the one around it."""
    name = node.name or f"{node.op_type}_{next(filter(None, node.output), '')}"
    return f"{parent}/{name}" if parent else name


def body_of(node: onnx.NodeProto) -> onnx.GraphProto:
    """The body of a Loop."""
    body: onnx.GraphProto = next(a.g for a in node.attribute if a.name == "body")
    return body


def _rewritten(model: Model, kind: _Kind, loops: Collection[str], dtype: str) -> Rewritten:
    source = inline_functions(model.proto)
    version = next((o.version for o in source.opset_import if not o.domain), 1)
    if version < OLDEST or not loops:
        return Rewritten(model, ())
    proto = onnx.ModelProto()
    proto.CopyFrom(source)
    kind.learn(proto.graph)
    nodes, told = _nodes(kind, proto.graph.node, "", loops)
    del proto.graph.node[:]
    proto.graph.node.extend(nodes)
    elem = TensorProto.BOOL if dtype == "bool" else TensorProto.INT64
    proto.graph.output.extend(helper.make_tensor_value_info(t.value, elem, []) for t in told)
    outputs = (*model.outputs, *(Value(t.value, (), dtype) for t in told))
    return Rewritten(replace(model, proto=proto, outputs=outputs), tuple(told))


def _nodes(
    kind: _Kind, nodes: Iterable[onnx.NodeProto], parent: str, loops: Collection[str] | None
) -> tuple[list[onnx.NodeProto], list[Told]]:
    """The nodes with Loops written anew, and what tells of them, in the scope of the nodes."""
    made: list[onnx.NodeProto] = []
    told: list[Told] = []
    for node in nodes:
        path = path_of(node, parent)
        chosen = node.op_type == "Loop" and not node.domain and (loops is None or path in loops)
        if chosen and kind.takes(node):
            before, tells = _Loop(kind, node, path).write()
            made += [*before, node]
            told += tells
        else:
            made.append(node)
    return made, told


@dataclass(frozen=True, slots=True)
class _State:
    """One more value that a Loop carries: at its start, in the body, out of it, at its end."""

    start: str
    inside: str
    out: str
    end: str


@dataclass
class _Kind:
    """How a Loop is written anew. elem: the type of what it tells."""

    constants: dict[str, Array] = field(default_factory=dict)
    elem: int = TensorProto.BOOL
    names: set[str] = field(default_factory=set)

    def learn(self, graph: onnx.GraphProto) -> None:
        """The small constants of a graph and those in it, and all names of values."""
        self.names |= {info.name for info in (*graph.input, *graph.initializer)}
        self.names |= {name for node in _every(graph) for name in (*node.input, *node.output)}
        for tensor in tensors(graph):
            if tensor.name and _bytes_of(tensor) <= SMALL:
                self.constants[tensor.name] = array_of(tensor)
        for node in _every(graph):
            if node.op_type == "Constant" and node.attribute and node.attribute[0].name == "value":
                tensor = node.attribute[0].t
                if _bytes_of(tensor) <= SMALL:
                    self.constants[node.output[0]] = numpy_helper.to_array(tensor)

    def takes(self, node: onnx.NodeProto) -> bool:
        """Whether the Loop can be written so, or holds ones that can."""
        return True

    def scalar(self, name: str) -> float | None:
        data = self.constants.get(name)
        return None if data is None or data.size != 1 else float(data.reshape(-1)[0])

    def fixed(self, node: onnx.NodeProto) -> bool:
        """Whether it takes a number of turns that the file says."""
        body = body_of(node)
        name = self.source(body, body.output[0].name)
        on = name == body.input[1].name or self.scalar(name) == 1.0
        starts = len(node.input) < 2 or not node.input[1] or self.scalar(node.input[1]) == 1.0
        return on and starts and bool(node.input[0]) and self.scalar(node.input[0]) is not None

    @staticmethod
    def source(body: onnx.GraphProto, name: str) -> str:
        """What a value is a copy of."""
        makers = {out: node for node in body.node for out in node.output}
        while (maker := makers.get(name)) is not None and maker.op_type == "Identity":
            name = maker.input[0]
        return name

    def own(self, loop: _Loop) -> _State:
        raise NotImplementedError

    def inner(self, loop: _Loop, value: str, going: str) -> _State:
        raise NotImplementedError


class _Counting(_Kind):
    def __init__(self) -> None:
        super().__init__(elem=TensorProto.INT64)

    def own(self, loop: _Loop) -> _State:
        state = loop.state("turns", loop.before_constant(np.asarray(0, np.int64)))
        loop.inside("Add", [state.inside, loop.inside_constant(np.asarray(1, np.int64))], state.out)
        return state

    def inner(self, loop: _Loop, value: str, going: str) -> _State:
        state = loop.state("most", loop.before_constant(np.asarray(0, np.int64)))
        more = loop.inside("Greater", [value, state.inside])
        loop.inside("Where", [more, value, state.inside], state.out)
        return state


class _Bounding(_Kind):
    def __init__(self, turns: Mapping[str, int]) -> None:
        super().__init__()
        self._turns = turns

    def takes(self, node: onnx.NodeProto) -> bool:
        body, states = body_of(node), len(node.input) - 2
        plain = all(info.type.HasField("tensor_type") for info in body.input[2:])
        return self.fixed(node) or (plain and len(body.output) == 1 + states)

    def own(self, loop: _Loop) -> _State:
        node, body = loop.node, loop.body
        most, ends = node.input[0], body.output[0].name
        last = self.scalar(most) if most else None
        counts = bool(most) and (last is None or last < np.iinfo(np.int32).max)
        state = loop.state("unfinished", loop.begins(counts))
        on = loop.inside("And", [state.inside, loop.inside_scalar(ends)])
        if counts:
            one = loop.inside_constant(np.asarray(1, np.int64))
            next_turn = loop.inside("Add", [body.input[0].name, one])
            limit = loop.inside_scalar(most)
            on = loop.inside("And", [on, loop.inside("Less", [next_turn, limit])])
        loop.inside("Identity", [on], state.out)
        for index, info in enumerate(body.input[2 : 2 + loop.states]):
            if self.source(body, body.output[1 + index].name) == info.name:
                continue
            new = loop.inside("Where", [state.inside, body.output[1 + index].name, info.name])
            loop.body_nodes[-1].metadata_props.add(key=MARK + SELECTS, value="a Loop")
            body.output[1 + index].name = new
        body.output[0].CopyFrom(helper.make_tensor_value_info("", TensorProto.BOOL, []))
        body.output[0].name = loop.inside("Identity", [body.input[1].name])
        turns = self._turns.get(loop.path, self._turns.get("", 1))
        node.input[0] = loop.before_constant(np.asarray(turns, np.int64))
        node.input[1] = ""
        return state

    def inner(self, loop: _Loop, value: str, going: str) -> _State:
        state = loop.state("unfinished_inside", loop.before_constant(np.asarray(False)))
        late = loop.inside("And", [going, value]) if going else value
        loop.inside("Or", [state.inside, late], state.out)
        return state


class _Loop:
    """Writes one Loop anew, in place."""

    def __init__(self, kind: _Kind, node: onnx.NodeProto, path: str) -> None:
        self.node, self.path, self._kind = node, path, kind
        self.body = body_of(node)
        while len(node.input) < 2:
            node.input.append("")
        self.states = len(node.input) - 2
        self.before: list[onnx.NodeProto] = []
        self.body_nodes: list[onnx.NodeProto] = []
        self._fresh = 0

    def write(self) -> tuple[list[onnx.NodeProto], list[Told]]:
        """Nodes to stand before it, and what tells of it and of those in it."""
        kind = self._kind
        fixed = kind.fixed(self.node)
        self.body_nodes, inside = _nodes(kind, self.body.node, self.path, None)
        own = [] if fixed else [kind.own(self)]
        going = own[0].inside if own else ""
        below = [kind.inner(self, one.value, going) for one in inside]
        told = [Told(self.path, state.end) for state in own]
        told += [Told(one.loop, s.end) for one, s in zip(inside, below, strict=True)]
        self._carry([*own, *below])
        del self.body.node[:]
        self.body.node.extend(self.body_nodes)
        return self.before, told

    def _carry(self, states: list[_State]) -> None:
        """Put the states behind those that are there, before what the Loop collects."""
        infos, outs = list(self.body.output), list(self.node.output)
        outs += [self._name("unread") for _ in range(self.states - len(outs))]
        at, elem = self.states, self._kind.elem
        self.node.input.extend(state.start for state in states)
        self.body.input.extend(helper.make_tensor_value_info(s.inside, elem, []) for s in states)
        new = [helper.make_tensor_value_info(s.out, elem, []) for s in states]
        del self.body.output[:], self.node.output[:]
        self.body.output.extend([*infos[: 1 + at], *new, *infos[1 + at :]])
        self.node.output.extend([*outs[:at], *(s.end for s in states), *outs[at:]])

    def begins(self, counts: bool) -> str:
        """Whether there is a first turn."""
        most, going = self.node.input[0], self.node.input[1]
        found = [self._scalar(self.before, going)] if going else []
        if counts:
            zero = self.before_constant(np.asarray(0, np.int64))
            found.append(self._add(self.before, "Less", [zero, self._scalar(self.before, most)]))
        if not found:
            return self.before_constant(np.asarray(True))
        return found[0] if len(found) == 1 else self._add(self.before, "And", found)

    def state(self, name: str, start: str) -> _State:
        stem = self._name(name)
        return _State(start, f"{stem}/in", f"{stem}/out", stem)

    def inside(self, op: str, inputs: list[str], out: str = "") -> str:
        return self._add(self.body_nodes, op, inputs, out)

    def inside_constant(self, data: Array) -> str:
        return self._constant(self.body_nodes, data)

    def inside_scalar(self, value: str) -> str:
        return self._scalar(self.body_nodes, value)

    def before_constant(self, data: Array) -> str:
        return self._constant(self.before, data)

    def _scalar(self, nodes: list[onnx.NodeProto], value: str) -> str:
        """The value without axes: a condition or count may have one of length 1."""
        shape = self._constant(nodes, np.zeros(0, np.int64))
        return self._add(nodes, "Reshape", [value, shape])

    def _constant(self, nodes: list[onnx.NodeProto], data: Array) -> str:
        out = self._name("constant")
        nodes.append(
            helper.make_node("Constant", [], [out], name=out, value=numpy_helper.from_array(data))
        )
        return out

    def _add(self, nodes: list[onnx.NodeProto], op: str, inputs: list[str], out: str = "") -> str:
        out = out or self._name(op.lower())
        nodes.append(helper.make_node(op, inputs, [out], name=out))
        return out

    def _name(self, stem: str) -> str:
        name = ""
        while not name or name in self._kind.names:
            self._fresh += 1
            name = f"{self.path}/{stem}" + (f"_{self._fresh}" if self._fresh > 1 else "")
        return name


def _bytes_of(tensor: onnx.TensorProto) -> int:
    """Bytes of its elements, at 8 each at most."""
    return int(np.prod(tensor.dims, dtype=np.int64)) * 8 if tensor.dims else 8


def _every(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    for node in graph.node:
        yield node
        for inner in subgraphs(node):
            yield from _every(inner)
