"""Writes the integer graph from chosen parameters: types, weights, biases, scale changes, tables.

Operators keep their unit. A scale change is MUL by 1 on the NPU, where a stand-alone QUANTIZE
stays on the CPU (field report, facts of imx95), QUANTIZE elsewhere, and a table from 8 to 16 bits,
for which tflite_runtime 2.14 has no QUANTIZE.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import replace

import numpy as np

from splitter.diagnostics import SplitterError
from splitter.ops.boxes import PICKS
from splitter.ops.registry import Emitter
from splitter.quantize import lookup
from splitter.quantize.kernels import KERNELS, data_inputs, needs_table
from splitter.quantize.long_rows import is_long, write_long_softmax
from splitter.quantize.masks import MARGIN
from splitter.quantize.movement import extremes_asked
from splitter.quantize.parameters import Parameters
from splitter.quantize.picks import write_picks
from splitter.quantize.ranges import Ranges
from splitter.quantize.squares import is_of_squares, write_function_of_squares
from splitter.quantize.weighted import write_weighted
from splitter.quantize.weights import quantize_constant
from splitter.quantize.written_out import (
    COMPARISONS,
    write_comparison,
    write_function_of_two,
    write_negative,
    write_wide_prelu,
    write_wide_rank,
)
from splitter.tflite.types import Array, LiteGraph, Operator, Quantization, Tensor

ONE = Quantization((1.0,), (0,))

STEEP = frozenset(("LOG", "RSQRT", "SQRT"))
"""Functions whose kernel gives way to a table where values lie that they tear apart."""


def convert(
    graph: LiteGraph,
    parameters: Parameters,
    *,
    npu: Collection[str],
    ranges: Ranges,
    fine: Collection[str] = (),
) -> LiteGraph:
    """The integer form of the graph; no float tensor is left. ranges: values seen, for tables.
    fine: units whose weights take two pieces where they compute in 16 bits.

    Raises SplitterError listing every operator that has no integer form.
    """
    writer = Writer(graph, parameters, npu, ranges, fine)
    for index, op in enumerate(graph.operators):
        writer.operator(index, op)
    writer.raise_problems()
    return LiteGraph(graph.inputs, graph.outputs, writer.tensors, tuple(writer.operators))


class Writer:
    """Collects the operators and tensors of the integer graph."""

    def __init__(
        self,
        graph: LiteGraph,
        parameters: Parameters,
        npu: Collection[str],
        ranges: Ranges,
        fine: Collection[str] = (),
    ) -> None:
        self.graph, self.parameters, self.npu, self.ranges = graph, parameters, npu, ranges
        self.fine = fine
        self.tensors: dict[str, Tensor] = {}
        self.operators: list[Operator] = []
        self.problems: list[str] = []
        self.weighed: dict[Hashable, Tensor] = {}
        self._rescaled: dict[tuple[str, int, Quantization, bool], str] = {}
        for name in (*graph.inputs, *graph.outputs):
            self.variable(name)

    def raise_problems(self) -> None:
        if self.problems:
            raise SplitterError(
                f"{len(self.problems)} operators have no integer form:\n  "
                + "\n  ".join(self.problems),
                hint="keep them out of the TFLite parts by cutting before them",
            )

    def operator(self, index: int, op: Operator) -> None:
        if op.code == "CAST":
            self._cast(op)
        elif not any(name in self.parameters.tensors for name in (*op.inputs, *op.outputs)):
            self._copy(op)
        elif op.code == PICKS:
            write_picks(self, index, op)
        elif op.code not in KERNELS:
            self.problems.append(f"{op.code} of {op.unit}")
        elif KERNELS[op.code].weighted:
            write_weighted(self, index, op)
        elif op.code in COMPARISONS:
            write_comparison(self, index, op)
        elif op.code == "NEG":
            write_negative(self, index, op)
        elif op.code == "PRELU" and self.bits_of(op) == 16:
            write_wide_prelu(self, index, op)
        elif op.code in ("ARG_MAX", "ARG_MIN") and self.bits_of(op) == 16:
            write_wide_rank(self, index, op)
        elif op.code == "SOFTMAX" and self.bits_of(op) == 16 and is_long(self, op):
            write_long_softmax(self, index, op)
        elif self._needs_table(op) or (op.code in STEEP and self._is_steep(op)):
            self.table(index, op)
        else:
            self._plain(index, op)

    # -- tensors ------------------------------------------------------------------------------

    def variable(self, name: str) -> str:
        """A tensor of the float graph in its integer type; others as they are."""
        if name and name not in self.tensors:
            tensor = self.graph.tensors[name]
            q = self.parameters.tensors.get(name)
            if q is not None:
                bits = self.parameters.bits[name]
                tensor = replace(tensor, dtype=f"int{bits}", quantization=q)
            elif tensor.dtype == "float32" and tensor.data is None:
                tensor = replace(tensor, dtype="int8", quantization=ONE)
            self.tensors[name] = tensor
        return name

    def add(self, tensor: Tensor) -> str:
        """A new tensor under a free name; an equal one is shared."""
        name, count = tensor.name, 0
        while name in self.tensors and not same(self.tensors[name], tensor):
            count += 1
            name = f"{tensor.name}_{count}"
        self.tensors[name] = replace(tensor, name=name)
        return name

    def bits_of(self, op: Operator) -> int:
        """The width an operator computes in: its output's, else its widest input's."""
        known = self.parameters.bits
        outputs = [known[name] for name in op.outputs if name in known]
        return outputs[0] if outputs else max(known[n] for n in op.inputs if n in known)

    def input(self, index: int, position: int, op: Operator, name: str) -> str:
        """A variable data input, through a change of scale where one was decided."""
        self.variable(name)
        edge = self.parameters.edges.get((index, position))
        if edge is None:
            return name
        return self.rescaled_once(name, *edge, op.unit)

    def rescaled_once(self, name: str, bits: int, target: Quantization, unit: str) -> str:
        """A tensor at another scale, written once for all that ask for it on the same device."""
        key = (name, bits, target, unit in self.npu)
        if key not in self._rescaled:
            self._rescaled[key] = self.rescale(name, bits, target, unit)
        return self._rescaled[key]

    def rescale(self, name: str, bits: int, target: Quantization, unit: str) -> str:
        source = self.tensors[name]
        result = self.add(Tensor(f"{name}/rescaled", source.shape, f"int{bits}", None, target))
        if unit in self.npu and bits == 8 and source.dtype == "int8":
            one = self.add(quantize_constant(f"{name}/one", np.ones(()), 8, None))
            options = {"fused_activation_function": "NONE"}
            self.operators.append(Operator("MUL", (name, one), (result,), options, unit))
        elif bits == 16 and source.dtype == "int8":
            assert source.quantization is not None
            steps = lookup.table(lambda x: x, source.quantization, 8, target, 16)
            self.gather(steps, self.table_index(source, unit), self.tensors[result], unit)
        else:
            self.operators.append(Operator("QUANTIZE", (name,), (result,), {}, unit))
        return result

    def constant(self, op: Operator, position: int, target: Quantization | None) -> str:
        """A constant operand in the operator's width."""
        name = op.inputs[position]
        data = self.graph.tensors[name].data
        assert data is not None
        return self.add(quantize_constant(name, data, self.bits_of(op), target))

    def take(self, made: Emitter, known: Mapping[str, str]) -> None:
        """What was written elsewhere; known: the names here of what it reads and of its results."""
        names = dict(known)
        for name, tensor in made.tensors.items():
            if name not in names:
                names[name] = self.add(replace(tensor, name=f"{name}/integer"))
        for name in known.values():
            self.variable(name)
        for op in made.operators:
            inputs = tuple(names[name] for name in op.inputs)
            outputs = tuple(names[name] for name in op.outputs)
            self.operators.append(replace(op, inputs=inputs, outputs=outputs))

    # -- operators ----------------------------------------------------------------------------

    def _copy(self, op: Operator) -> None:
        for name in (*op.inputs, *op.outputs):
            self.variable(name)
        self.operators.append(op)

    def _plain(self, index: int, op: Operator) -> None:
        """An operator with an integer kernel: same operator on integer tensors."""
        carried = data_inputs(op.code, len(op.inputs))
        tied = self.parameters.tensors.get(op.outputs[0]) if KERNELS[op.code].same else None
        inputs = []
        for position, name in enumerate(op.inputs):
            if position not in carried or not name:
                inputs.append(self.variable(name))
            elif name in self.parameters.tensors:
                inputs.append(self.input(index, position, op, name))
            else:
                inputs.append(self.constant(op, position, tied))
        outputs = tuple(self.variable(name) for name in op.outputs)
        made = replace(op, inputs=tuple(inputs), outputs=outputs)
        self.operators.append(self._repeated(made) if op.code == "TILE" else made)

    def _repeated(self, op: Operator) -> Operator:
        """TILE of 16 bits along axes of length 1, as the BROADCAST_TO that older runtimes have."""
        x, y = self.tensors[op.inputs[0]], self.tensors[op.outputs[0]]
        lengths = zip(x.shape, y.shape, strict=True)
        if x.dtype != "int16" or any(one not in (1, other) for one, other in lengths):
            return op
        shape = Tensor(f"{y.name}/shape", (len(y.shape),), "int32", np.array(y.shape, np.int32))
        return Operator("BROADCAST_TO", (x.name, self.add(shape)), op.outputs, {}, op.unit)

    def _needs_table(self, op: Operator) -> bool:
        return needs_table(op.code, self.bits_of(op))

    def _is_steep(self, op: Operator) -> bool:
        """Whether the kernel, which knows the middle of each step only, is far off near 0."""
        name, out = op.inputs[0], op.outputs[0]
        function = lookup.function_of(self.graph, op)
        q, target = (self.parameters.tensors.get(n) for n in (name, out))
        if op.unit in self.npu or name not in self.ranges or function is None:
            return False
        if q is None or target is None:
            return False
        values = self.ranges[name].values
        return lookup.steep(function, q, self.parameters.bits[name], target, values)

    def table(self, index: int, op: Operator) -> None:
        """A function of one variable as CAST, ADD, GATHER."""
        if is_of_squares(op):
            write_function_of_squares(self, index, op)
            return
        if lookup.is_of_two(op):
            write_function_of_two(self, index, op)
            return
        function = lookup.function_of(self.graph, op)
        variable = [(i, n) for i, n in enumerate(op.inputs) if n in self.parameters.tensors]
        if function is None or len(variable) != 1:
            self.problems.append(f"{op.code} of {op.unit} in {self.bits_of(op)} bits")
            return
        position, name = variable[0]
        source = self.tensors[self.input(index, position, op, name)]
        target = self.tensors[self.variable(op.outputs[0])]
        assert source.quantization is not None
        bits = int(source.dtype[3:])
        masks = self._masks(name)
        if target.dtype in ("bool", "int32"):
            entries = lookup.exact_table(function, source.quantization, bits, target.dtype, masks)
        elif target.quantization is None:
            self.problems.append(f"{op.code} of {op.unit}: output is not quantized")
            return
        else:
            seen, width = self.seen(op), int(target.dtype[3:])
            entries = lookup.table(
                function, source.quantization, bits, target.quantization, width, seen, masks
            )
        self.gather(entries, self.table_index(source, op.unit), target, op.unit)

    def seen(self, op: Operator) -> lookup.Seen | None:
        """Values that the variable inputs of a smooth function took, at the same places of the
        same samples; None where they are not known."""
        names = [name for name in op.inputs if name in self.parameters.tensors]
        known = [self.ranges[name].values for name in names if name in self.ranges]
        shapes = {self.graph.tensors[name].shape for name in names}
        if not lookup.is_smooth(op) or len(known) != len(names) or len(shapes) > 1:
            return None
        values = tuple(one.astype(np.float64) for one in known)
        if len({one.size for one in values}) > 1 or not values[0].size:
            return None
        return lookup.Seen(values, extremes_asked(self.graph, op.outputs[0]))

    def _masks(self, name: str) -> lookup.Masks | None:
        """Where `masks` put very negative values: nothing real lies near."""
        entry = self.ranges.get(name)
        if entry is None or not entry.masked:
            return None
        return entry.low + MARGIN / 2, entry.least

    def gather(self, entries: Array, index: str, target: Tensor, unit: str) -> None:
        """Write target: the entry at each place of the index."""
        q = target.quantization
        values = self.add(Tensor(f"{target.name}/table", entries.shape, target.dtype, entries, q))
        options = {"axis": 0, "batch_dims": 0}
        self.operators.append(Operator("GATHER", (values, index), (target.name,), options, unit))

    def table_index(self, source: Tensor, unit: str) -> str:
        """The 32-bit position in a table for every integer of the source."""
        bits = int(source.dtype[3:])
        wide = self.add(Tensor(f"{source.name}/int32", source.shape, "int32"))
        index = self.add(Tensor(f"{source.name}/index", source.shape, "int32"))
        half = self.add(Tensor(f"half_{bits}", (), "int32", np.array(2 ** (bits - 1), np.int32)))
        if not any(index in op.outputs for op in self.operators):
            self.operators += [
                Operator("CAST", (source.name,), (wide,), {}, unit),
                Operator(
                    "ADD", (wide, half), (index,), {"fused_activation_function": "NONE"}, unit
                ),
            ]
        return index

    def _cast(self, op: Operator) -> None:
        """CAST between float and integer types has another meaning on quantized values."""
        source, target = op.inputs[0], op.outputs[0]
        quantized_in = source in self.parameters.tensors
        quantized_out = target in self.parameters.tensors
        if not quantized_in and not quantized_out:
            self._copy(op)
        elif quantized_in:
            self._cast_to_integer(op)
        else:
            self._cast_from_integer(op)

    def _cast_to_integer(self, op: Operator) -> None:
        """Float to int32 or bool: the real value, truncated, from a table."""
        source = self.tensors[self.variable(op.inputs[0])]
        target = self.graph.tensors[op.outputs[0]]
        assert source.quantization is not None
        half = 2 ** (int(source.dtype[3:]) - 1)
        real = np.arange(-half, half) - source.quantization.zero_point[0]
        entries: Array = np.trunc(real * source.quantization.scale[0])
        entries = (real != 0) if target.dtype == "bool" else entries.astype(target.dtype)
        values = self.add(Tensor(f"{target.name}/table", entries.shape, target.dtype, entries))
        self.variable(op.outputs[0])
        self.operators.append(
            Operator(
                "GATHER",
                (values, self.table_index(source, op.unit)),
                op.outputs,
                {"axis": 0, "batch_dims": 0},
                op.unit,
            )
        )

    def _cast_from_integer(self, op: Operator) -> None:
        """int32 or bool to float: QUANTIZE of the integer seen as a tensor of scale 1."""
        source = self.tensors[self.variable(op.inputs[0])]
        name = source.name
        if source.dtype != "int32":
            name = self.add(Tensor(f"{source.name}/int32", source.shape, "int32"))
            self.operators.append(Operator("CAST", (source.name,), (name,), {}, op.unit))
        self.tensors[name] = replace(self.tensors[name], quantization=ONE)
        self.variable(op.outputs[0])
        self.operators.append(Operator("QUANTIZE", (name,), op.outputs, {}, op.unit))


def same(a: Tensor, b: Tensor) -> bool:
    """Equal in all but the name; variable tensors are equal when their types are."""
    if (a.shape, a.dtype, a.quantization) != (b.shape, b.dtype, b.quantization):
        return False
    if a.data is None or b.data is None:
        return a.data is b.data
    return np.array_equal(a.data, b.data)
