"""What a vendor's compiler made of a TFLite file: which operators it left on the CPU.

Decides how the answer is read from the file that the compiler wrote: what it takes becomes custom
operators, what it leaves keeps its code and writes the tensors it wrote before. How a compiler is
called is the business of its own module.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from splitter.diagnostics import SplitterError
from splitter.tflite.read import read
from splitter.tflite.types import LiteGraph


@dataclass(frozen=True)
class Placement:
    """The compiler's answer for one file.

    cpu:       tensors that operators on the CPU write, by their names in the source file.
    why:       tensor -> what the compiler says about the operator that writes it.
    failed:    the compiler's last words when it wrote no file, "" when it did.
    refused:   it failed because an operator can neither be on the NPU nor stay as it is.
    npu_nodes: custom operators in the file it wrote.
    npu_ms:    its own estimate of the time of one inference, None when it gives none.
    ratio:     (taken, all) operators as its log counts them, after its own rewrites; None without.
    """

    cpu: frozenset[str] = frozenset()
    why: Mapping[str, str] = field(default_factory=dict)
    failed: str = ""
    refused: bool = False
    npu_nodes: int = 0
    npu_ms: float | None = None
    ratio: tuple[int, int] | None = None

    def takes(self, outputs: Sequence[str]) -> bool:
        """Whether the operator that writes these tensors is on the NPU."""
        return not self.failed and not self.cpu.intersection(outputs)


class Compiler(Protocol):
    """A vendor's compiler that reads TFLite."""

    @property
    def name(self) -> str: ...

    @property
    def command(self) -> Sequence[str]:
        """The program and its options."""
        ...

    def version(self) -> str:
        """As it says itself, like "5.2.0"; SplitterError when it cannot be run."""
        ...

    def place(self, model: bytes) -> Placement:
        """Compile one file, in a folder that is thrown away."""
        ...


def left_on_cpu(graph: LiteGraph, marker: str) -> tuple[frozenset[str], int]:
    """(tensors written by operators on the CPU, custom operators called `marker`)."""
    custom = f"CUSTOM:{marker}".casefold()
    nodes = [op for op in graph.operators if op.code.casefold() == custom]
    rest = [op for op in graph.operators if op.code.casefold() != custom]
    return frozenset(name for op in rest for name in op.outputs if name), len(nodes)


def read_placement(
    converted: bytes, marker: str, *, why: Mapping[str, str], npu_ms: float | None = None
) -> Placement:
    """The placement in a file that the compiler wrote; a failure where that cannot be read."""
    try:
        graph = read(converted, where="the compiler's file")
    except SplitterError as error:
        return Placement(failed=f"the file it wrote cannot be read: {error.what}")
    cpu, nodes = left_on_cpu(graph, marker)
    return Placement(cpu=cpu, why=why, npu_nodes=nodes, npu_ms=npu_ms)
