"""`split inspect`: which files to look at, by which rules, and whether the answer is good.

Decides that parts for the NPU are judged by the target's rules and parts for the CPU are not, and
when a file must have been through the vendor's converter: when no manifest.json beside or above it
lists its very bytes. What is wrong with a file is `inspect`'s to say.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import onnx

from splitter.diagnostics import SplitterError
from splitter.glue.manifest import FILE, Manifest, check_files, read_manifest
from splitter.inspect import Inspection, inspect, placement, problems, text
from splitter.rules.schema import Target
from splitter.rules.support import check_lite
from splitter.tflite.read import header, read


@dataclass(frozen=True)
class Examined:
    """One file. device: of a part of a bundle, "" for a file by itself. placed: where a converted
    file runs, "" for one that has not been converted."""

    file: str
    description: str
    device: str
    inspection: Inspection
    placed: str

    @property
    def failures(self) -> tuple[str, ...]:
        """Why the exit status is 1."""
        nothing = self.placed and not self.inspection.neutron_graphs
        return (*problems(self.inspection), *([self.placed] if nothing else []))

    def to_text(self) -> str:
        title = f"{self.file}" + (f"  (for the {self.device})" if self.device else "")
        verdict = "; ".join(self.failures) or "nothing is wrong"
        placed = [self.placed] if self.placed else []
        return "\n".join([title, text(self.inspection), *placed, f"result: {verdict}"])

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "failures": list(self.failures)}


@dataclass(frozen=True)
class ExaminedOnnx:
    """The ONNX part of a bundle: float by design, judged by no rule."""

    file: str
    device: str
    operators: dict[str, int]
    failures: tuple[str, ...] = ()

    def to_text(self) -> str:
        count = sum(self.operators.values())
        listed = ", ".join(f"{op} {n}" for op, n in self.operators.items())
        return (
            f"{self.file}  (for the {self.device}, ONNX Runtime, float)\n"
            f"{count} operators: {listed}\nresult: nothing is wrong"
        )

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "runtime": "onnxruntime", "failures": list(self.failures)}


def examine(
    path: Path, target: Target | None, *, trust: str
) -> tuple[Examined | ExaminedOnnx, ...]:
    """A .tflite file, or the parts of a bundle's folder in order and the unsplit file.

    target: whose rules the NPU's parts, or the file, must obey; None asks for none.
    Raises SplitterError when the path is neither, or a file of the bundle was changed.
    """
    if not path.is_dir():
        return (_examine(path, target, trust=trust, device=""),)
    manifest = read_manifest(path)
    check_files(manifest, path)
    files = (
        _examine(path / file, target if device == "npu" else None, trust=trust, device=device)
        for file, device in _files(manifest)
    )
    return (*files, *_onnx_part(path, manifest))


def _onnx_part(path: Path, manifest: Manifest) -> Iterator[ExaminedOnnx]:
    part = manifest.remainder
    if part is None:
        return
    nodes = onnx.load(str(path / part.file)).graph.node
    counts = Counter(node.op_type for node in nodes)
    yield ExaminedOnnx(str(path / part.file), part.device, dict(sorted(counts.items())))


def _files(manifest: Manifest) -> Iterator[tuple[str, str]]:
    yield from ((part.file, part.device) for part in manifest.parts)
    if manifest.unsplit:
        yield manifest.unsplit.file, "cpu"


def _examine(path: Path, target: Target | None, *, trust: str, device: str) -> Examined:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SplitterError(f"cannot read it: {error.strerror}", where=str(path)) from error
    graph = read(data, where=str(path))
    judged = target if target is not None and target.has_npu else None
    rules = None
    if judged is not None:
        markers = [f"CUSTOM:{marker}" for marker in judged.tool.output_markers]
        broken = check_lite(graph, judged, trust=trust)
        rules = [(op, why) for op, why in broken if op.code not in markers]
    found = inspect(graph, rules=rules)
    converted = found.neutron_graphs or (judged is not None and not _is_listed(path, data))
    return Examined(
        file=str(path),
        description=header(data, where=str(path)).description,
        device=device,
        inspection=found,
        placed=placement(found) if converted else "",
    )


def _is_listed(path: Path, data: bytes) -> bool:
    """Whether the manifest of a bundle around the file names these bytes."""
    digest = hashlib.sha256(data).hexdigest()
    for folder in (path.parent, path.parent.parent):
        if (folder / FILE).is_file():
            return any(entry.sha256 == digest for entry in read_manifest(folder).files())
    return False
