"""The two ways to fail, and notes to the person at the board. Standard error, no traceback."""

from __future__ import annotations

import sys


class BadInput(Exception):
    """Something the caller must change; one clear message, exit status 2."""


class GateFailed(Exception):
    """What was asked to hold does not hold; exit status 1."""


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
