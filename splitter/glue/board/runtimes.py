"""Which TFLite runtime opens a file, with which kernels and delegate."""

from __future__ import annotations

import ctypes
import importlib
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from splitter.glue.board.messages import BadInput

RUNTIMES = {
    "tflite_runtime": "tflite-runtime",
    "ai_edge_litert": "ai-edge-litert",
    "tensorflow": "tensorflow",
}
"""Module -> distribution, in the order in which they are tried: the board's own first."""


@dataclass(frozen=True)
class Runtime:
    """One installed runtime; the three classes are those of its interpreter module."""

    name: str
    version: str
    interpreter: Any
    load_delegate: Any
    resolver: Any

    def open(self, path: Path, *, threads: int, xnnpack: bool, delegate: str) -> Any:
        """An interpreter with its tensors allocated.

        Without xnnpack: the built-in kernels alone, so that XNNPACK takes no node from the delegate
        and parts and whole are rounded alike. Raises BadInput when the file does not open.
        """
        kinds = self.resolver
        kernels = kinds.AUTO if xnnpack else kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES
        delegates = [self._delegate(delegate)] if delegate else []
        try:
            interpreter = self.interpreter(
                model_path=str(path),
                num_threads=threads,
                experimental_op_resolver_type=kernels,
                experimental_delegates=delegates,
            )
            interpreter.allocate_tensors()
        except (ValueError, RuntimeError) as error:
            raise BadInput(f"{path}: {self.name} does not open it: {_reason(error)}") from None
        return interpreter

    def _delegate(self, library: str) -> Any:
        try:
            # First without the runtime, whose half-made delegate complains when it goes.
            ctypes.CDLL(library).tflite_plugin_create_delegate  # noqa: B018
            return self.load_delegate(library)
        except (OSError, ValueError, AttributeError) as error:
            raise BadInput(f"--delegate {library}: cannot be loaded: {error}") from None


def load_runtime(name: str = "") -> Runtime:
    """The named runtime, or the first of RUNTIMES that imports."""
    reasons = []
    for module in [name] if name else list(RUNTIMES):
        try:
            return _import(module)
        except (ImportError, AttributeError) as error:
            reasons.append(f"{module}: {error}")
    raise BadInput("no TFLite runtime: " + "; ".join(reasons) + "; try: pip install ai-edge-litert")


def _import(module: str) -> Runtime:
    try:
        version = metadata.version(RUNTIMES[module])
    except metadata.PackageNotFoundError:
        version = "unknown"
    if module == "tensorflow":
        lite = importlib.import_module("tensorflow").lite
        tools = lite.experimental
        return Runtime(module, version, lite.Interpreter, tools.load_delegate, tools.OpResolverType)
    lite = importlib.import_module(f"{module}.interpreter")
    return Runtime(module, version, lite.Interpreter, lite.load_delegate, lite.OpResolverType)


def _reason(error: Exception) -> str:
    text = str(error).strip() or type(error).__name__
    if "custom op" in text.lower():
        return f"{text} (a converted file runs with the NPU's delegate only: --delegate PATH)"
    return text
