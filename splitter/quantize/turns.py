"""Loops written out for a number of turns: the same graph with every turn taken.

Decides which selects keep a state of a finished Loop, and whether inputs may take more turns than
the samples do with numbers like theirs. A turn that no sample takes leaves its state as it was, so
the samples alone say nothing of the values that it makes. Where integers alone end the Loop (it
counts), more turns are a matter of the input: then all of them are calibrated. Where numbers end it
(until it is near enough), turns behind the end are taken by nobody, and their values are none of
the model's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

import numpy as np

from splitter.tflite.types import LiteGraph, Operator, Tensor

JOINS = ("LOGICAL_AND", "LOGICAL_OR", "RESHAPE")
"""What "still going" of one turn is made of that of the turn before with."""


def every_turn(graph: LiteGraph, flags: Collection[str]) -> LiteGraph | None:
    """The graph with all turns taken of the Loops that these outputs say are not done.

    None where there is no such Loop, and none that integers end.
    """
    counted = [flag for flag in flags if flag in graph.tensors and _counts(graph, flag)]
    going = {name for flag in counted for name in _going(graph, flag)}
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
    behind = _behind(graph, flag, lambda op: op.code in JOINS)
    return {name for name in behind if graph.tensors[name].dtype == "bool"}


def _counts(graph: LiteGraph, flag: str) -> bool:
    """Whether the flag is made of integers alone."""
    behind = (graph.tensors[name] for name in _behind(graph, flag, lambda op: True))
    return not any(tensor.dtype == "float32" and tensor.data is None for tensor in behind)


def _behind(graph: LiteGraph, name: str, through: Callable[[Operator], bool]) -> set[str]:
    """A tensor, and those that it is made of by such operators."""
    found: set[str] = set()
    left = [name]
    while left:
        name = left.pop()
        if name in found:
            continue
        found.add(name)
        maker = graph.producers.get(name)
        if maker is not None and through(maker):
            left += [one for one in maker.inputs if one]
    return found
