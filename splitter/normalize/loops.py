"""Loop and Scan with a known number of turns are their bodies, one after another.

A Loop is opened a turn at a time: whether it goes on is often known only when the turn before has
been folded. What it collects is put together at its end. A Loop that goes on as long as the data
says has no static form: `endless` says why, and `static` refuses it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx

from splitter.diagnostics import ENDLESS, SplitterError
from splitter.draft import Draft, Node
from splitter.normalize.inline import inline, rename_values
from splitter.stored import array_of

MOST = 1024
"""Turns of a Loop or Scan. What has more is better run by the code around the model."""

PROGRESS = "progress"
"""The attribute of a Loop that has been opened."""


@dataclass(frozen=True)
class _Progress:
    """The body without its constants, turns done, and what they collected, output by output."""

    body: onnx.GraphProto
    turn: int
    collected: tuple[tuple[str, ...], ...]


def open_loop(draft: Draft, node: Node) -> bool:
    """Write one more turn of a Loop, or its end. False when which of them depends on data."""
    most = draft.scalar(node.inputs[0]) if node.input(0) else None
    going = draft.scalar(node.inputs[1]) if node.input(1) else 1.0
    if (node.input(0) and most is None) or going is None:
        return False
    progress = node.attrs.get(PROGRESS)
    if progress is None and most is not None and most > MOST and _never_ends(node.attrs["body"]):
        return False
    if progress is None:
        body = _without_constants(draft, node.attrs["body"], node.name)
        progress = _Progress(body, 0, ((),) * (len(body.output) - len(node.inputs) + 1))
    if going and (most is None or progress.turn < most):
        _turn(draft, node, progress)
        return True
    if progress.turn == 0 and progress.collected:
        return False  # tensors without elements: no kernel takes them
    _end(draft, node, progress)
    return True


def open_scan(draft: Draft, node: Node) -> bool:
    """Write all turns of a Scan. False when its length is not known."""
    scanned = node.attrs["num_scan_inputs"]
    states, sources = node.inputs[:-scanned], node.inputs[-scanned:]
    shapes = [draft.shape(name) for name in sources]
    if draft.written < 9 or None in shapes:
        return False
    axes = _axes(node, "scan_input_axes", [len(shape or ()) for shape in shapes])
    length = next((s[a] for s, a in zip(shapes, axes, strict=True) if s is not None), None)
    if not length:
        return False
    _refuse_long(node, length)
    body = _without_constants(draft, node.attrs["body"], node.name)
    backward = node.attrs.get("scan_input_directions") or [0] * scanned
    collected: list[list[str]] = [[] for _ in body.output[len(states) :]]
    for turn in range(length):
        places = [length - 1 - turn if back else turn for back in backward]
        slices = [_element(draft, node, *each) for each in zip(sources, places, axes, strict=True)]
        inputs = dict(zip((v.name for v in body.input), [*states, *slices], strict=True))
        results = inline(draft, body, f"{node.name}/{turn}/", inputs)
        states = results[: len(states)]
        for kept, name in zip(collected, results[len(states) :], strict=True):
            kept.append(name)
    draft.remove(node)
    outputs = node.outputs
    for out, state in zip(outputs, states, strict=False):
        if out:
            draft.types.pop(out, None)
            draft.replace(out, state)
    _collect_scans(draft, node, outputs[len(states) :], collected)
    return True


def _never_ends(body: onnx.GraphProto) -> bool:
    """Whether the body hands on the condition that it was given."""
    makers = {out: node for node in body.node for out in node.output}
    name = body.output[0].name
    while (maker := makers.get(name)) is not None and maker.op_type == "Identity":
        name = maker.input[0]
    return bool(name == body.input[1].name)


def endless(draft: Draft, node: Node) -> str:
    """Why a Loop or Scan that is left was not opened, in words; "" for any other operator."""
    if node.op not in ("Loop", "Scan") or node.domain:
        return ""
    deciding = [v for v in node.inputs[:2] if v and v not in draft.constants]
    most = draft.scalar(node.inputs[0]) if node.input(0) else None
    if node.op == "Loop" and not deciding and most is not None and most > MOST:
        return f"it takes {int(most)} turns; more than {MOST} are not written out"
    if node.op == "Scan" or not deciding:
        return "its length is not known, or 0"
    inputs = dict.fromkeys(name for v in deciding for name in _inputs_behind(draft, v))
    behind = ", ".join(inputs) or "what it does itself"
    told = f"({', '.join(deciding)}, computed from {behind})"
    rows = [out for out in node.outputs[len(node.inputs) - 2 :] if out]
    if rows and node.op == "Loop":
        return f"data decides how many rows it collects in {', '.join(rows)} {told}"
    return f"{ENDLESS} {told}"


def _inputs_behind(draft: Draft, value: str) -> Iterator[str]:
    """The model inputs a value is computed from."""
    seen, stack = set(), [value]
    while stack:
        name = stack.pop()
        if name in seen:
            continue
        seen.add(name)
        if name in draft.inputs:
            yield name
        elif name in draft.producer:
            stack.extend(n for n in reversed(draft.producer[name].inputs) if n)


def _turn(draft: Draft, node: Node, progress: _Progress) -> None:
    _refuse_long(node, progress.turn + 1)
    names = [value.name for value in progress.body.input]
    count = draft.constant_of(np.asarray(progress.turn, np.int64), f"{node.name}/turn")
    going = draft.constant_of(np.asarray(True), f"{node.name}/going")
    inputs = dict(zip(names, [count, going, *node.inputs[2:]], strict=True))
    results = inline(draft, progress.body, f"{node.name}/{progress.turn}/", inputs)
    states = len(node.inputs) - 2
    collected = tuple(
        (*before, name)
        for before, name in zip(progress.collected, results[1 + states :], strict=True)
    )
    progress = replace(progress, turn=progress.turn + 1, collected=collected)
    draft.set_inputs(node, [node.inputs[0], *results[: 1 + states]])
    node.attrs = {**node.attrs, PROGRESS: progress}


def _end(draft: Draft, node: Node, progress: _Progress) -> None:
    draft.remove(node)
    states = node.inputs[2:]
    for out, state in zip(node.outputs, states, strict=False):
        if out:
            draft.types.pop(out, None)
            draft.replace(out, state)
    for out, names in zip(node.outputs[len(states) :], progress.collected, strict=False):
        _join(draft, node, out, names, 0)


def _join(draft: Draft, node: Node, out: str, names: Sequence[str], axis: int) -> None:
    """Elements put together along a new axis."""
    if not out:
        return
    draft.types.pop(out, None)
    axes = draft.constant_of(np.asarray([axis], np.int64), f"{node.name}/axis")
    rows = []
    for index, name in enumerate(names):
        row = draft.name(f"{out}/{index}")
        draft.add(Node("Unsqueeze", [name, axes], [row], {}, row, sources=node.sources))
        rows.append(row)
    joined = Node("Concat", rows, [out], {"axis": axis}, f"{node.name}/{out}", sources=node.sources)
    draft.add(joined)


def _collect_scans(
    draft: Draft, node: Node, outputs: Sequence[str], collected: Sequence[Sequence[str]]
) -> None:
    count = len(collected)
    axes = node.attrs.get("scan_output_axes") or [0] * count
    backward = node.attrs.get("scan_output_directions") or [0] * count
    for out, names, axis, back in zip(outputs, collected, axes, backward, strict=False):
        _join(draft, node, out, names[::-1] if back else names, axis)


def _axes(node: Node, key: str, ranks: Sequence[int]) -> list[int]:
    given = node.attrs.get(key) or [0] * len(ranks)
    return [axis % rank for axis, rank in zip(given, ranks, strict=True)]


def _element(draft: Draft, node: Node, source: str, place: int, axis: int) -> str:
    index = draft.constant_of(np.asarray(place, np.int64), f"{node.name}/place")
    out = draft.name(f"{source}/{place}")
    draft.add(Node("Gather", [source, index], [out], {"axis": axis}, out, sources=node.sources))
    return out


def _refuse_long(node: Node, turns: int) -> None:
    if turns > MOST:
        raise SplitterError(
            f"the {node.op} takes over {MOST} turns",
            where=node.name,
            hint="give the model fewer steps at a time, or let your own code turn",
        )


def _without_constants(draft: Draft, graph: onnx.GraphProto, stem: str) -> onnx.GraphProto:
    """The body with its constants moved out, so that turns share them."""
    body = onnx.GraphProto()
    body.CopyFrom(graph)
    names = {}
    for tensor in body.initializer:
        names[tensor.name] = draft.constant_of(array_of(tensor), f"{stem}/constant")
    del body.initializer[:]
    rename_values(body, names)
    return body


__all__ = ["PROGRESS", "endless", "open_loop", "open_scan"]
