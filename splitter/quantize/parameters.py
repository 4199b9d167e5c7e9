"""Scale and zero point of every activation tensor.

Tensors that same-scale operators tie together form one group with one pair of parameters. A
kernel with fixed output parameters fixes its group. What an operator needs and its input does not
have (another type, the zero point 0 that an NPU asks of BATCH_MATMUL behind a SOFTMAX, a group of
much wider range) becomes a change of scale on that edge, decided here, written by `convert`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from splitter.quantize.affine import affine, usable
from splitter.quantize.clipping import Clip, min_max
from splitter.quantize.kernels import KERNELS, data_inputs, needs_table
from splitter.quantize.lookup import function_of, is_of_two
from splitter.quantize.movement import moved
from splitter.quantize.ranges import Range, Ranges
from splitter.quantize.squares import is_of_squares
from splitter.tflite.types import LiteGraph, Operator, Quantization

WIDER = 2.0
"""A same-scale input whose group is this much wider than itself, and that others read too, keeps
parameters of its own and is rescaled on the edge: under one bit of its precision is at stake
below that."""


@dataclass(frozen=True, slots=True)
class Demands:
    """What the target's compiler asks of operators on the NPU, by operator code.

    zero_point_zero: both activation inputs have zero point 0.
    same_scale: beyond TFLite's own list, input and output share parameters.
    """

    zero_point_zero: frozenset[str] = frozenset()
    same_scale: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Parameters:
    """bits: 8 or 16 by tensor. edges: (operator index, input index) whose input is rescaled to
    the given parameters first. lattice: weights that lie on a grid of integers keep it."""

    tensors: Mapping[str, Quantization]
    bits: Mapping[str, int]
    edges: Mapping[tuple[int, int], tuple[int, Quantization]] = field(default_factory=dict)
    lattice: bool = False


SUM_SHIFT = {"ADD": {8: 20, 16: 15}, "SUB": {8: 20, 16: 15}}
"""By how many bits the kernels shift the inputs up: 2 * input scale / 2**shift must be under the
output scale (tensorflow/lite/kernels/add.cc, sub.cc)."""


class Groups:
    """Union-find over tensor names."""

    def __init__(self) -> None:
        self._parent: dict[str, str] = {}

    def find(self, name: str) -> str:
        root = name
        while self._parent.get(root, root) != root:
            root = self._parent[root]
        while self._parent.get(name, name) != root:
            self._parent[name], name = root, self._parent[name]
        return root

    def join(self, a: str, b: str) -> None:
        root, other = self.find(a), self.find(b)
        if root != other:
            self._parent[other] = root


def ties(op: Operator, *, npu: bool, demands: Demands) -> bool:
    """Whether input and output of the operator share parameters."""
    return KERNELS[op.code].same or (npu and op.code in demands.same_scale)


def fixed_output(op: Operator, bits: int) -> Quantization | None:
    """Parameters that the kernel of the operator writes whatever its range."""
    kernel = KERNELS.get(op.code)
    fixed = None if kernel is None else (kernel.fixed8 if bits == 8 else kernel.fixed16)
    return None if fixed is None else Quantization((fixed[0],), (fixed[1],))


class Chooser:
    """Builds `Parameters` for one graph; the steps are the methods called by `choose`."""

    def __init__(
        self,
        graph: LiteGraph,
        ranges: Ranges,
        *,
        npu: Collection[str],
        demands: Demands,
        int16: Collection[str],
        clip: Clip,
        authored: Mapping[str, Quantization] = {},
    ) -> None:
        self.graph, self.ranges, self.demands, self.clip = graph, ranges, demands, clip
        self.npu = [op.unit in npu for op in graph.operators]
        self.bits = {name: 16 if name in int16 else 8 for name in ranges}
        self._narrow_where_no_kernel_is()
        self.groups = Groups()
        self.edges: dict[tuple[int, int], tuple[int, Quantization]] = {}
        self.broken: set[tuple[int, int]] = set()
        self.symmetric: set[str] = set()
        self.fixed: dict[str, Quantization] = dict(authored)
        self.bounds: dict[tuple[int, bool, str], tuple[float, float]] = {}
        self.lattice = bool(authored)

    def choose(self) -> Parameters:
        self._share_bits()
        self._find_fixed()
        self._tie_moves()
        self._tie_joins()
        self._ask_zero_points()
        tensors = self._group_parameters()
        self._widen_small_sums(tensors)
        self._rescale_edges(tensors)
        return Parameters(tensors, self.bits, self.edges, self.lattice)

    def _narrow_where_no_kernel_is(self) -> None:
        """8 bits out of operators that exist in no other width and are no table."""
        for op in self.graph.operators:
            wide = op.code not in KERNELS or KERNELS[op.code].int16
            if not wide and function_of(self.graph, op) is None and not is_of_two(op):
                self.bits.update({name: 8 for name in op.outputs if name in self.bits})

    def _data(self, index: int) -> list[tuple[int, str]]:
        """(input index, tensor) of the quantized, variable inputs of an operator."""
        op = self.graph.operators[index]
        if op.code not in KERNELS:
            return []
        return [
            (i, op.inputs[i])
            for i in data_inputs(op.code, len(op.inputs))
            if op.inputs[i] in self.ranges
        ]

    def _share_bits(self) -> None:
        """Data movement keeps the type: 16 bits spread through same-scale operators."""
        changed = True
        while changed:
            changed = False
            for index, op in enumerate(self.graph.operators):
                names = [n for n in op.outputs if n in self.ranges]
                if op.code not in KERNELS or not KERNELS[op.code].same or not names:
                    continue
                wide = {self.bits[n] for _, n in self._data(index)}
                if KERNELS[op.code].int16 and wide == {16} and self.bits[names[0]] == 8:
                    self.bits.update(dict.fromkeys(names, 16))
                    changed = True

    def _find_fixed(self) -> None:
        for op in self.graph.operators:
            for name in op.outputs:
                if name in self.ranges and (fixed := fixed_output(op, self.bits[name])):
                    self.fixed[name] = fixed

    def _tie_moves(self) -> None:
        """Same-scale operators with one data input: input and outputs are one group."""
        for index, op in enumerate(self.graph.operators):
            inputs = self._data(index)
            if op.code in KERNELS and len(inputs) == 1 and self._ties(index):
                for name in op.outputs:
                    if name not in self.ranges or self.bits[name] != self.bits[inputs[0][1]]:
                        continue
                    if not self._join(inputs[0][1], name):
                        self.broken.add((index, inputs[0][0]))

    def _join(self, a: str, b: str) -> bool:
        """One group of both, unless their parameters are fixed and differ."""
        fixed = [self.fixed.get(self.groups.find(name)) for name in (a, b)]
        if fixed[0] and fixed[1] and fixed[0] != fixed[1]:
            return False
        self.groups.join(a, b)
        if one := fixed[0] or fixed[1]:
            self.fixed[self.groups.find(a)] = one
        return True

    def _ties(self, index: int) -> bool:
        op = self.graph.operators[index]
        return ties(op, npu=self.npu[index], demands=self.demands)

    def _tie_joins(self) -> None:
        """Same-scale operators with several data inputs: join the groups that go together."""
        for index, op in enumerate(self.graph.operators):
            inputs = self._data(index)
            if op.code not in KERNELS or len(inputs) < 2 or not self._ties(index):
                continue
            output = op.outputs[0]
            width = max(self._width(name) for _, name in [*inputs, (0, output)])
            for i, name in inputs:
                if self._goes_along(name, output, width):
                    self._join(output, name)
                else:
                    self.broken.add((index, i))

    def _width(self, name: str) -> float:
        low, high = self._extent(name)
        return high - low

    def _extent(self, name: str) -> tuple[float, float]:
        entry = self.ranges[name]
        return min(entry.low, 0.0), max(entry.high, 0.0)

    def _goes_along(self, name: str, output: str, width: float) -> bool:
        """Whether an input may share the parameters of a multi-input operator's output."""
        if self.bits[name] != self.bits[output]:
            return False
        mine = self.fixed.get(self.groups.find(name))
        other = self.fixed.get(self.groups.find(output))
        if mine and other:
            return mine == other
        if mine or other:
            return False
        return not (self._read_elsewhere(name) and self._width(name) * WIDER < width)

    def _read_elsewhere(self, name: str) -> bool:
        """Whether something else reads the tensor too, or what data movement made it of."""
        while len(self.graph.consumers[name]) < 2:
            maker = self.graph.producers.get(name)
            moved_from = [] if maker is None else moved(self.graph, maker)
            if len(moved_from) != 1:
                return False
            name = moved_from[0]
        return True

    def _ask_zero_points(self) -> None:
        """Zero point 0 where the NPU asks for it; a fixed group is rescaled on the edge."""
        for index, op in enumerate(self.graph.operators):
            if not self.npu[index] or op.code not in self.demands.zero_point_zero:
                continue
            for i, name in self._data(index):
                root = self.groups.find(name)
                if root in self.fixed and self.fixed[root].zero_point != (0,):
                    low, high = self.clip(self.ranges[name], True, None)
                    target = affine(low, high, bits=8, symmetric=True)
                    self.edges[index, i] = (8, target)
                else:
                    self.symmetric.add(root)

    def _group_parameters(self) -> dict[str, Quantization]:
        members: dict[str, list[str]] = {}
        for name in self.ranges:
            members.setdefault(self.groups.find(name), []).append(name)
        tensors: dict[str, Quantization] = {}
        for root, names in members.items():
            chosen = self.fixed.get(root)
            if chosen is None:
                symmetric = any(self.groups.find(s) == root for s in self.symmetric)
                low, high = self._group_range(names, symmetric)
                chosen = affine(low, high, bits=self.bits[names[0]], symmetric=symmetric)
            tensors.update(dict.fromkeys(names, chosen))
        return tensors

    def _widen_small_sums(self, tensors: dict[str, Quantization]) -> None:
        """The kernels of ADD and SUB end the process when the output's step is far below the
        inputs' steps; a result that small is lost in their rounding anyway. Where the output's
        step is decided (by the author of a quantized model), the inputs take a finer one.
        """
        for index, op in enumerate(self.graph.operators):
            out = op.outputs[0] if op.outputs else ""
            if op.code not in SUM_SHIFT or out not in tensors:
                continue
            steps = [self._step(tensors, name, self.bits[out]) for name in op.inputs]
            least = 2 * max(steps) / 2.0 ** SUM_SHIFT[op.code][self.bits[out]] * 1.01
            if tensors[out].scale[0] >= least:
                continue
            root = self.groups.find(out)
            if root in self.fixed:
                finest = Quantization((max(steps) * tensors[out].scale[0] / least,), (0,))
                for i, name in self._data(index):
                    if tensors[name].scale[0] > finest.scale[0]:
                        self.edges[index, i] = (self.bits[out], finest)
                continue
            wider = Quantization((usable(least),), tensors[out].zero_point)
            names = [name for name in tensors if self.groups.find(name) == root]
            tensors.update(dict.fromkeys(names, wider))

    def _step(self, tensors: Mapping[str, Quantization], name: str, bits: int) -> float:
        """The scale of an operand; a constant's as `convert` will choose it, or more."""
        if name in tensors:
            return tensors[name].scale[0]
        data = self.graph.tensors[name].data
        largest = 0.0 if data is None or not data.size else float(abs(data).max())
        return largest / float(2 ** (bits - 1) - 1)

    def _group_range(self, names: list[str], symmetric: bool) -> tuple[float, float]:
        reader = self._read_by(names[-1]) if len(names) == 1 else None
        if self.bits[names[0]] != 8:  # 16 bits have room for all
            bounds = [min_max(self.ranges[name], symmetric) for name in names]
        else:
            bounds = [self._bounds(self.ranges[name], symmetric, reader) for name in names]
        return min(b[0] for b in bounds), max(b[1] for b in bounds)

    def _bounds(
        self, entry: Range, symmetric: bool, reader: Operator | None
    ) -> tuple[float, float]:
        """The bounds to cover, found once for all steps of a recurrence, which share a range."""
        function = None if reader is None else function_of(self.graph, reader)
        code = ""
        if reader is not None and function is not None:
            if len(reader.inputs) > 1 or reader.options:
                return self.clip(entry, symmetric, function)
            code = reader.code
        key = (id(entry), symmetric, code)
        if key not in self.bounds:
            self.bounds[key] = self.clip(entry, symmetric, function)
        return self.bounds[key]

    def _read_by(self, name: str) -> Operator | None:
        """What alone reads the tensor."""
        readers = self.graph.consumers[name]
        if len(readers) != 1 or name in self.graph.outputs:
            return None
        return readers[0]

    def _rescale_edges(self, tensors: Mapping[str, Quantization]) -> None:
        """Edges whose input has another type or other parameters than the operator needs."""
        for index, op in enumerate(self.graph.operators):
            inputs = self._data(index)
            if not inputs:
                continue
            floats = [name for name in op.outputs if name in self.ranges]
            bits = self.bits[floats[0]] if floats else max(self.bits[n] for _, n in inputs)
            if is_of_squares(op):
                self._share_scale(index, tensors)
                continue
            if is_of_two(op):
                bits = 8
            elif needs_table(op.code, bits):
                continue  # a table is read by an input of any width: see lookup.table
            for i, name in inputs:
                if (index, i) in self.broken:
                    self.edges[index, i] = (bits, tensors[op.outputs[0]])
                elif self.bits[name] != bits and (index, i) not in self.edges:
                    clip = self.clip if bits == 8 else min_max
                    low, high = clip(self.ranges[name], False, None)
                    fixed = tensors[floats[0]] if floats and self._ties(index) else None
                    self.edges[index, i] = (
                        bits,
                        fixed or affine(low, high, bits=bits, symmetric=False),
                    )

    def _share_scale(self, index: int, tensors: Mapping[str, Quantization]) -> None:
        """Both inputs in 16 bits of one scale, the wider one's."""
        inputs = list(enumerate(self.graph.operators[index].inputs))
        bounds = [min_max(self.ranges[name], True, None) for _, name in inputs]
        wide = [affine(*bound, bits=16, symmetric=True) for bound in bounds]
        wide += [tensors[name] for _, name in inputs if self.bits[name] == 16]
        widest = max(wide, key=lambda q: q.scale[0])
        for i, name in inputs:
            if self.bits[name] != 16 or tensors[name] != widest:
                self.edges[index, i] = (16, widest)


def choose(
    graph: LiteGraph,
    ranges: Ranges,
    *,
    npu: Collection[str],
    demands: Demands,
    int16: Collection[str] = (),
    clip: Clip,
    authored: Mapping[str, Quantization] = {},
) -> Parameters:
    """Parameters of every variable float tensor of the graph.

    npu: names of the units on the NPU. int16: tensor names of 16 bits. clip: range -> the bounds
    to cover, given whether the scale will be symmetric. authored: parameters that are decided.
    """
    chooser = Chooser(
        graph, ranges, npu=npu, demands=demands, int16=int16, clip=clip, authored=authored
    )
    return chooser.choose()
