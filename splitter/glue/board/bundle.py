"""The bundle's folder: manifest.json and the files it names, refused when they were changed.

manifest.json decides what runs, in which order and with which scales; nothing is guessed here.
"""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np

from splitter.glue.board.messages import BadInput

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    Array = NDArray[Any]

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Tensor:
    """A tensor at the border of a part. real = scale * (q - zero_point); scale None: no scale."""

    name: str
    shape: tuple[int, ...]
    type: str
    scale: float | None
    zero_point: int

    @classmethod
    def read(cls, entry: Mapping[str, Any], name: str = "") -> Tensor:
        kind = np.dtype(str(entry["type"]))
        scale = None if entry["scale"] is None else float(entry["scale"])
        if scale is not None and (kind.kind not in "iu" or not 0 < scale < float("inf")):
            raise ValueError(f"scale {scale} of {entry['name']} ({kind.name})")
        shape = tuple(int(d) for d in entry["shape"])
        return cls(
            name or str(entry["name"]), shape, kind.name, scale, int(entry["zero_point"] or 0)
        )


@dataclass(frozen=True)
class Port:
    """An input or output of the model: ONNX name and dtype, and the tensor that carries it.

    source: where an output comes from, as in the manifest; of an input unused. open: it has as many
    rows as the data decides.
    """

    name: str
    dtype: str
    tensor: Tensor
    source: Mapping[str, Any]
    open: bool = False

    @classmethod
    def read(cls, entry: Mapping[str, Any]) -> Port:
        dtype = np.dtype(str(entry["dtype"]))
        if dtype.kind not in "fiub":
            raise ValueError(f"dtype of {entry['name']}")
        source, is_open = entry.get("from", {}), bool(entry.get("open", False))
        return cls(str(entry["name"]), dtype.name, Tensor.read(entry), source, is_open)


@dataclass(frozen=True)
class Join:
    """A model output that is other outputs, in order, joined along an axis."""

    name: str
    axis: int
    pieces: tuple[str, ...]

    @classmethod
    def read(cls, entry: Mapping[str, Any]) -> Join:
        return cls(str(entry["name"]), int(entry["axis"]), tuple(map(str, entry["pieces"])))


@dataclass(frozen=True)
class LoopBound:
    """A Loop of the model that is written out for so many turns; flag: the output that is true when
    an input needs more."""

    flag: str
    loop: str
    turns: int
    source: str

    @classmethod
    def read(cls, entry: Mapping[str, Any]) -> LoopBound:
        flag, loop, source = (str(entry[key]) for key in ("flag", "loop", "source"))
        return cls(flag, loop, int(entry["turns"]), source)


@dataclass(frozen=True)
class Part:
    """One .tflite file. sources: where each input comes from, as in the manifest."""

    index: int
    device: str
    file: str
    path: Path
    sha256: str
    operators: int
    inputs: tuple[Tensor, ...]
    sources: tuple[Mapping[str, Any], ...]
    outputs: tuple[Tensor, ...]

    @property
    def label(self) -> str:
        return f"part {self.index} ({self.device}, {self.file})"


@dataclass(frozen=True)
class OnnxPart:
    """The .onnx file that runs after the TFLite parts, in ONNX Runtime.

    inputs: name -> numpy type; each is a value of the TFLite parts or a model input of that name.
    outputs: name -> shape, None for a length that data decides, or for all of it. results: the
    model's outputs in order, its own and those that the TFLite parts make.
    """

    index: int
    file: str
    path: Path
    sha256: str
    operators: int
    inputs: Mapping[str, str]
    given: tuple[str, ...]
    outputs: Mapping[str, Any]
    results: tuple[str, ...]
    device: str = "cpu"

    @property
    def label(self) -> str:
        return f"part {self.index} ({self.device}, {self.file})"

    @property
    def open_ended(self) -> tuple[str, ...]:
        """Outputs that have as many rows as the data decides."""
        return tuple(n for n, shape in self.outputs.items() if shape is None or None in shape)


class Bundle:
    """The opened folder. `parts` in order; with unsplit=True the whole integer model instead.

    Raises BadInput when a file is missing, was changed (sha256) or leaves the folder.
    """

    def __init__(self, folder: Path, *, unsplit: bool = False) -> None:
        self.folder = folder
        self.manifest, self.sha256 = _read_json(folder / "manifest.json")
        try:
            self._read()
            self._check_hashes()
            if unsplit:
                self._join()
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            kind = type(error).__name__
            raise BadInput(f"{folder / 'manifest.json'} is damaged ({kind}: {error})") from None

    def _read(self) -> None:
        manifest = self.manifest
        if manifest["schema_version"] != SCHEMA_VERSION:
            version = manifest["schema_version"]
            raise BadInput(f"manifest.json has schema_version {version}, this file reads 1")
        self.target = str(manifest["target"]["name"])
        self.source = dict(manifest["source"])
        self.random = bool(manifest["calibration"]["random"])
        self.inputs = {port.name: port for port in map(Port.read, manifest["inputs"])}
        self.outputs = {port.name: port for port in map(Port.read, manifest["outputs"])}
        self.joins = tuple(map(Join.read, manifest.get("joined", ())))
        unknown = {name for join in self.joins for name in join.pieces} - set(self.outputs)
        if unknown:
            raise ValueError(f"there is no output {', '.join(sorted(unknown))}")
        self.loops = tuple(map(LoopBound.read, manifest.get("loops", ())))
        late = {loop.flag for loop in self.loops} - set(self.outputs)
        if late:
            raise ValueError(f"there is no output {', '.join(sorted(late))}")
        self.parts = tuple(self._part(i, entry) for i, entry in enumerate(manifest["parts"]))
        made: list[set[str]] = []
        for part in self.parts:
            self._check_sources(part.sources, made)
            made.append({tensor.name for tensor in part.outputs})
        self._check_sources([port.source for port in self.outputs.values()], made)
        sources = [source for part in self.parts for source in part.sources]
        sources += [port.source for port in self.outputs.values()]
        carried = {source["model_input"] for source in sources if "model_input" in source}
        self.carried = tuple(name for name in self.inputs if name in carried)
        entry = manifest.get("remainder")
        self.remainder = self._onnx_part(entry) if entry else None
        used = {*carried, *(self.remainder.given if self.remainder else ())}
        self.used = tuple(name for name in self.inputs if name in used)

    @property
    def open_ended(self) -> tuple[str, ...]:
        """Outputs that have as many rows as the data decides."""
        whole = {piece: join.name for join in self.joins for piece in join.pieces}
        names = [whole.get(n, n) for n, port in self.outputs.items() if port.open]
        return (*dict.fromkeys(names), *(self.remainder.open_ended if self.remainder else ()))

    def _part(self, index: int, entry: Mapping[str, Any]) -> Part:
        return Part(
            index,
            str(entry["device"]),
            str(entry["file"]),
            self._inside(str(entry["file"])),
            str(entry["sha256"]),
            int(entry["operators"]),
            tuple(Tensor.read(e) for e in entry["inputs"]),
            tuple(e["from"] for e in entry["inputs"]),
            tuple(Tensor.read(e) for e in entry["outputs"]),
        )

    def _onnx_part(self, entry: Mapping[str, Any]) -> OnnxPart:
        if entry["runtime"] != "onnxruntime":
            raise ValueError(f"runtime {entry['runtime']}")
        given = tuple(str(e["name"]) for e in entry["inputs"] if "model_input" in e["from"])
        part = OnnxPart(
            len(self.parts),
            str(entry["file"]),
            self._inside(str(entry["file"])),
            str(entry["sha256"]),
            int(entry["operators"]),
            {str(e["name"]): np.dtype(str(e["dtype"])).name for e in entry["inputs"]},
            given,
            {str(e["name"]): e["shape"] for e in entry["outputs"]},
            tuple(map(str, entry["results"])),
        )
        known = {*self.outputs, *(join.name for join in self.joins)}
        missing = [n for n in part.inputs if n not in (self.inputs if n in given else known)]
        missing += [name for name in part.results if name not in {*known, *part.outputs}]
        if missing:
            raise ValueError(f"there is no value {', '.join(missing)}")
        return part

    def _check_sources(self, sources: Sequence[Mapping[str, Any]], made: list[set[str]]) -> None:
        for source in sources:
            if "model_input" in source:
                known = source["model_input"] in self.inputs
            elif "part" in source:
                known = 0 <= source["part"] < len(made) and source["output"] in made[source["part"]]
            else:
                known = constant(source["constant"]) is not None
            if not known:
                raise ValueError(f"there is no {dict(source)}")

    def _join(self) -> None:
        """One part that is the whole model; an output keeps the name of its tensor."""
        entry = self.manifest["unsplit"]
        if not entry:
            raise BadInput(
                "nothing of this bundle runs as TFLite: there is no whole to run instead"
            )
        ports = [port for port in self.outputs.values() if "part" in port.source]
        whole = {str(port.source["output"]): port.tensor for port in ports}
        self.parts = (
            Part(
                0,
                "cpu",
                str(entry["file"]),
                self._inside(str(entry["file"])),
                str(entry["sha256"]),
                sum(part.operators for part in self.parts),
                tuple(self.inputs[name].tensor for name in self.carried),
                tuple({"model_input": name} for name in self.carried),
                tuple(
                    Tensor(name, tensor.shape, tensor.type, tensor.scale, tensor.zero_point)
                    for name, tensor in whole.items()
                ),
            ),
        )
        for port in ports:
            source = {"part": 0, "output": port.source["output"]}
            self.outputs[port.name] = Port(port.name, port.dtype, port.tensor, source, port.open)

    def _inside(self, file: str) -> Path:
        pure = PurePosixPath(file)
        path = (self.folder / pure).resolve()
        inside = self.folder.resolve() in path.parents
        if not inside or pure.is_absolute() or ".." in pure.parts or "\\" in file:
            raise BadInput(f"manifest.json: {file!r} leaves the bundle's folder")
        return path

    def _check_hashes(self) -> None:
        wrong = []
        more = self.manifest.get("remainder")
        whole = [entry for entry in (self.manifest["unsplit"], more) if entry]
        for entry in [*self.manifest["parts"], *whole]:
            path = self._inside(str(entry["file"]))
            if not path.is_file():
                wrong.append(f"{entry['file']} is missing")
            elif file_sha256(path) != entry["sha256"]:
                wrong.append(f"{entry['file']} was changed (its sha256 is not the manifest's)")
        if wrong:
            raise BadInput(f"{self.folder}: " + "; ".join(wrong))


def constant(entry: Mapping[str, Any]) -> Array:
    """An output that no part computes: {"type", "shape", "data": base64 of little-endian}."""
    data = np.frombuffer(base64.b64decode(entry["data"]), np.dtype(entry["type"]).newbyteorder("<"))
    return data.astype(entry["type"]).reshape([int(d) for d in entry["shape"]])


def file_sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        for block in iter(lambda: stream.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def _read_json(path: Path) -> tuple[dict[str, Any], str]:
    try:
        text = path.read_bytes()
        manifest = json.loads(text)
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError:
        raise BadInput(f"{path} is not JSON") from None
    if not isinstance(manifest, dict):
        raise BadInput(f"{path} is not a manifest")
    return manifest, hashlib.sha256(text).hexdigest()
