"""A small writer of SVG: boxes, labels, lines. Knows no report; looks come from CSS classes."""

from __future__ import annotations

from html import escape


class Svg:
    """Collects elements; `text` gives the finished picture. Coordinates are CSS pixels."""

    def __init__(self, width: float) -> None:
        self._width = width
        self._items: list[str] = []

    def reserve(self) -> int:
        """A place in the order of drawing to be filled later (a background)."""
        self._items.append("")
        return len(self._items) - 1

    def fill(
        self, slot: int, x: float, y: float, width: float, height: float, *, kind: str
    ) -> None:
        self._items[slot] = _rect(x, y, width, height, kind, 8, "")

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        *,
        kind: str,
        radius: float = 0,
        title: str = "",
    ) -> None:
        self._items.append(_rect(x, y, width, height, kind, radius, title))

    def label(
        self, x: float, y: float, text: str, *, kind: str = "", title: str = "", turn: int = 0
    ) -> None:
        """`turn` rotates around (x, y), degrees clockwise."""
        turned = f' transform="rotate({turn} {_n(x)} {_n(y)})"' if turn else ""
        self._items.append(
            f'<text x="{_n(x)}" y="{_n(y)}" class="{kind}"{turned}>'
            f"{escape(text)}{_title(title)}</text>"
        )

    def line(self, x0: float, y0: float, x1: float, y1: float, *, kind: str) -> None:
        self._items.append(
            f'<line x1="{_n(x0)}" y1="{_n(y0)}" x2="{_n(x1)}" y2="{_n(y1)}" class="{kind}"/>'
        )

    def arrow(
        self, x0: float, y0: float, x1: float, y1: float, kind: str = "", *, title: str = ""
    ) -> None:
        self.path(f"M{_n(x0)} {_n(y0)}L{_n(x1)} {_n(y1)}", kind=kind, title=title, arrow=True)

    def path(self, d: str, *, kind: str, title: str = "", arrow: bool = False) -> None:
        end = f' marker-end="url(#{kind}-head)"' if arrow else ""
        self._items.append(f'<path d="{d}" class="{kind}"{end}>{_title(title)}</path>')

    def dot(self, x: float, y: float, radius: float, *, kind: str) -> None:
        self._items.append(f'<circle cx="{_n(x)}" cy="{_n(y)}" r="{_n(radius)}" class="{kind}"/>')

    def image(self, x: float, y: float, width: float, height: float, data_uri: str) -> None:
        self._items.append(
            f'<image x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}" '
            f'href="{data_uri}" preserveAspectRatio="none"/>'
        )

    def text(self, height: float, kind: str, says: str) -> str:
        """The whole picture; `says` describes it to those who cannot see it."""
        return (
            f'<svg class="{kind}" viewBox="0 0 {_n(self._width)} {_n(height)}" '
            f'width="{_n(self._width)}" height="{_n(height)}" role="img" '
            f'aria-label="{escape(says)}" xmlns="http://www.w3.org/2000/svg">'
            + "\n".join(self._items)
            + "</svg>"
        )


def _rect(
    x: float, y: float, width: float, height: float, kind: str, radius: float, title: str
) -> str:
    return (
        f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}" '
        f'rx="{_n(radius)}" class="{kind}">{_title(title)}</rect>'
    )


def _title(text: str) -> str:
    return f"<title>{escape(text)}</title>" if text else ""


def _n(value: float) -> str:
    """Two digits after the point at most, no trailing zeros."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if value else "0"
