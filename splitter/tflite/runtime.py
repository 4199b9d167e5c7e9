"""The LiteRT interpreter by tensor names, with the built-in kernels alone unless asked otherwise.

Decides which kernel set runs (the built-in ones: XNNPACK rounds differently and would hide what a
board without it computes). Leaves conversion between float and integers to the caller: arrays go in
and come out in the types of the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from ai_edge_litert import interpreter as litert
from numpy.typing import NDArray

from splitter.diagnostics import SplitterError, nearest
from splitter.tflite.read import read
from splitter.tflite.types import Operator

Array = NDArray[Any]

_NODE = re.compile(r"Node number (\d+) \(([^)]*)\) failed")
_MISSING = re.compile(r"builtin opcode '(\w+)'")


class KernelError(RuntimeError):
    """The runtime refused a model or failed in it.

    operator: the code of the operator it names, outputs: its output tensors; empty when the runtime
    names none. The message holds both and the runtime's own words.
    """

    def __init__(self, message: str, *, operator: str = "", outputs: tuple[str, ...] = ()) -> None:
        place = f"{operator} (writes {', '.join(outputs)}): " if operator else ""
        super().__init__(f"{place}{message}")
        self.operator = operator
        self.outputs = outputs


class SampleError(KernelError, SplitterError):
    """A kernel failed on the arrays of a sample, as on an index out of bounds."""

    def __init__(self, failed: KernelError) -> None:
        RuntimeError.__init__(self, str(failed))
        self.operator, self.outputs = failed.operator, failed.outputs
        self.what = f"the TFLite runtime failed on a sample: {failed}"
        self.where = ""
        self.hint = (
            "give samples whose values the model takes (an index within its table, say; random "
            "numbers may be none); if ONNX Runtime runs the model on the same arrays, the fault is "
            "this tool's: please report it"
        )

    def __str__(self) -> str:
        return SplitterError.__str__(self)


class Interpreter:
    """One .tflite file, allocated and ready to run.

    model:       the bytes of the file; they are referred to, not copied.
    all_tensors: keep every intermediate tensor for `tensor`.
    xnnpack:     let XNNPACK take what it can, as the runtime does by default on a PC.
    KernelError when the runtime refuses the model.
    """

    def __init__(
        self, model: bytes, *, threads: int = 1, all_tensors: bool = False, xnnpack: bool = False
    ) -> None:
        kernels = litert.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
        if xnnpack:
            kernels = litert.OpResolverType.BUILTIN
        self._model = model
        try:
            self._runtime = litert.Interpreter(
                model_content=model,
                num_threads=threads,
                experimental_op_resolver_type=kernels,
                experimental_preserve_all_tensors=all_tensors,
            )
            self._runtime.allocate_tensors()
        except (RuntimeError, ValueError) as error:
            raise _explained(model, str(error)) from error
        self.inputs = _details(self._runtime.get_input_details())
        self.outputs = _details(self._runtime.get_output_details())

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Arrays by input name to arrays by output name, in the file's own types and shapes.

        ValueError for a missing, unknown or misshapen input; SampleError when a kernel fails.
        """
        for name in inputs:
            if name not in self.inputs:
                raise ValueError(f"the model has no input {name}; {nearest(name, self.inputs)}")
        for name, detail in self.inputs.items():
            if name not in inputs:
                raise ValueError(f"no array for the input {name}")
            self._runtime.set_tensor(detail["index"], _checked(name, inputs[name], detail))
        try:
            self._runtime.invoke()
        except (RuntimeError, ValueError) as error:
            raise SampleError(_explained(self._model, str(error))) from error
        return {
            name: np.asarray(self._runtime.get_tensor(detail["index"]))
            for name, detail in self.outputs.items()
        }

    def tensor(self, name: str) -> Array:
        """A copy of any tensor after `run`; intermediate ones need `all_tensors`."""
        if name not in self._index:
            raise ValueError(f"the model has no tensor {name}; {nearest(name, self._index)}")
        return np.asarray(self._runtime.get_tensor(self._index[name]))

    @cached_property
    def _index(self) -> dict[str, int]:
        return {d["name"]: d["index"] for d in self._runtime.get_tensor_details() if d["name"]}


def run_samples(
    model: bytes, samples: Iterable[Mapping[str, Array]], *, threads: int = 1
) -> list[dict[str, Array]]:
    """Run a file on samples one after another, built-in kernels; see `Interpreter.run`."""
    interpreter = Interpreter(model, threads=threads)
    return [interpreter.run(sample) for sample in samples]


def _details(details: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    return {detail["name"]: detail for detail in details}


def _checked(name: str, array: Array, detail: Mapping[str, Any]) -> Array:
    shape = tuple(int(size) for size in detail["shape"])
    if array.shape != shape or array.dtype != detail["dtype"]:
        wanted = f"{np.dtype(detail['dtype']).name}{list(shape)}"
        raise ValueError(f"input {name} is {wanted}, not {array.dtype.name}{list(array.shape)}")
    return array


def _explained(model: bytes, message: str) -> KernelError:
    """The runtime names an operator by its number, or by its code when it has no such kernel."""
    node, missing = _NODE.search(message), _MISSING.search(message)
    if node is None and missing is None:
        return KernelError(message)
    try:
        operators = read(model).operators
    except SplitterError:
        operators = ()
    if node is not None:
        found = [op for number, op in enumerate(operators) if number == int(node[1])]
        return KernelError(message, operator=node[2], outputs=_first_outputs(found))
    code = str(missing[1]) if missing else ""
    found = [op for op in operators if op.code == code]
    return KernelError(message, operator=code, outputs=_first_outputs(found))


def _first_outputs(operators: Sequence[Operator]) -> tuple[str, ...]:
    return operators[0].outputs if operators else ()
