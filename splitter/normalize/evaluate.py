"""Computes the outputs of one node from constants: numpy for shape arithmetic, else ONNX Runtime.

ONNX Runtime is what the whole model is compared with, so what it computes is right by definition.
Its session costs about a millisecond, so the operators that exporters use by the hundred are here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from numpy.typing import NDArray
from onnxruntime.capi import onnxruntime_pybind11_state as state

from splitter.draft import Draft, Node
from splitter.failures import ONNX_FAILURES
from splitter.normalize.exchange import elem_type, node_proto

Array = NDArray[Any]
Attrs = dict[str, Any]

NEVER = {
    "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial",
    "Bernoulli", "Loop", "Scan", "If",
}  # fmt: skip


def evaluate(draft: Draft, node: Node) -> list[Array] | None:
    """The outputs, or None when the node cannot be computed here."""
    if node.op in NEVER or node.captured:
        return None
    inputs = [draft.constants.get(name) for name in node.inputs]
    direct = _DIRECT.get(node.op) if not node.domain else None
    if direct is not None and len(node.outputs) == 1:
        result = direct(inputs, node.attrs)
        if result is not None:
            return [np.asarray(result)]
    return _run(draft, node)


def _run(draft: Draft, node: Node) -> list[Array] | None:
    feeds = {n: draft.constants[n] for n in node.inputs if n}
    outputs = [n for n in node.outputs if n]
    infos = [onnx.helper.make_tensor_value_info(n, elem_type(a.dtype.name), a.shape)
             for n, a in feeds.items()]  # fmt: skip
    results = [onnx.ValueInfoProto(name=n) for n in outputs]
    graph = onnx.helper.make_graph([node_proto(node)], "one", infos, results)
    imports = [
        onnx.helper.make_opsetid(d, v) for d, v in {**draft.domains, "": draft.opset}.items()
    ]
    model = onnx.helper.make_model(graph, opset_imports=imports, ir_version=10)
    try:
        values = dict(zip(outputs, session(model).run(outputs, feeds), strict=True))
    except ONNX_FAILURES:
        return None
    return [np.asarray(values[n]) if n else np.zeros(0) for n in node.outputs]


@cache
def _schemas() -> frozenset[tuple[str, str]]:
    known = state.get_all_operator_schema()
    return frozenset((schema.domain, schema.name) for schema in known)


def runnable(op: str, domain: str) -> bool:
    """Whether ONNX Runtime has an operator of that name."""
    return ({"ai.onnx": ""}.get(domain, domain), op) in _schemas()


def session(model: onnx.ModelProto) -> ort.InferenceSession:
    """A session of ONNX Runtime that computes the graph as it is written, on one thread."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def _binary(
    function: Callable[[Array, Array], Any],
) -> Callable[[list[Any], Attrs], Any]:
    def compute(inputs: list[Any], _: Attrs) -> Any:
        with np.errstate(all="ignore"):
            return np.asarray(function(inputs[0], inputs[1]))

    return compute


def _unary(function: Callable[[Array], Any]) -> Callable[[list[Any], Attrs], Any]:
    def compute(inputs: list[Any], _: Attrs) -> Any:
        with np.errstate(all="ignore"):
            return np.asarray(function(inputs[0])).astype(inputs[0].dtype, copy=False)

    return compute


def _div(a: Array, b: Array) -> Array:
    if np.issubdtype(a.dtype, np.integer):
        return np.asarray(np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b)), a.dtype)
    return np.asarray(a / b)


def _cast(inputs: list[Any], attrs: Attrs) -> Any:
    to = attrs["to"]
    if to not in _PLAIN or inputs[0].dtype == object or attrs.get("saturate", 1) != 1:
        return None
    return inputs[0].astype(onnx.helper.tensor_dtype_to_np_dtype(to))


def _slice(inputs: list[Any], _: Attrs) -> Any:
    data, starts, ends = inputs[0], inputs[1].reshape(-1), inputs[2].reshape(-1)
    given = inputs[3] if len(inputs) > 3 else None
    axes = range(len(starts)) if given is None else given.reshape(-1)
    given = inputs[4] if len(inputs) > 4 else None
    steps = np.ones(len(starts), int) if given is None else given.reshape(-1)
    index: list[Any] = [slice(None)] * data.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        stop = None if step < 0 and end <= -data.shape[axis] - 1 else int(end)
        index[int(axis)] = slice(int(start), stop, int(step))
    return np.asarray(data[tuple(index)])


def _reshape(inputs: list[Any], attrs: Attrs) -> Any:
    data, shape = inputs[0], [int(d) for d in inputs[1].reshape(-1)]
    if not attrs.get("allowzero", 0):
        shape = [data.shape[i] if d == 0 else d for i, d in enumerate(shape)]
    return data.reshape(shape)


def _unsqueeze(inputs: list[Any], _: Attrs) -> Any:
    return np.expand_dims(inputs[0], tuple(int(a) for a in inputs[1].reshape(-1)))


def _squeeze(inputs: list[Any], _: Attrs) -> Any:
    axes = inputs[1] if len(inputs) > 1 else None
    return np.squeeze(inputs[0], None if axes is None else tuple(int(a) for a in axes.reshape(-1)))


def _fill(inputs: list[Any], attrs: Attrs) -> Any:
    value = np.asarray(attrs.get("value", np.zeros(1, np.float32))).reshape(-1)
    return np.full(tuple(int(d) for d in inputs[0].reshape(-1)), value[0], value.dtype)


def _expand(inputs: list[Any], _: Attrs) -> Any:
    shape = np.broadcast_shapes(inputs[0].shape, tuple(int(d) for d in inputs[1].reshape(-1)))
    return np.ascontiguousarray(np.broadcast_to(inputs[0], shape)).reshape(shape)


def _gather(inputs: list[Any], attrs: Attrs) -> Any:
    axis, index = attrs.get("axis", 0), inputs[1].astype(np.int64)
    length = inputs[0].shape[axis]
    if index.size and not (-length <= index.min() and index.max() < length):
        return None  # ONNX Runtime has nothing there either
    return np.take(inputs[0], index, axis=axis)


def _concat(inputs: list[Any], attrs: Attrs) -> Any:
    return np.concatenate(inputs, axis=attrs["axis"])


def _transpose(inputs: list[Any], attrs: Attrs) -> Any:
    return np.ascontiguousarray(np.transpose(inputs[0], attrs.get("perm")))


def _prod(inputs: list[Any], attrs: Attrs) -> Any:
    axes = inputs[1] if len(inputs) > 1 else None
    if axes is None and attrs.get("noop_with_empty_axes", 0):
        return inputs[0]
    where = None if axes is None else tuple(int(a) for a in axes.reshape(-1))
    keep = bool(attrs.get("keepdims", 1))
    return np.prod(inputs[0], axis=where, keepdims=keep, dtype=inputs[0].dtype)


def _range(inputs: list[Any], _: Attrs) -> Any:
    start, limit, delta = (x.reshape(-1)[0] for x in inputs)
    count = max(0, int(np.ceil((float(limit) - float(start)) / float(delta))))
    return (start + np.arange(count, dtype=inputs[0].dtype) * delta).astype(inputs[0].dtype)


_PLAIN = {
    elem_type(name)
    for name in (
        "float32",
        "float64",
        "float16",
        "int64",
        "int32",
        "int16",
        "int8",
        "uint8",
        "bool",
    )
}

_DIRECT: dict[str, Callable[[list[Any], Attrs], Any]] = {
    "Add": _binary(np.add), "Sub": _binary(np.subtract), "Mul": _binary(np.multiply),
    "Div": _binary(_div), "Equal": _binary(np.equal), "Greater": _binary(np.greater),
    "Less": _binary(np.less), "GreaterOrEqual": _binary(np.greater_equal),
    "LessOrEqual": _binary(np.less_equal), "And": _binary(np.logical_and),
    "Or": _binary(np.logical_or), "Not": _unary(np.logical_not), "Neg": _unary(np.negative),
    "Sqrt": _unary(np.sqrt), "Floor": _unary(np.floor), "Ceil": _unary(np.ceil),
    "Identity": lambda inputs, _: inputs[0], "Cast": _cast, "Slice": _slice, "Reshape": _reshape,
    "Unsqueeze": _unsqueeze, "Squeeze": _squeeze, "ConstantOfShape": _fill, "Expand": _expand,
    "Gather": _gather, "Concat": _concat, "Transpose": _transpose, "ReduceProd": _prod,
    "Where": lambda inputs, _: np.where(inputs[0], inputs[1], inputs[2]), "Range": _range,
    "Reciprocal": _unary(lambda x: np.asarray(1, x.dtype) / x),
}  # fmt: skip
