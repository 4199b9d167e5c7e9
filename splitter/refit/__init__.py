"""Refits the latency figures of a target to measured times.

figures       the figures as costs of one unit of work
points        what a part does, figure by figure
fit           the costs that come closest to the times
measurements  what glue/run.py --bench wrote, checked
rulefile      the figures in a rule file's text
refit         all of it: measurements in, a rule file and what changed out
write         the rule file on disk, whole or not at all
text          what changed, for people and as JSON
"""

from __future__ import annotations

from splitter.refit.refit import Refit, refit
from splitter.refit.write import write_rule_file

__all__ = ["Refit", "refit", "write_rule_file"]
