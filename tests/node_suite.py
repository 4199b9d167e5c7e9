"""The ONNX project's own node tests through normalize, layout, lower and the interpreter.

Nobody here wrote them: they ship inside the `onnx` package. Each is run as it stands, every input a
model input; where that is refused, once more with all inputs but the first as constants, which is
how models carry weights and parameters. Decides what counts as out of scope.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Literal

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper
from onnx.backend.test.case.test_case import TestCase
from onnx.backend.test.loader import load_model_tests

from splitter.diagnostics import SplitterError, Unsupported
from splitter.graph import Value
from splitter.layout import layout
from splitter.lower import lower
from splitter.model import Model
from splitter.normalize import normalize
from splitter.normalize.canonical import NEWEST
from splitter.ops import OPS
from splitter.tflite.runtime import Interpreter, KernelError
from splitter.tflite.types import LiteGraph
from splitter.tflite.write import write

Array = NDArray[Any]
Kind = Literal["pass", "pass with constants", "refused", "wrong", "broken", "out of scope"]

TYPES = frozenset(
    "float16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool".split()
)
TRAINING = frozenset(
    "NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss Adagrad Adam Momentum Gradient".split()
)
RANDOM = frozenset(
    "Bernoulli Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike".split()
)
LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class Outcome:
    """What became of one node test, and why."""

    name: str
    operator: str
    opset: int
    kind: Kind
    reason: str = ""


@cache
def node_tests() -> dict[str, TestCase]:
    """All node tests by name."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return {test.name: test for test in load_model_tests(kind="node")}


@cache
def operators() -> dict[str, str]:
    """The operator that each test is about: tests of expanded functions carry the function's."""
    tests = node_tests()
    alone = {
        name: test.model.graph.node[0].op_type
        for name, test in tests.items()
        if "_expanded" not in name and len(test.model.graph.node)
    }
    return {
        name: alone.get(name.partition("_expanded")[0], test.model.graph.node[0].op_type)
        for name, test in tests.items()
    }


def opset_of(model: onnx.ModelProto) -> int:
    return max((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), default=0)


def scope(test: TestCase) -> str:
    """Why a test is out of scope, "" when it is in scope."""
    model = test.model
    for value in (*model.graph.input, *model.graph.output):
        if not value.type.HasField("tensor_type"):
            return "sequences, optionals, maps"
        number = value.type.tensor_type.elem_type
        if number == onnx.TensorProto.STRING:
            return "strings"
        name = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(number)).name
        if name not in TYPES:
            return "types that TFLite lacks (bfloat16, float8, 4 and 2 bits, complex)"
    used = {node.op_type for node in model.graph.node} | {operators()[test.name]}
    if used & TRAINING or "training" in test.name:
        return "training"
    if used & RANDOM:
        return "random numbers"
    if any(node.domain not in ("", "ai.onnx") for node in model.graph.node):
        return "other domains than ONNX's own"
    if opset_of(model) > NEWEST:
        return f"opsets after {NEWEST}"
    arrays = [array for data in test.data_sets for arrays in data for array in arrays]
    return "tensors without elements" if any(array_of(a).size == 0 for a in arrays) else ""


def outcome(name: str) -> Outcome:
    """Run one test; every exception but a refusal is a fault of ours."""
    test = node_tests()[name]
    operator, opset = operators()[name], opset_of(test.model)
    if reason := scope(test):
        return Outcome(name, operator, opset, "out of scope", reason)
    kind: Kind = "pass"
    for inputs, wanted in test.data_sets:
        arrays = {
            value.name: array_of(a)
            for value, a in zip(test.model.graph.input, inputs, strict=False)
        }
        try:
            got, bound = _run_either(test.model, arrays)
        except SplitterError as error:
            return Outcome(name, operator, opset, "refused", _short(error))
        except KernelError as error:
            return Outcome(name, operator, opset, "refused", f"at run time: {error}")
        kind = "pass with constants" if bound else kind
        for produced, expected in zip(got, wanted, strict=True):
            if problem := difference(produced, array_of(expected), test):
                return Outcome(name, operator, opset, "wrong", problem)
    return Outcome(name, operator, opset, kind)


def array_of(value: Any) -> Array:
    """An array of a data set, whatever it is stored as."""
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    return np.asarray(value)


def _short(error: SplitterError) -> str:
    if isinstance(error, Unsupported):
        first = error.causes[0]
        return f"{first.op} (node {', '.join(first.nodes)}): {first.why}"
    return str(error).splitlines()[0].strip()


def _run_either(model: onnx.ModelProto, arrays: dict[str, Array]) -> tuple[list[Array], bool]:
    try:
        return _run(model, arrays, constants=()), False
    except (SplitterError, KernelError):
        later = tuple(arrays)[1:]
        if not later:
            raise
        return _run(model, arrays, constants=later), True


def _run(
    model: onnx.ModelProto, arrays: dict[str, Array], *, constants: Sequence[str]
) -> list[Array]:
    interpreter = Interpreter(write(lowered(model, arrays, constants=constants)))
    feeds = {
        name: _fitting(arrays[name], detail["dtype"]) for name, detail in interpreter.inputs.items()
    }
    results = interpreter.run(feeds)
    return [results[value.name] for value in model.graph.output]


def lowered(
    model: onnx.ModelProto, arrays: dict[str, Array], *, constants: Sequence[str]
) -> LiteGraph:
    """The float graph of a test, with the first lowerings that apply. constants: inputs that are
    bound to their arrays."""
    bound = onnx.ModelProto()
    bound.CopyFrom(model)
    graph = bound.graph
    kept = [value for value in graph.input if value.name not in constants]
    del graph.input[:]
    graph.input.extend(kept)
    for name in constants:
        graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(arrays[name]), name))
    free = {name: array for name, array in arrays.items() if name not in constants}
    inputs = tuple(Value(v.name, free[v.name].shape, free[v.name].dtype.name) for v in kept)
    outputs = tuple(Value(v.name, (), "float32") for v in graph.output)
    shapes = {name: array.shape for name, array in free.items()}
    units = layout(normalize(Model(bound, Path("node.onnx"), "", inputs, outputs), shapes=shapes))
    lowerings = {
        unit.name: way.name
        for unit in units.units
        if unit.op in OPS
        for way in reversed(OPS[unit.op].lowerings)
        if way.applies(units, unit) is None
    }
    return lower(units, lowerings)


def _fitting(array: Array, dtype: Any) -> Array:
    """An input in the type of the TFLite file. Integers must fit into 32 bits."""
    if array.dtype.kind in "iu" and array.size:
        limits = np.iinfo(np.int32)
        if int(array.max()) > limits.max or int(array.min()) < limits.min:
            raise SplitterError("an input holds integers beyond 32 bits")
    return np.ascontiguousarray(array, dtype).reshape(array.shape)


def difference(got: Array, wanted: Array, test: TestCase) -> str:
    """What differs by more than the test allows, "" when nothing does.

    TFLite's float arithmetic saturates: the largest float stands for infinity. What was computed in
    float16 is right to one of its steps.
    """
    if got.shape != wanted.shape:
        return f"shape {got.shape}, not {wanted.shape}"
    if wanted.dtype.kind != "f":
        same = np.array_equal(got.astype(wanted.dtype), wanted)
        return "" if same else "integers or conditions differ"
    clipped = [np.clip(a.astype(np.float64), -LARGEST, LARGEST) for a in (got, wanted)]
    rtol, atol = max(test.rtol, 1e-3), max(test.atol, 1e-3 if wanted.itemsize == 2 else 1e-6)
    if np.allclose(clipped[0], clipped[1], rtol=rtol, atol=atol, equal_nan=True):
        return ""
    error = float(np.nanmax(np.abs(clipped[0] - clipped[1])))
    return f"off by {error:.3g}"


def _safe(name: str) -> Outcome:
    try:
        return outcome(name)
    except Exception as error:  # noqa: BLE001  one table for all, faults of ours included
        opset = opset_of(node_tests()[name].model)
        return Outcome(name, operators()[name], opset, "broken", f"{type(error).__name__}: {error}")


def _many(names: Sequence[str]) -> list[Outcome]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return [_safe(name) for name in names]


def run_suite(names: Iterable[str], *, workers: int = 2, chunk: int = 40) -> dict[str, Outcome]:
    """All outcomes. Runs in processes of their own, since a kernel that aborts takes its process
    with it; its chunk is then run again one test at a time."""
    listed = list(names)
    chunks = [listed[i : i + chunk] for i in range(0, len(listed), chunk)]
    found: dict[str, Outcome] = {}
    lost: list[str] = []
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        futures = [(part, pool.submit(_many, part)) for part in chunks]
        for part, future in futures:
            try:
                found.update((o.name, o) for o in future.result())
            except BrokenProcessPool:
                lost += part
    for name in lost:
        found[name] = _alone(name)
    return found


def _alone(name: str) -> Outcome:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        try:
            return pool.submit(_safe, name).result()
        except BrokenProcessPool:
            opset = opset_of(node_tests()[name].model)
            return Outcome(name, operators()[name], opset, "broken", "the runtime aborted")
