"""`split explain`: why operators are on the CPU, what that costs, and what would move them.

names   which units a name means
kinds   units of one operator with the same reasons, with their costs
ways    what would move a kind, each way tried before it is told
whatif  plans as if the NPU took something
text    an explanation as text and as JSON
stages  from a file to an explanation
"""

from __future__ import annotations

from splitter.explain.stages import explanation
from splitter.explain.text import Explained

__all__ = ["Explained", "explanation"]
