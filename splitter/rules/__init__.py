"""Rule files: what one may say, what is wrong in one, and what it makes of an operator.

The files themselves are data, in rules/ beside this package. Where a unit is put is `partition`'s
decision, how long it takes `latency`'s.
"""
