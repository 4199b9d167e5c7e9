"""A small integer model in two parts, made into a bundle by the project's own stages."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from splitter.calibration import Samples
from splitter.carve import Part, cut
from splitter.glue import Artifacts, Manifest, build_manifest, glue_files, write_bundle
from splitter.graph import Array, Value
from splitter.model import Model
from splitter.options import Options
from splitter.rules.targets import load_target
from splitter.tflite.types import LiteGraph, Operator, Quantization, Tensor
from splitter.tflite.write import write

IMAGE = Quantization((0.05,), (3,))
SUM = Quantization((0.06,), (1,))
SIGMOID = Quantization((1 / 256,), (-128,))


def variable(
    name: str, shape: tuple[int, ...], dtype: str, q: Quantization | None = None
) -> Tensor:
    return Tensor(name, shape, dtype, None, q)


def constant(name: str, data: Any, dtype: str, q: Quantization | None = None) -> Tensor:
    array = np.asarray(data, dtype=dtype)
    return Tensor(name, array.shape, dtype, array, q)


def whole_graph() -> LiteGraph:
    """NPU: sum = image + bias, turned = sum^T. CPU: scores = sigmoid(turned), more, big."""
    tensors = (
        variable("image", (2, 3, 4), "int8", IMAGE),
        variable("ids", (2, 5), "int32"),
        constant("bias", [-60, -5, 20, 90], "int8", Quantization((0.02,), (-1,))),
        variable("sum", (2, 3, 4), "int8", SUM),
        constant("order", [0, 2, 1], "int32"),
        variable("turned", (2, 4, 3), "int8", SUM),
        variable("scores", (2, 4, 3), "int8", SIGMOID),
        constant("seven", [7], "int32"),
        variable("more", (2, 5), "int32"),
        constant("zero", [1], "int8", SUM),
        variable("big", (2, 4, 3), "bool"),
    )
    none = {"fused_activation_function": "NONE"}
    operators = (
        Operator("ADD", ("image", "bias"), ("sum",), none),
        Operator("TRANSPOSE", ("sum", "order"), ("turned",)),
        Operator("LOGISTIC", ("turned",), ("scores",)),
        Operator("ADD", ("ids", "seven"), ("more",), none),
        Operator("GREATER", ("turned", "zero"), ("big",)),
    )
    outputs = ("scores", "more", "big", "sum")
    return LiteGraph(("image", "ids"), outputs, {t.name: t for t in tensors}, operators)


def make_model() -> Model:
    """As ONNX declares it: int64 where TFLite has int32, and an output that is an input."""
    inputs = (Value("image", (2, 3, 4), "float32"), Value("ids", (2, 5), "int64"))
    outputs = (
        Value("scores", (2, 4, 3), "float32"),
        Value("more", (2, 5), "int64"),
        Value("big", (2, 4, 3), "bool"),
        Value("sum", (2, 3, 4), "float32"),
        Value("ids", (2, 5), "int64"),
    )
    return Model(onnx.ModelProto(), Path("nets/small.onnx"), "5" * 64, inputs, outputs)


def make_manifest(
    parts: tuple[Part, ...],
    whole: LiteGraph,
    artifacts: Artifacts,
    *,
    model: Model | None = None,
    random: bool = False,
) -> Manifest:
    arrays = {"image": np.zeros((4, 3, 4), "float32"), "ids": np.zeros((4, 5), "int64")}
    return build_manifest(
        parts,
        whole,
        artifacts,
        model=model or make_model(),
        target=load_target("imx95"),
        samples=Samples(arrays, "4 rows of calib.npz", random),
        options=Options(Path("nets/small.onnx"), "imx95", Path("out")),
    )


@dataclass(frozen=True)
class Made:
    """A bundle on disk and what it was made of."""

    folder: Path
    model: Model
    whole: LiteGraph
    parts: tuple[Part, ...]
    artifacts: Artifacts
    manifest: Manifest
    files: Mapping[str, bytes]

    def run(self, *arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
        """glue/run.py in a process of its own, as on a board."""
        return subprocess.run(
            [sys.executable, str(self.folder / "glue" / "run.py"), *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=120,
            env={**os.environ, "PYTHONPATH": "", **environment},
        )

    def module(self) -> Any:
        """glue/run.py itself, imported from the bundle."""
        path = self.folder / "glue" / "run.py"
        spec = importlib.util.spec_from_file_location("bundle_run", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["bundle_run"] = module
        spec.loader.exec_module(module)
        return module


def make(folder: Path, *, random: bool = False) -> Made:
    whole = whole_graph()
    npu, cpu = cut(whole, [(0, 1), (2, 3, 4)])
    parts = (Part("npu", npu), Part("cpu", cpu))
    artifacts = Artifacts((write(npu), write(cpu)), write(whole))
    manifest = make_manifest(parts, whole, artifacts, random=random)
    files = artifacts.files(["npu", "cpu"]) | glue_files(manifest, load_target("imx95"))
    return Made(write_bundle(folder, files), make_model(), whole, parts, artifacts, manifest, files)


@pytest.fixture
def bundle(tmp_path: Path) -> Made:
    return make(tmp_path / "out")


@pytest.fixture(scope="session")
def make_bundle() -> Callable[..., Made]:
    return make


@pytest.fixture(scope="session")
def describe() -> Callable[..., Manifest]:
    return make_manifest


@pytest.fixture
def feeds() -> dict[str, Array]:
    """Three batches of two, no value outside any range."""
    rng = np.random.default_rng(7)
    image = rng.uniform(-5, 5, (6, 3, 4)).astype("float32")
    return {"image": image, "ids": rng.integers(-9, 9, (6, 5), dtype="int64")}


@pytest.fixture
def in_npz(tmp_path: Path, feeds: dict[str, Array]) -> Path:
    path = tmp_path / "in.npz"
    np.savez(path, **feeds)  # type: ignore[arg-type]
    return path


@pytest.fixture(scope="session")
def delegate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """delegate.c compiled; what it does is set by the environment variable TEST_DELEGATE."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    library = tmp_path_factory.mktemp("delegate") / "libtest_delegate.so"
    source = Path(__file__).with_name("delegate.c")
    command = [compiler, "-shared", "-fPIC", "-Wall", "-Werror", "-o", str(library), str(source)]
    subprocess.run(command, check=True)
    return library
