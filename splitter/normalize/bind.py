"""Makes every model input static: `--shape NAME=1x3x384x384`, or the file's own lengths."""

from __future__ import annotations

from collections.abc import Mapping

import onnx

from splitter.diagnostics import SplitterError, nearest
from splitter.draft import Draft, Type

STRANGE = ("BFLOAT16", "FLOAT8", "FLOAT4", "INT4", "UINT4", "INT2", "UINT2", "COMPLEX")
"""How the names of ONNX types begin that no input or output may have."""


def bind_shapes(
    draft: Draft, proto: onnx.ModelProto, shapes: Mapping[str, tuple[int, ...]]
) -> None:
    """Set the shapes of the inputs. Errors: unknown name, clash with the file, bad axes."""
    free: dict[str, list[int | str] | None] = {
        v.name: _dims(v) for v in proto.graph.input if v.name in draft.inputs
    }
    if not free or not proto.graph.node:
        raise SplitterError(
            f"the model has no {'operators' if free else 'inputs'}",
            hint="there is nothing to split: give a model that computes something from its inputs",
        )
    problems: list[str] = []
    hints: list[str] = []
    for name, shape in shapes.items():
        if name not in free:
            problems.append(f"--shape names {name}, which is no input")
            hints.append(nearest(name, free))
        elif (clash := _clash(free[name], shape)) is not None:
            problems.append(f"--shape {name}={_times(shape)} does not fit the file: {clash}")
    unbound = {
        name: dims
        for name, dims in free.items()
        if name not in shapes and (dims is None or any(isinstance(d, str) for d in dims))
    }
    for name, dims in unbound.items():
        if dims is None:
            problems.append(f"input {name} has no shape in the file")
        else:
            axes = ", ".join(f"axis {i} ({d})" for i, d in enumerate(dims) if isinstance(d, str))
            problems.append(f"input {name} {_written(dims)} has free dimensions: {axes}")
        hints.append(f"--shape {name}={_example(dims)}")
    for name, dims in free.items():
        if name not in shapes and dims is not None and 0 in dims:
            problems.append(f"input {name} {_written(dims)} has an axis of length 0: it is empty")
            hints.append("export the model with lengths of at least 1")
    if problems:
        raise SplitterError(
            "shapes must be static: " + "; ".join(problems),
            hint=" ".join(dict.fromkeys(hints)),
        )
    texts = [name for name in draft.inputs if draft.is_text(name)]
    if texts:
        raise SplitterError(
            f"inputs of strings: {', '.join(texts)}",
            hint="end the text's own steps before the model, which then starts with numbers",
        )
    _refuse_types(proto)
    for name in draft.inputs:
        known = draft.types.get(name)
        if known is None:
            raise SplitterError("the input is not a tensor", where=name, hint="give a tensor model")
        draft.types[name] = Type(known.dtype, tuple(shapes.get(name, known.shape or ())))
    for name in draft.outputs:
        if name not in free:
            draft.types.pop(name, None)


def _refuse_types(proto: onnx.ModelProto) -> None:
    """Error for inputs and outputs of a type that NumPy's arrays do not have."""
    kinds = onnx.TensorProto.DataType
    strange = [
        f"{info.name} is {kinds.Name(info.type.tensor_type.elem_type)}"
        for info in (*proto.graph.input, *proto.graph.output)
        if kinds.Name(info.type.tensor_type.elem_type).startswith(STRANGE)
    ]
    if strange:
        raise SplitterError(
            f"types that arrays do not have: {', '.join(strange)}",
            hint="export the model in float32 or float16",
        )


def _dims(info: onnx.ValueInfoProto) -> list[int | str] | None:
    """Lengths; a free one by its name, "?" when it has none."""
    tensor = info.type.tensor_type
    if not tensor.HasField("shape"):
        return None
    return [
        d.dim_value if d.HasField("dim_value") and d.dim_value >= 0 else d.dim_param or "?"
        for d in tensor.shape.dim
    ]


def _clash(dims: list[int | str] | None, shape: tuple[int, ...]) -> str | None:
    if any(d <= 0 for d in shape):
        return "every length must be at least 1"
    if dims is None:
        return None
    if len(dims) != len(shape):
        return f"it has {len(dims)} axes, {_written(dims)}"
    for index, (known, given) in enumerate(zip(dims, shape, strict=True)):
        if isinstance(known, int) and known != given:
            return f"axis {index} is {known}"
    return None


def _written(dims: list[int | str]) -> str:
    return "[" + ", ".join(str(d) for d in dims) + "]"


def _times(shape: tuple[int, ...]) -> str:
    return "x".join(str(d) for d in shape)


def _example(dims: list[int | str] | None) -> str:
    if dims is None:
        return "1x3x384x384"
    return "x".join("1" if isinstance(d, str) and i == 0 else str(d) for i, d in enumerate(dims))
