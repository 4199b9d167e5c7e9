"""What ONNX Runtime raises: its errors share no base class but Exception, and come by versions.

Decides nothing. Whoever runs it catches these and says what the user must change.
"""

from __future__ import annotations

from onnxruntime.capi import onnxruntime_pybind11_state as state

ONNX_FAILURES: tuple[type[Exception], ...] = (
    *(v for v in vars(state).values() if isinstance(v, type) and issubclass(v, Exception)),
    ValueError,
    RuntimeError,
)
"""All kinds that the installed version has, and the two that its binding to Python raises."""
