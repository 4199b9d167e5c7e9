"""Rows kept in the project: our own of the last sweep (results.json), and onnx2tf's (onnx2tf.json).

Decides what of a row is kept: the largest error of any output, not each. One line a row, by name
and target, so that a new sweep shows as a readable difference.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import date
from pathlib import Path
from typing import Any

from bench.corpus.verdict import Row

RESULTS = Path(__file__).with_name("results.json")
FOLDER = re.compile(r"/(?:home|mnt|opt|root|tmp|usr|var|work)/\S*/")
"""A folder of the machine; node names begin with a slash too."""

PEER = Path(__file__).with_name("onnx2tf.json")
ERRORS = ("float_error", "forced_error", "noise", "integer_error")
SAME = (
    "name", "target", "status", "kind", "stage", "split", "floats", "units", "on_npu", "operators",
    "bits", "seconds", "cpu_seconds", "megabytes", "decisions", "flips", "samples",
)  # fmt: skip


@dataclass(frozen=True)
class Kept:
    """What is kept of a `measure.Row`; the errors are the largest of any output (None: none)."""

    name: str
    target: str
    status: str
    kind: str = ""
    stage: str = ""
    reason: str = ""
    float_error: float | None = None
    forced_error: float | None = None
    noise: float | None = None
    flips: tuple[int, int] = (0, 0)
    integer_error: float | None = None
    decisions: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    split: bool | None = None
    samples: tuple[int, int] = (0, 0)
    floats: int = 0
    units: int = 0
    on_npu: int = 0
    operators: int = 0
    bits: float = 0.0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    megabytes: float = 0.0
    date: str = ""


@dataclass(frozen=True)
class PeerRow:
    """What another converter made of a graph.

    status: right (error at most 1e-4), near (at most 1e-2), wrong, refused (no file, or none that
    LiteRT takes), timeout. error: the
    largest relative RMS of any output against ONNX Runtime. seconds: of its conversion, of the
    processor.
    """

    name: str
    status: str
    error: float | None = None
    seconds: float = 0.0
    reason: str = ""


@dataclass(frozen=True)
class Peer:
    """A peer's rows by name, and how they came about."""

    about: Mapping[str, str] = field(default_factory=dict)
    rows: Mapping[str, PeerRow] = field(default_factory=dict)


def kept(row: Row) -> Kept:
    """The row without what is not recorded; no path of the machine stays in a reason."""

    def top(key: str) -> float | None:
        values = row.get(key, {}).values()
        return float(f"{max(values):.3g}") if values else None

    same: dict[str, Any] = {key: _pair(row[key]) for key in SAME if key in row}
    same |= {key: top(key) for key in ERRORS}
    reason = FOLDER.sub("", row.get("reason", ""))
    return Kept(**same, reason=reason, date=date.today().isoformat())


def _pair(value: Any) -> Any:
    """JSON has no tuples."""
    return tuple(value) if isinstance(value, list) else value


def add_rows(path: Path, rows: Iterable[Row]) -> None:
    """Put rows among those of the file, in the place of older ones of the same graph and target."""
    known = {(one.name, one.target): one for one in load_rows(path)}
    for row in rows:
        one = kept(row)
        known[one.name, one.target] = one
    lines = [json.dumps(_plain(known[key])) for key in sorted(known)]
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n")


def _plain(one: Kept | PeerRow) -> dict[str, Any]:
    """Without what is as when nothing is said."""
    silent: dict[str, Any] = {
        f.name: {} if f.name == "decisions" else f.default for f in fields(one)
    }
    return {name: value for name, value in asdict(one).items() if value != silent[name]}


def load_rows(path: Path = RESULTS) -> list[Kept]:
    """The recorded rows, by name and target; none where there is no file."""
    stored = json.loads(path.read_text()) if path.is_file() else []
    return [Kept(**{key: _pair(value) for key, value in one.items()}) for one in stored]


def load_peer(path: Path = PEER) -> Peer:
    """The peer's recorded rows; none where there is no file."""
    if not path.is_file():
        return Peer()
    stored = json.loads(path.read_text())
    return Peer(stored["about"], {row["name"]: PeerRow(**row) for row in stored["rows"]})


def save_peer(path: Path, peer: Peer) -> None:
    """One line a row, by name."""
    lines = [json.dumps(_plain(peer.rows[name])) for name in sorted(peer.rows)]
    about = json.dumps(dict(peer.about), indent=1)
    path.write_text(f'{{"about": {about},\n"rows": [\n' + ",\n".join(lines) + "\n]}\n")
