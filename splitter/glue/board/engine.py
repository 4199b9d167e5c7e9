"""One .tflite file in an interpreter: its tensors bound to the manifest's, raw integers in and out.

The vendor's converter may rename and permute inputs and outputs: they are bound by name, else by
shape, type and scale, else by shape and type, and when that is not unique they are refused.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from splitter.glue.board.bundle import Part, Tensor, file_sha256
from splitter.glue.board.messages import BadInput
from splitter.glue.board.placement import Placement, count_placement
from splitter.glue.board.runtimes import load_runtime

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    Array = NDArray[Any]


class Step(NamedTuple):
    """One inference of a part: outputs by name, seconds to set inputs, invoke, read outputs."""

    outputs: dict[str, Array]
    write: float
    invoke: float
    read: float


@dataclass(frozen=True)
class Settings:
    """How parts are run; by default with the built-in kernels, so that parts equal the whole."""

    runtime: str = ""
    threads: int = 1
    xnnpack: bool = False
    delegate: str = ""
    converted: str = ""
    isolate: bool = False
    timeout: float = 60.0


class Engine:
    """A part ready to run in this process."""

    def __init__(self, part: Part, path: Path, settings: Settings) -> None:
        npu = part.device == "npu"
        self.part = part
        self.runtime = load_runtime(settings.runtime)
        self._interpreter = self.runtime.open(
            path,
            threads=settings.threads,
            xnnpack=settings.xnnpack and not npu,
            delegate=settings.delegate if npu else "",
        )
        inputs = self._interpreter.get_input_details()
        outputs = self._interpreter.get_output_details()
        self._inputs = bind(part.inputs, inputs, f"{path}: inputs")
        self._outputs = bind(part.outputs, outputs, f"{path}: outputs")
        self.placement: Placement | None = None
        if npu and settings.delegate:
            self.placement = count_placement(self._interpreter)

    def run(self, feeds: Mapping[str, Array]) -> Step:
        """Raw integers by the names of the part's tensors. Raises BadInput when it fails."""
        begin = time.perf_counter()
        for name, index in self._inputs.items():
            self._interpreter.set_tensor(index, feeds[name])
        written = time.perf_counter()
        try:
            self._interpreter.invoke()
        except (RuntimeError, ValueError) as error:
            raise BadInput(f"{self.part.label} failed while it ran: {error}") from None
        invoked = time.perf_counter()
        outputs = {name: self._interpreter.get_tensor(i) for name, i in self._outputs.items()}
        read = time.perf_counter()
        return Step(outputs, written - begin, invoked - written, read - invoked)

    def close(self) -> None:
        """Nothing to end: the interpreter goes with the object."""


def bind(
    wanted: Sequence[Tensor], details: Sequence[Mapping[str, Any]], where: str
) -> dict[str, int]:
    """Tensor name -> index in the file. Raises BadInput when it is not unique."""
    table = {int(detail["index"]): detail for detail in details}
    bound: dict[str, int] = {}
    for signature in (_by_name, _by_scale, _by_shape):
        bound.update(_unique_fits(wanted, table, bound, signature))
    missing = [tensor for tensor in wanted if tensor.name not in bound]
    if missing:
        raise BadInput(f"{where}: {_unbound(missing, details)}")
    for tensor in wanted:
        _check(tensor, table[bound[tensor.name]], where)
    return bound


def _unique_fits(
    wanted: Sequence[Tensor],
    table: Mapping[int, Mapping[str, Any]],
    bound: Mapping[str, int],
    signature: Callable[[Mapping[str, Any]], Any],
) -> dict[str, int]:
    """Of what is not bound yet, the pairs where one tensor asked for meets one in the file."""
    asked = {t.name: signature(_as_detail(t)) for t in wanted if t.name not in bound}
    taken = set(bound.values())
    have = {index: signature(detail) for index, detail in table.items() if index not in taken}
    times_asked, times_had = Counter(asked.values()), Counter(have.values())
    index_of = {key: index for index, key in have.items()}
    unique = {name: key for name, key in asked.items() if times_asked[key] == times_had[key] == 1}
    return {name: index_of[key] for name, key in unique.items()}


def _as_detail(tensor: Tensor) -> dict[str, Any]:
    scale = (0.0, 0) if tensor.scale is None else (tensor.scale, tensor.zero_point)
    kind = np.dtype(tensor.type)
    return {"name": tensor.name, "shape": tensor.shape, "dtype": kind, "quantization": scale}


def _by_name(detail: Mapping[str, Any]) -> Any:
    return detail["name"]


def _by_shape(detail: Mapping[str, Any]) -> Any:
    return tuple(int(d) for d in detail["shape"]), np.dtype(detail["dtype"]).name


def _by_scale(detail: Mapping[str, Any]) -> Any:
    scale, zero_point = detail["quantization"]
    return (*_by_shape(detail), float(np.float32(scale)), int(zero_point))


def _check(tensor: Tensor, detail: Mapping[str, Any], where: str) -> None:
    if _by_shape(detail) != (tensor.shape, tensor.type):
        shape, kind = _by_shape(detail)
        raise BadInput(
            f"{where}: {tensor.name} is {kind} {list(shape)}, the manifest says "
            f"{tensor.type} {list(tensor.shape)}"
        )
    if float(detail["quantization"][0]) and _by_scale(detail) != _by_scale(_as_detail(tensor)):
        raise BadInput(
            f"{where}: {tensor.name} has scale and zero point {detail['quantization']}, the "
            f"manifest says {(tensor.scale, tensor.zero_point)}; was it made from another bundle?"
        )


def _unbound(missing: Sequence[Tensor], details: Sequence[Mapping[str, Any]]) -> str:
    names = ", ".join(f"{t.name} ({t.type} {list(t.shape)})" for t in missing)
    have = ", ".join(
        f"{d['name']} ({np.dtype(d['dtype']).name} {[int(n) for n in d['shape']]})" for d in details
    )
    return f"none or several fit {names}; the file has {have}"


def converted_file(part: Part, folder: Path) -> Path:
    """The vendor's file for a part: STEM_*.tflite (neutron-converter: _converted), or STEM.tflite.

    Raises BadInput when there is none, several, or only the part as it was.
    """
    stem = Path(part.file).stem
    found = sorted(folder.glob(f"{stem}_*.tflite"))
    if len(found) > 1:
        names = ", ".join(path.name for path in found)
        raise BadInput(f"--converted {folder}: several files for {part.label}: {names}")
    path = found[0] if found else folder / f"{stem}.tflite"
    if not path.is_file():
        raise BadInput(
            f"--converted {folder}: no {stem}.tflite and no {stem}_*.tflite for {part.label}"
        )
    if file_sha256(path) == part.sha256:
        raise BadInput(f"{path} is the part as it was, not the converter's file (same sha256)")
    return path
