"""Attributes of spatial units: strides, explicit pads, kernel. Data is channels-last later on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from splitter.diagnostics import Cause
from splitter.draft import Draft, Node

Rule = Callable[[Draft, Node, list[Cause]], None]


def computed(node: Node, index: int) -> Cause:
    """A parameter that is no constant."""
    why = f"input {index} ({node.input(index)}) is a parameter that is computed at run time"
    return Cause(node.op, node.sources or (node.name,), why)


def _shape(draft: Draft, value: str) -> tuple[int, ...]:
    shape = draft.shape(value)
    assert shape is not None, value  # normalize made every shape static
    return shape


def _window(draft: Draft, node: Node, kernel: tuple[int, ...]) -> dict[str, Any]:
    rank = len(kernel)
    strides = tuple(node.attrs.get("strides") or [1] * rank)
    dilations = tuple(node.attrs.get("dilations") or [1] * rank)
    pads = node.attrs.get("pads") or [0] * (2 * rank)
    auto = node.attrs.get("auto_pad", "NOTSET")
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        size = _shape(draft, node.inputs[0])[2:]
        pads = _same(size, kernel, strides, dilations, upper=auto == "SAME_UPPER")
    elif auto == "VALID":
        pads = [0] * (2 * rank)
    return {"strides": strides, "dilations": dilations, "pads": tuple(int(p) for p in pads)}


def _same(
    size: tuple[int, ...],
    kernel: tuple[int, ...],
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
    *,
    upper: bool,
) -> list[int]:
    """ONNX: output ceil(size / stride); the odd element of padding goes to the end for UPPER."""
    before, after = [], []
    for length, k, s, d in zip(size, kernel, strides, dilations, strict=True):
        total = max(0, (-(-length // s) - 1) * s + (k - 1) * d + 1 - length)
        small, large = total // 2, total - total // 2
        before.append(small if upper else large)
        after.append(large if upper else small)
    return before + after


def _conv(draft: Draft, node: Node, problems: list[Cause]) -> None:
    kernel = _shape(draft, node.inputs[1])[2:]
    attrs = _window(draft, node, kernel)
    node.attrs = {**attrs, "group": int(node.attrs.get("group", 1)), "activation": ""}


def _conv_transpose(draft: Draft, node: Node, problems: list[Cause]) -> None:
    """Explicit pads follow from the output's shape when auto_pad or output_shape is given."""
    kernel = _shape(draft, node.inputs[1])[2:]
    rank = len(kernel)
    strides = tuple(node.attrs.get("strides") or [1] * rank)
    dilations = tuple(node.attrs.get("dilations") or [1] * rank)
    extra = tuple(node.attrs.get("output_padding") or [0] * rank)
    auto = node.attrs.get("auto_pad", "NOTSET")
    pads = [int(p) for p in node.attrs.get("pads") or [0] * (2 * rank)]
    if auto != "NOTSET" or node.attrs.get("output_shape"):
        size, out = _shape(draft, node.inputs[0])[2:], _shape(draft, node.outputs[0])[2:]
        for axis in range(rank):
            full = (size[axis] - 1) * strides[axis] + (kernel[axis] - 1) * dilations[axis] + 1
            total = max(0, full + extra[axis] - out[axis])
            small, large = total // 2, total - total // 2
            upper = auto == "SAME_UPPER"
            pads[axis], pads[axis + rank] = (small, large) if upper else (large, small)
    node.attrs = {
        "strides": strides, "dilations": dilations, "pads": tuple(pads), "activation": "",
        "group": int(node.attrs.get("group", 1)), "output_padding": extra,
    }  # fmt: skip


def _pool(draft: Draft, node: Node, problems: list[Cause]) -> None:
    kernel = tuple(int(k) for k in node.attrs["kernel_shape"])
    attrs = _window(draft, node, kernel)
    attrs |= {"kernel": kernel, "ceil_mode": bool(node.attrs.get("ceil_mode", 0))}
    if node.op == "AveragePool":
        attrs["count_include_pad"] = bool(node.attrs.get("count_include_pad", 0))
    if node.op == "MaxPool" and len(node.outputs) > 1 and node.outputs[1]:
        why = "no TFLite operator gives the places of maxima"
        problems.append(Cause("MaxPool", node.sources or (node.name,), why))
    node.attrs = {**attrs, "activation": ""}


def _resize(draft: Draft, node: Node, problems: list[Cause]) -> None:
    source, target = _shape(draft, node.inputs[0]), _shape(draft, node.outputs[0])
    given = draft.constant(node.input(2)) if node.input(2) else None
    axes = node.attrs.get("axes") or range(len(source))
    scales = [t / s for s, t in zip(source, target, strict=True)]
    if given is not None and given.size:
        for axis, scale in zip(axes, given.reshape(-1), strict=True):
            scales[axis] = float(scale)
    spatial = len(source) == 4 and source[:2] == target[:2] and scales[:2] == [1.0, 1.0]
    attrs = {
        "mode": node.attrs.get("mode", "nearest"),
        "coordinate_transformation_mode": node.attrs.get(
            "coordinate_transformation_mode", "half_pixel"
        ),
        "nearest_mode": node.attrs.get("nearest_mode", "round_prefer_floor"),
        "cubic_coeff_a": float(node.attrs.get("cubic_coeff_a", -0.75)),
        "exclude_outside": bool(node.attrs.get("exclude_outside", 0)),
        "antialias": bool(node.attrs.get("antialias", 0)),
        "sizes": target[2:] if spatial else target,
        "scales": tuple(scales[2:] if spatial else scales),
    }
    if attrs["coordinate_transformation_mode"] == "tf_crop_and_resize":
        attrs |= _crop(draft, node, list(axes), spatial, problems)
    draft.set_inputs(node, node.inputs[:1])
    node.attrs = attrs


def _crop(
    draft: Draft, node: Node, axes: list[int], spatial: bool, problems: list[Cause]
) -> dict[str, Any]:
    """roi as all starts, then all ends, of the axes that `sizes` speaks of."""
    given = draft.constant(node.input(1)) if node.input(1) else None
    if node.input(1) and given is None:
        problems.append(computed(node, 1))
    rank = len(_shape(draft, node.inputs[0]))
    starts, ends = [0.0] * rank, [1.0] * rank
    if given is not None and given.size == 2 * len(axes):
        for index, axis in enumerate(axes):
            starts[axis], ends[axis] = (float(given.reshape(-1)[index + o])
                                        for o in (0, len(axes)))  # fmt: skip
    first = 2 if spatial else 0
    return {
        "roi": (*starts[first:], *ends[first:]),
        "extrapolation_value": float(node.attrs.get("extrapolation_value", 0.0)),
    }


def _grid_sample(draft: Draft, node: Node, problems: list[Cause]) -> None:
    node.attrs = {
        "mode": node.attrs.get("mode", "linear"),
        "padding_mode": node.attrs.get("padding_mode", "zeros"),
        "align_corners": bool(node.attrs.get("align_corners", 0)),
    }


def _block(draft: Draft, node: Node, problems: list[Cause]) -> None:
    attrs: dict[str, Any] = {"blocksize": int(node.attrs["blocksize"])}
    if node.op == "DepthToSpace":
        attrs["mode"] = node.attrs.get("mode", "DCR")
    node.attrs = attrs


def _norm(draft: Draft, node: Node, problems: list[Cause]) -> None:
    attrs: dict[str, Any] = {"epsilon": float(node.attrs.get("epsilon", 1e-5))}
    if node.op == "GroupNormalization":
        attrs["num_groups"] = int(node.attrs["num_groups"])
    node.attrs = attrs


def _lrn(draft: Draft, node: Node, problems: list[Cause]) -> None:
    node.attrs = {
        "size": int(node.attrs["size"]),
        "alpha": float(node.attrs.get("alpha", 1e-4)),
        "beta": float(node.attrs.get("beta", 0.75)),
        "bias": float(node.attrs.get("bias", 1.0)),
    }


SPATIAL: dict[str, Rule] = {
    "Conv": _conv, "ConvTranspose": _conv_transpose, "MaxPool": _pool, "AveragePool": _pool,
    "Resize": _resize, "GridSample": _grid_sample, "DepthToSpace": _block, "SpaceToDepth": _block,
    "InstanceNormalization": _norm, "GroupNormalization": _norm, "LRN": _lrn,
}  # fmt: skip
"""Every one of them takes its first input, and gives its output, channels-last."""
