"""The ONNX part behind the TFLite parts, in ONNX Runtime: real values in and out, by ONNX names."""

from __future__ import annotations

import importlib
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from splitter.glue.board.bundle import OnnxPart
from splitter.glue.board.messages import BadInput

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Array = NDArray[Any]


class OnnxStep(NamedTuple):
    """One inference of the ONNX part: outputs by name, seconds."""

    outputs: dict[str, Array]
    invoke: float


class OnnxEngine:
    """The ONNX part ready to run, on the CPU."""

    def __init__(self, part: OnnxPart, *, threads: int) -> None:
        self.part = part
        self._runtime = load_onnxruntime(part)
        self._failures = _failures()
        self.version = str(self._runtime.__version__)
        options = self._runtime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 4  # what it raises says the same
        try:
            self._session = self._runtime.InferenceSession(
                str(part.path), options, providers=["CPUExecutionProvider"]
            )
        except self._failures as error:
            raise BadInput(
                f"{part.label}: ONNX Runtime {self.version} does not open it: {error}"
            ) from None

    def run(self, values: Mapping[str, Array]) -> OnnxStep:
        """Values by ONNX name, those of the TFLite parts dequantized. Raises BadInput."""
        begin = time.perf_counter()
        feeds = {
            name: np.ascontiguousarray(values[name]).reshape(values[name].shape).astype(dtype)
            for name, dtype in self.part.inputs.items()
        }
        names = list(self.part.outputs)
        try:
            made = self._session.run(names, feeds)
        except self._failures as error:
            raise BadInput(f"{self.part.label} failed while it ran: {error}") from None
        outputs = {name: _plain(np.asarray(array)) for name, array in zip(names, made)}  # noqa: B905
        return OnnxStep(outputs, time.perf_counter() - begin)


def load_onnxruntime(part: OnnxPart) -> Any:
    """The module. Raises BadInput when it is not installed."""
    try:
        return importlib.import_module("onnxruntime")
    except ImportError as error:
        raise BadInput(
            f"{part.label} needs ONNX Runtime, which cannot be imported ({error}); "
            "try: pip install onnxruntime"
        ) from None


def _failures() -> tuple[type[Exception], ...]:
    """What ONNX Runtime raises; its errors share no base class but Exception."""
    state = importlib.import_module("onnxruntime.capi.onnxruntime_pybind11_state")
    kinds = [v for v in vars(state).values() if isinstance(v, type) and issubclass(v, Exception)]
    return (*kinds, ValueError, RuntimeError)


def _plain(array: Array) -> Array:
    """Strings come as objects, which no .npz file holds without pickle."""
    return array.astype(np.str_) if array.dtype.kind == "O" else array
