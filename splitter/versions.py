"""Which versions made a file: the tool's own and those of the packages that shape its numbers."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import metadata

from splitter import __version__

TOOL = "split"
PACKAGES = ("ai-edge-litert", "numpy", "onnx", "onnxruntime")


def tool_version() -> str:
    return __version__


def package_versions() -> Mapping[str, str]:
    """Distribution -> installed version, in a fixed order; "" for one that is not installed."""
    return {name: _version(name) for name in PACKAGES}


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""
