"""Normalized ONNX -> `Graph`: what a unit is, and where channels-last is used.

Decides: which ONNX nodes make one unit, the layout each value is stored in, which transposes
remain. Leaves to others: how a unit is written in TFLite (`splitter.ops`), where it runs.

The units
=========
Inputs are data only; what ONNX passes as constant inputs (shapes, axes, pads, bounds) are attrs as
Python ints, floats, strings and tuples. An absent optional input in the middle is "", trailing ones
are dropped. Axes are never negative and count in the STORED layout of the unit's own input. Weights
keep their ONNX layout (OIHW, scale of length C). dtypes are the ONNX ones (int64 stays "int64").
`activation` is "", "RELU", "RELU6" or "RELU_N1_TO_1". Every output value has its final shape in
`graph.values`, so an attr that only repeats it may be ignored.

Channels-last data, rank 4 [N, H, W, C] (1-D forms come as H = 1 with Reshape units around;
5-D data stays in ONNX layout, channels second):
  Conv             (x, weight[O, I/group, kh, kw], bias[O]?)  strides=(h, w), dilations=(h, w),
                   pads=(top, left, bottom, right), group, activation
  ConvTranspose    (x, weight[I, O/group, kh, kw], bias[O]?)  strides, dilations, pads, group,
                   output_padding=(h, w), activation
  MaxPool          (x)  kernel=(h, w), strides, dilations, pads, ceil_mode: bool, activation
  AveragePool      (x)  as MaxPool, and count_include_pad: bool
  Resize           (x)  sizes=(h, w), scales=(h, w) floats, mode "nearest"|"linear"|"cubic",
                   coordinate_transformation_mode, nearest_mode, cubic_coeff_a, exclude_outside,
                   antialias (only H and W change; any other resize keeps the ONNX layout and has
                   sizes and scales for every axis)
  GridSample       (x, grid[N, ho, wo, 2])  mode "linear"|"nearest"|"cubic", align_corners: bool,
                   padding_mode "zeros"|"border"|"reflection"; out [N, ho, wo, C]
  DepthToSpace     (x)  blocksize, mode "DCR"|"CRD"        SpaceToDepth  (x)  blocksize
  InstanceNormalization (x, scale[C], bias[C])  epsilon
  GroupNormalization    (x, scale[C], bias[C])  epsilon, num_groups
  LRN              (x)  size, alpha, beta, bias
  (GlobalAveragePool, GlobalMaxPool arrive as ReduceMean, ReduceMax over H and W, keepdims;
   BatchNormalization is folded or arrives as Mul and Add.)

Matrix products:
  FullyConnected   (x[..., K], weight[N, K], bias[N]?)  activation; weight constant, any rank of x
  MatMul           (a, b)  adj_x: bool, adj_y: bool (the operand is stored with its last two axes
                   swapped); numpy broadcasting of the leading axes; both variable, or one of them
                   a constant that FullyConnected cannot take

  Attend           (scores, values)  adj_y: softmax of the scores over their last axis, times the
                   values; equal leading axes

Elementwise, numpy broadcasting on the stored shapes (a constant may have a lower rank):
  Add Sub Mul      (a, b)  activation          Div Pow Min Max  (a, b)
  Magnitude        (a, b)  sqrt(a * a + b * b), equal shapes
  Mod              (a, b)  fmod: bool          PRelu (x, slope)
  Equal Greater GreaterOrEqual Less LessOrEqual And Or Xor (a, b) -> bool
  Where            (condition, a, b)
  Relu Sigmoid Tanh Exp Log Sqrt Reciprocal Neg Abs Floor Ceil Round Sign Sin Cos Tan Atan Erf
  Softplus Softsign HardSwish Mish Not IsNaN IsInf Identity   (x)
  Gelu             (x)  approximate "none"|"tanh"
  Elu Celu LeakyRelu ThresholdedRelu (x) alpha     HardSigmoid (x) alpha, beta
  Selu             (x)  alpha, gamma
  Clip             (x)  min, max: float, int or None
  FakeQuantize     (x)  scale: float, zero_point: int, dtype: "int8"|"uint8"|"int16"|"uint16"; the
                   nearest value that the author's quantization holds
  Cast             (x)  to: numpy dtype name

Along an axis:
  Softmax LogSoftmax (x)  axis: always the last one in the stored layout
  LayerNormalization (x, scale, bias?)  axis: the first normalized axis, all after it too; epsilon;
                   centered: bool, True when x has mean zero over these axes by construction
  RMSNormalization (x, scale)  axis, epsilon
  ReduceMean ReduceSum ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceSumSquare
  ReduceLogSum ReduceLogSumExp (x)  axes: tuple, keepdims: bool
  ArgMax ArgMin    (x)  axis, keepdims: bool, select_last_index: bool
  Concat           (a, b, ...)  axis           Split (x)  axis, sizes: tuple; several outputs
  CumSum           (x)  axis, exclusive: bool, reverse: bool
  TopK             (x)  k, axis: always the last one, largest: bool, sorted: bool;
                   outputs (values, indices), "" when unused

Data movement:
  Reshape          (x)  shape                  Transpose (x)  perm
  Slice            (x)  starts, ends, steps: one for every axis, 0 <= start; ends is -1 for "past
                   the first element" with a negative step
  Pad              (x)  pads: ((before, after), ...) for every axis, mode "constant"|"reflect"|
                   "edge"|"wrap", value: float
  Tile             (x)  repeats, one for every axis       Expand (x)  shape, rank of x
  Gather           (data, indices)  axis       GatherElements (data, indices)  axis
  GatherND         (data, indices)  batch_dims
  ScatterND        (data, indices, updates)  reduction
  ScatterElements  (data, indices, updates)  axis, reduction
  OneHot           (indices)  depth, axis, values=(off, on)
  Trilu            (x)  upper: bool, k

Any other ONNX operator becomes a unit of its own name in ONNX layout, all its inputs kept, its
ONNX attributes as attrs; whether it can be lowered is for `lower` and `support` to say.
"""

from __future__ import annotations

from dataclasses import replace

from splitter.graph import Graph
from splitter.layout.assign import assign
from splitter.layout.attention import fuse_attention
from splitter.layout.build import build
from splitter.layout.fuse import fuse_units
from splitter.layout.magnitude import fuse_magnitudes
from splitter.layout.origin import origin_of
from splitter.layout.quantized import fake_quantize
from splitter.layout.units import make_units
from splitter.layout.wiring import wire
from splitter.model import Model
from splitter.normalize.exchange import to_draft, type_of


def layout(model: Model) -> Graph:
    """The graph of a normalized model. Errors: parameters that are computed at run time."""
    draft = to_draft(model.proto)
    for info in model.proto.graph.value_info:
        draft.types[info.name] = type_of(info.type)
    origin = origin_of(draft)
    fake_quantize(draft)
    make_units(draft)
    fuse_units(draft)
    fuse_magnitudes(draft)
    wiring = wire(draft)
    return replace(fuse_attention(build(draft, wiring, assign(wiring))), origin=origin)
