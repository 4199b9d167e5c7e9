"""LSTM, GRU and RNN unrolled over a static sequence length.

The products with the input are one FULLY_CONNECTED over all steps; each step adds the product with
the state. Formulas and gate order (iofc, zrh) are those of the ONNX operator specification. Every
step's tensors have a scale of their own, so int8 does not drift more than it must.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from splitter.graph import Array, Graph, Unit
from splitter.ops.elementwise import one, two
from splitter.ops.functions import hard_sigmoid, softplus, softsign
from splitter.ops.linear import fully_connected
from splitter.ops.registry import Emitter, Lowering, Op

LONGEST = 512
"""Steps times directions that are unrolled (about 15 operators each)."""

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
DEFAULTS = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh"), "RNN": ("Tanh",)}
ACTIVATIONS = {"Sigmoid": "LOGISTIC", "Tanh": "TANH", "Relu": "RELU"}
COMPOSED = {"HardSigmoid": hard_sigmoid, "Softplus": softplus, "Softsign": softsign}


@dataclass(frozen=True, slots=True)
class Direction:
    """Weights of one direction: W [G H, I], R [G H, H], biases [G H], peepholes [3 H] or None."""

    w: Array
    r: Array
    wb: Array
    rb: Array
    peepholes: Array | None
    activations: tuple[str, ...]
    reverse: bool


@dataclass(frozen=True, slots=True)
class Cell:
    """What a step needs beside its state: the unit's attributes and one direction."""

    unit: Unit
    direction: Direction
    hidden: int
    shared: dict[int, tuple[str, str]] = field(default_factory=dict)

    def activate(self, e: Emitter, x: str, index: int) -> str:
        """Activation f, g or h; `clip` bounds its input."""
        bound = self.unit.attrs.get("clip")
        if bound is not None:
            x = two(e, "MINIMUM", x, e.const(float(bound), "clip"))
            x = two(e, "MAXIMUM", x, e.const(-float(bound), "clip"))
        name = self.direction.activations[index]
        if name in ACTIVATIONS:
            return one(e, ACTIVATIONS[name], x)
        return COMPOSED[name](e, x, Unit("", name, (), ()))


State = tuple[str, ...]
Step = Callable[[Emitter, Cell, Sequence[str], State], State]


def _recurrent(e: Emitter, cell: Cell, state: str, gate: int) -> str:
    """state R^T + bias for one gate; the constants are shared by all steps."""
    d = cell.direction
    if gate not in cell.shared:
        rows = slice(gate * cell.hidden, (gate + 1) * cell.hidden)
        cell.shared[gate] = (e.const(d.r[rows], "recurrent"), e.const(d.rb[rows], "bias"))
    return fully_connected(e, state, *cell.shared[gate], hint="recurrent")


def _gate(e: Emitter, cell: Cell, x: str, state: str, gate: int) -> str:
    return two(e, "ADD", x, _recurrent(e, cell, state, gate), hint="gate")


def _peep(e: Emitter, cell: Cell, gate: str, state: str, index: int) -> str:
    """The gate plus a peephole's product with the cell state."""
    p = cell.direction.peepholes
    if p is None:
        return gate
    part = p[index * cell.hidden : (index + 1) * cell.hidden]
    return two(e, "ADD", gate, two(e, "MUL", state, e.const(part, "peephole")))


def lstm_step(e: Emitter, cell: Cell, x: Sequence[str], state: State) -> State:
    """x: input parts [B, H] of the gates i o f c; state (h, c)."""
    h, c = state
    i, o, f, g = (_gate(e, cell, part, h, index) for index, part in enumerate(x))
    i = cell.activate(e, _peep(e, cell, i, c, 0), 0)
    if cell.unit.attrs.get("input_forget"):
        f = two(e, "SUB", e.const(1.0, "one"), i)
    else:
        f = cell.activate(e, _peep(e, cell, f, c, 2), 0)
    g = cell.activate(e, g, 1)
    c = two(e, "ADD", two(e, "MUL", f, c), two(e, "MUL", i, g), hint="cell")
    o = cell.activate(e, _peep(e, cell, o, c, 1), 0)
    return two(e, "MUL", o, cell.activate(e, c, 2), hint="hidden"), c


def gru_step(e: Emitter, cell: Cell, x: Sequence[str], state: State) -> State:
    """x: input parts [B, H] of the gates z r h; state (h,)."""
    (h,) = state
    z = cell.activate(e, _gate(e, cell, x[0], h, 0), 0)
    r = cell.activate(e, _gate(e, cell, x[1], h, 1), 0)
    if cell.unit.attrs.get("linear_before_reset"):
        inner = two(e, "MUL", r, _recurrent(e, cell, h, 2))
    else:
        inner = _recurrent(e, cell, two(e, "MUL", r, h), 2)
    candidate = cell.activate(e, two(e, "ADD", x[2], inner), 1)
    change = two(e, "MUL", z, two(e, "SUB", h, candidate))
    return (two(e, "ADD", candidate, change, hint="hidden"),)


def rnn_step(e: Emitter, cell: Cell, x: Sequence[str], state: State) -> State:
    (h,) = state
    return (cell.activate(e, _gate(e, cell, x[0], h, 0), 0),)


STEPS: dict[str, Step] = {"LSTM": lstm_step, "GRU": gru_step, "RNN": rnn_step}


def _directions(graph: Graph, unit: Unit) -> list[Direction]:
    names = (*unit.inputs, *[""] * 8)[:8]
    w, r = graph.constants[names[1]], graph.constants[names[2]]
    count, rows = w.shape[0], w.shape[1]
    bias = graph.constants[names[3]] if names[3] else np.zeros((count, 2 * rows), w.dtype)
    peepholes = graph.constants[names[7]] if names[7] and unit.op == "LSTM" else None
    how = unit.attrs.get("direction", "forward")
    each = len(DEFAULTS[unit.op])
    activations = tuple(unit.attrs.get("activations") or DEFAULTS[unit.op] * count)
    return [
        Direction(
            w[d],
            r[d],
            bias[d, :rows],
            bias[d, rows:],
            None if peepholes is None else peepholes[d],
            tuple(activations[d * each : (d + 1) * each]),
            how == "reverse" or d == 1,
        )
        for d in range(count)
    ]


def _initial(e: Emitter, unit: Unit, index: int, d: int, shape: tuple[int, int]) -> str:
    """The initial state [B, H] of direction d; zeros when it is absent."""
    name = unit.inputs[index] if len(unit.inputs) > index else ""
    if not name:
        return e.const(np.zeros(shape), "zeros")
    state = e.value(name)
    begin = (0, d, 0) if _batch_first(unit) else (d, 0, 0)
    size = (shape[0], 1, shape[1]) if _batch_first(unit) else (1, *shape)
    return e.reshape(e.slice(state, begin, size), shape)


def _batch_first(unit: Unit) -> bool:
    return bool(unit.attrs.get("layout", 0))


def emit_unrolled(e: Emitter, unit: Unit) -> None:
    x = e.value(unit.inputs[0])
    if _batch_first(unit):
        x = e.transpose(x, (1, 0, 2))
    steps, batch, width = e.shape(x)
    flat = e.reshape(x, (steps * batch, width))
    hidden = int(unit.attrs["hidden_size"])
    results: list[list[str]] = []
    finals: list[State] = []
    for d, direction in enumerate(_directions(e.graph, unit)):
        cell = Cell(unit, direction, hidden)
        state: State = tuple(
            _initial(e, unit, index, d, (batch, hidden))
            for index in ((5, 6) if unit.op == "LSTM" else (5,))
        )
        inputs = _input_parts(e, unit, direction, flat, hidden)
        outputs = [""] * steps
        for t in reversed(range(steps)) if direction.reverse else range(steps):
            with e.step(str(d)):
                parts = [e.slice(gate, (t * batch, 0), (batch, hidden)) for gate in inputs]
                state = STEPS[unit.op](e, cell, parts, state)
            outputs[t] = state[0]
        results.append(outputs)
        finals.append(state)
    _write_outputs(e, unit, results, finals)


def _input_parts(e: Emitter, unit: Unit, direction: Direction, x: str, hidden: int) -> list[str]:
    """x [T B, I] times the input weights of each gate -> [T B, H] each, with a scale of its own."""
    parts = []
    for gate in range(GATES[unit.op]):
        rows = slice(gate * hidden, (gate + 1) * hidden)
        weight, bias = e.const(direction.w[rows], "input"), e.const(direction.wb[rows], "bias")
        parts.append(fully_connected(e, x, weight, bias, hint="input"))
    return parts


def _write_outputs(e: Emitter, unit: Unit, results: list[list[str]], finals: list[State]) -> None:
    """Y [T, D, B, H] (or [B, T, D, H]), Y_h and Y_c [D, B, H] (or [B, D, H])."""
    batch, hidden = e.shape(results[0][0])
    first = _batch_first(unit)
    names = (*unit.outputs, "", "", "")[:3]
    if names[0]:
        shape = (batch, 1, 1, hidden) if first else (1, 1, batch, hidden)
        steps = [
            e.concat([e.reshape(r[t], shape) for r in results], 2 if first else 1)
            if len(results) > 1
            else e.reshape(results[0][t], shape)
            for t in range(len(results[0]))
        ]
        _join(e, steps, 1 if first else 0, names[0])
    shape3 = (batch, 1, hidden) if first else (1, batch, hidden)
    for index, name in enumerate(names[1:]):
        if name and index < len(finals[0]):
            _join(e, [e.reshape(f[index], shape3) for f in finals], 1 if first else 0, name)


def _join(e: Emitter, parts: list[str], axis: int, out: str) -> None:
    if len(parts) == 1:
        e.reshape(parts[0], e.shape(parts[0]), out=out)
    else:
        e.concat(parts, axis, out=out)


def _applies(graph: Graph, unit: Unit) -> str | None:
    names = (*unit.inputs, *[""] * 8)[:8]
    if any(name and name not in graph.constants for name in (*names[1:4], names[7])):
        return "its weights are not constant"
    shape = graph.shape(names[0])
    steps, batch = (shape[1], shape[0]) if _batch_first(unit) else shape[:2]
    directions = len(graph.constants[names[1]])
    if steps * directions > LONGEST:
        return f"{steps} steps in {directions} directions; at most {LONGEST} are unrolled"
    if names[4]:
        lengths = graph.constants.get(names[4])
        if lengths is None or np.any(lengths.reshape(-1)[:batch] != steps):
            return "sequences shorter than the data"
    used = unit.attrs.get("activations") or ()
    unknown = sorted(set(used) - set(ACTIVATIONS) - set(COMPOSED))
    if unknown:
        return f"activation {', '.join(unknown)}"
    if unit.attrs.get("activation_alpha") or unit.attrs.get("activation_beta"):
        return "activations with parameters of their own"
    return None


OPS = tuple(Op(name, (Lowering("unrolled", emit_unrolled, applies=_applies),)) for name in GATES)
