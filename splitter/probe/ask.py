"""Gives specimens to a compiler, many in one file, and reads what it made of each.

Decides how they are packed: a file that the compiler does not survive is cut in halves until the
one specimen is found. Those with one fact at one value are neighbors: what kills a compiler is
mostly a fact, whatever the operator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

from splitter.compilers import Compiler
from splitter.probe.questions import Question
from splitter.tflite.types import LiteGraph, Tensor
from splitter.tflite.write import write

COUNT, BYTES = 48, 64 << 20
"""Specimens of one file, and bytes of their tensors together."""

Step = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Answer:
    """taken: on the NPU. failed: the compiler did not survive it. why: its words."""

    taken: bool
    failed: bool = False
    why: str = ""


@dataclass
class Asker:
    """A compiler with its answers so far; nothing is asked twice."""

    compiler: Compiler
    step: Step = lambda done, total: None

    def __post_init__(self) -> None:
        self.answers: dict[Question, Answer] = {}
        self.files = 0

    def ask(self, questions: Iterable[Question]) -> None:
        """Answers all that can be built; others stay without an answer."""
        new = [one for one in dict.fromkeys(questions) if one not in self.answers]
        new.sort(key=lambda one: (one.fact, str(one.value), one.code, str(one.when)))
        built = [(one, graph) for one in new if (graph := one.build()) is not None]
        done = 0
        for batch in _batches(built):
            self._place(batch)
            done += len(batch)
            self.step(done, len(built))

    def _place(self, batch: Sequence[tuple[Question, LiteGraph]]) -> None:
        self.files += 1
        renamed = [_prefixed(graph, f"s{i}/") for i, (_, graph) in enumerate(batch)]
        placed = self.compiler.place(write(_joined(renamed)))
        if placed.failed and len(batch) > 1:
            half = len(batch) // 2
            self._place(batch[:half])
            self._place(batch[half:])
            return
        for (question, _), graph in zip(batch, renamed, strict=True):
            outputs = graph.operators[0].outputs
            why = next((placed.why[name] for name in outputs if name in placed.why), "")
            self.answers[question] = Answer(
                taken=placed.takes(outputs),
                failed=bool(placed.failed) and not placed.refused,
                why=placed.failed or why,
            )


def _batches(
    built: Sequence[tuple[Question, LiteGraph]],
) -> Iterator[list[tuple[Question, LiteGraph]]]:
    batch: list[tuple[Question, LiteGraph]] = []
    size = 0
    for one in built:
        bytes_ = sum(prod(tensor.shape) for tensor in one[1].tensors.values())
        if batch and (len(batch) == COUNT or size + bytes_ > BYTES):
            yield batch
            batch, size = [], 0
        batch.append(one)
        size += bytes_
    if batch:
        yield batch


def _prefixed(graph: LiteGraph, prefix: str) -> LiteGraph:
    def named(names: Iterable[str]) -> tuple[str, ...]:
        return tuple(f"{prefix}{name}" if name else "" for name in names)

    tensors = {
        f"{prefix}{name}": replace(tensor, name=f"{prefix}{name}")
        for name, tensor in graph.tensors.items()
    }
    operators = tuple(
        replace(op, inputs=named(op.inputs), outputs=named(op.outputs)) for op in graph.operators
    )
    return LiteGraph(named(graph.inputs), named(graph.outputs), tensors, operators)


def _joined(graphs: Sequence[LiteGraph]) -> LiteGraph:
    """Graphs side by side in one."""
    tensors: dict[str, Tensor] = {}
    for graph in graphs:
        tensors |= graph.tensors
    return LiteGraph(
        tuple(name for graph in graphs for name in graph.inputs),
        tuple(name for graph in graphs for name in graph.outputs),
        tensors,
        tuple(op for graph in graphs for op in graph.operators),
    )
