"""Where every unit sits: ordered segments on the NPU and the CPU, several candidates.

flow        minimum s-t cuts
mincut      two segments, exactly
stages      what any number of segments costs, and the two-segment problems inside it
contract    units that need not be told apart
segments    the search for any number of segments
proof       nothing cheaper was missed, for few units
wishes      what the user asks for
costs       milliseconds of every unit on either device
passing     what handing a tensor over costs
planner     the problem of a graph, and answers to it as plans
candidates  the plans, the one to carry out first
"""

from __future__ import annotations

from splitter.partition.candidates import SEGMENTS, plan
from splitter.partition.passing import boundary_bytes, passage_ms
from splitter.partition.planner import WORTH

__all__ = ["SEGMENTS", "WORTH", "boundary_bytes", "passage_ms", "plan"]
