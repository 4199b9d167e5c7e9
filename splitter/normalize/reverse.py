"""ReverseSequence as a Slice of step -1, or as the gather of the places that it reads.

TensorFlow's exporter writes every reversal along time so: Keras' backward layers, tf.reverse.
Decides by the lengths alone: the whole axis in every batch is a Slice; anything else, computed
lengths included, reads place length - 1 - t below the length and place t from there on.
"""

from __future__ import annotations

import numpy as np

from splitter.draft import Draft, Node
from splitter.normalize.writer import Writer


def write_reverse(draft: Draft, node: Node) -> None:
    """Waits for a static shape."""
    source, lengths = node.inputs[0], node.inputs[1]
    shape = draft.shape(source)
    if shape is None or draft.shape(lengths) is None:
        return
    time = int(node.attrs.get("time_axis", 0)) % len(shape)
    batch = int(node.attrs.get("batch_axis", 1)) % len(shape)
    known = draft.ints(lengths)
    writer = Writer(draft, node)
    if known is not None and set(known) == {shape[time]}:
        last, end = writer.const([-1]), writer.const([-shape[time] - 1])
        writer.add("Slice", [source, last, end, writer.const([time]), last], out=writer.out)
        return
    places = _places(writer, lengths, shape, time=time, batch=batch)
    writer.add("GatherElements", [source, places], out=writer.out, axis=time)


def _places(writer: Writer, lengths: str, shape: tuple[int, ...], *, time: int, batch: int) -> str:
    """int64 of the data's shape: which element along time stands at each place."""
    count = writer.const([-1 if axis == batch else 1 for axis in range(len(shape))])
    length = writer.add("Reshape", [lengths, count])
    steps = np.arange(shape[time]).reshape([-1 if a == time else 1 for a in range(len(shape))])
    step = writer.const(steps)
    back = writer.add("Sub", [writer.add("Sub", [length, writer.const([1])]), step])
    places = writer.add("Where", [writer.add("Less", [step, length]), back, step])
    return writer.add("Expand", [places, writer.const(list(shape))])
