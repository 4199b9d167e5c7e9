"""`split rules probe`: a rule file learned from the vendor's own compiler.

questions  which specimens to try: operators, at their limits and beyond
ask        what the compiler makes of them
search     where a limit of number lies
learn      rules from answers, and where they differ from the file
rewrite    the learned rules as a rule file
"""

from __future__ import annotations

from splitter.probe.learn import Difference, Learned
from splitter.probe.probe import Probed, probe

__all__ = ["Difference", "Learned", "Probed", "probe"]
