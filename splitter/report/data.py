"""What the report is made of: the results of the stages, as they are. Decides nothing."""

from __future__ import annotations

from dataclasses import dataclass

from splitter.carve import Part
from splitter.glue.manifest import Manifest
from splitter.graph import Array, Graph
from splitter.plan import Plan, Support
from splitter.rules.schema import Target
from splitter.tflite.types import LiteGraph
from splitter.verify import Comparison
from splitter.width import NARROW, Widening


@dataclass(frozen=True)
class ReportData:
    """Filled by the pipeline.

    candidates:  the plans, the one carried out first.
    whole:       the integer graph that `parts` were carved from.
    pictures:    the validation images in the order they were run, uint8 [N, H, W, 3 or 1], if any.
    sizes:       width and height that each picture's boxes are in, [N, 2], with `pictures`.
    class_names: of the model, if known.
    notes:       for the reader, one sentence each (a name that was bound, a pass that did nothing).
    widening:    what takes 16 bits.
    onnx_bytes:  size of the ONNX part, 0 where there is none.
    """

    manifest: Manifest
    target: Target
    graph: Graph
    support: Support
    candidates: tuple[Plan, ...]
    whole: LiteGraph
    parts: tuple[Part, ...]
    comparison: Comparison
    pictures: Array | None = None
    sizes: Array | None = None
    class_names: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    widening: Widening = NARROW
    onnx_bytes: int = 0

    @property
    def plan(self) -> Plan:
        return self.candidates[0]
