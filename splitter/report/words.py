"""Numbers and names as people read them, the same in the terminal and in the HTML report."""

from __future__ import annotations

from collections.abc import Sequence

_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def big(value: float, unit: str = "") -> str:
    """1234567 -> "1.23 M"; three figures; decimal prefixes."""
    for factor, prefix in _PREFIXES:
        if abs(value) >= factor * 0.9995:
            return f"{_three(value / factor)} {prefix}{unit}"
    return f"{value:g} {unit}".rstrip()


def milliseconds(value: float) -> str:
    return f"{_three(value)} ms" if value >= 0.001 else ("0 ms" if value == 0 else "<0.001 ms")


def percent(share: float, digits: int = 1) -> str:
    return f"{100 * share:.{digits}f} %"


def error(value: float) -> str:
    """A relative error: 0, 0.0123 or 1.2e-05."""
    if value == 0:
        return "0"
    return f"{value:.3g}" if value >= 1e-3 else f"{value:.1e}"


def shape(lengths: Sequence[int]) -> str:
    return "[" + ", ".join(map(str, lengths)) + "]"


def shortened(name: str, length: int) -> str:
    """The end of a long name is what tells it from others."""
    return name if len(name) <= length else "…" + name[-(length - 1) :]


def counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def _three(value: float) -> str:
    if abs(value) >= 99.95:
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 9.995 else f"{value:.2f}"
