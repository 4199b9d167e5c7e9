"""Loops written out for a number of turns: the same graph with every turn taken.

Decides which selects keep a state of a finished Loop, and whether inputs may take more turns than
the samples do with numbers like theirs. A turn that no sample takes leaves its state as it was, so
the samples alone say nothing of the values that it makes. Where integers alone end the Loop (it
counts), more turns are a matter of the input: then all of them are calibrated. Where numbers end it
(until it is near enough), turns behind the end are taken by nobody, and their values are none of
the model's.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from splitter.tflite.types import LiteGraph, Operator, Tensor

JOINS = ("LOGICAL_AND", "LOGICAL_OR", "RESHAPE")
"""What "still going" of one turn is made of that of the turn before with."""


def every_turn(graph: LiteGraph, flags: Collection[str]) -> LiteGraph | None:
    """The graph with all turns taken of the Loops that these outputs say are not done.

    None where there is no such Loop, and none that integers end.
    """
    going = {name for flag in flags for name in _going(graph, flag) if _counts(graph, flag)}
    tensors = dict(graph.tensors)

    def taken(op: Operator) -> Operator:
        if op.code != "SELECT_V2" or op.inputs[0] not in going:
            return op
        name = f"{op.outputs[0]}/taken"
        shape = graph.tensors[op.inputs[0]].shape
        tensors[name] = Tensor(name, shape, "bool", np.ones(shape, np.bool_))
        return replace(op, inputs=(name, *op.inputs[1:]))

    operators = tuple(taken(op) for op in graph.operators)
    return (
        None
        if operators == graph.operators
        else replace(graph, tensors=tensors, operators=operators)
    )


def _going(graph: LiteGraph, flag: str) -> set[str]:
    """The flag, and what says so of the turns before."""
    found: set[str] = set()
    left = [flag] if flag in graph.tensors else []
    while left:
        name = left.pop()
        if name in found or graph.tensors[name].dtype != "bool":
            continue
        found.add(name)
        maker = graph.producers.get(name)
        if maker is not None and maker.code in JOINS:
            left += [one for one in maker.inputs if one]
    return found


def _counts(graph: LiteGraph, flag: str) -> bool:
    """Whether the flag is made of integers alone."""
    seen: set[str] = set()
    left = [flag] if flag in graph.tensors else []
    while left:
        name = left.pop()
        if name in seen:
            continue
        seen.add(name)
        tensor = graph.tensors[name]
        if tensor.dtype == "float32" and tensor.data is None:
            return False
        maker = graph.producers.get(name)
        left += [one for one in maker.inputs if one] if maker is not None else []
    return True
