"""Splits an ONNX model into INT8 TFLite parts for an NPU and a CPU (docs/architecture.md)."""

__version__ = "0.1.0"
