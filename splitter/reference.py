"""ONNX Runtime as the reference: what the original model computes.

Decides how the reference runs: on the CPU, with graph optimizations off where asked, since they
change the numbers of quantize/dequantize graphs. Leaves comparison to `verify`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray

from splitter.diagnostics import SplitterError, nearest
from splitter.failures import ONNX_FAILURES
from splitter.stored import for_runtime

Array = NDArray[Any]

EXTERNAL = "session.model_external_initializers_file_folder_path"
"""The session's entry for the folder that external data is in, of a model given as bytes."""


class OnnxRunner:
    """One ONNX model, loaded once and run on many samples.

    outputs:  names of any values of the graph, intermediate ones too; None for the model's own.
    optimize: let ONNX Runtime rewrite the graph. Off when the numbers of single nodes matter.
    SplitterError when ONNX Runtime cannot load the model; ValueError for an unknown output.
    """

    def __init__(
        self,
        model: onnx.ModelProto | Path | str,
        outputs: Sequence[str] | None = None,
        *,
        threads: int = 2,
        optimize: bool = True,
    ) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 4  # what it raises says the same
        if not optimize:
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        self._where = "" if isinstance(model, onnx.ModelProto) else str(model)
        source = _source(model, outputs, options)
        try:
            self._runtime = onnxruntime.InferenceSession(
                source, options, providers=["CPUExecutionProvider"]
            )
        except ONNX_FAILURES as error:
            raise SplitterError(
                f"ONNX Runtime cannot load the model: {error}",
                where=self._where,
                hint="the original must run in ONNX Runtime before it can be split",
            ) from error
        self.inputs = tuple(node.name for node in self._runtime.get_inputs())
        own = tuple(node.name for node in self._runtime.get_outputs())
        self.outputs = own if outputs is None else tuple(outputs)

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Arrays by input name, as the ONNX file declares them, to arrays by output name.

        SplitterError when ONNX Runtime refuses the arrays or fails in a node.
        """
        try:
            results = self._runtime.run(list(self.outputs), dict(inputs))
        except ONNX_FAILURES as error:
            raise SplitterError(
                f"ONNX Runtime cannot run the model: {error}",
                where=self._where,
                hint="the original must run on every sample: give samples whose values and lengths "
                "it takes (--calibration, --validation; random numbers may be none)",
            ) from error
        return {
            name: np.asarray(result) for name, result in zip(self.outputs, results, strict=True)
        }


def run_onnx(
    model: onnx.ModelProto | Path | str,
    inputs: Mapping[str, Array],
    outputs: Sequence[str] | None = None,
    threads: int = 2,
    *,
    optimize: bool = True,
) -> dict[str, Array]:
    """Run a model on one sample; see `OnnxRunner` for many."""
    return OnnxRunner(model, outputs, threads=threads, optimize=optimize).run(inputs)


def _source(
    model: onnx.ModelProto | Path | str, outputs: Sequence[str] | None, options: Any
) -> bytes | str:
    """What ONNX Runtime loads: the path itself where nothing is to be added to the file."""
    if isinstance(model, onnx.ModelProto):
        missing = () if outputs is None else _missing(model, outputs)
        bare, folder = for_runtime(model)
        if folder:
            options.add_session_config_entry(EXTERNAL, folder)
        return bytes(bare.SerializeToString()) + _declaration(missing)
    if outputs is None:
        return str(model)
    skeleton = onnx.load(str(model), load_external_data=False)
    missing = _missing(skeleton, outputs)
    if not missing:
        return str(model)
    folder = str(Path(model).resolve().parent)
    options.add_session_config_entry(EXTERNAL, folder)
    return Path(model).read_bytes() + _declaration(missing)


def _missing(model: onnx.ModelProto, outputs: Sequence[str]) -> tuple[str, ...]:
    graph = model.graph
    own = {value.name for value in graph.output}
    known = own.union(name for node in graph.node for name in node.output)
    for name in outputs:
        if name not in known:
            raise ValueError(f"the model makes no value {name}; {nearest(name, known)}")
    return tuple(name for name in dict.fromkeys(outputs) if name not in own)


def _declaration(names: Sequence[str]) -> bytes:
    """A model that declares outputs only. Serialized messages put end to end are merged when read,
    so the caller's model is neither copied nor changed.
    """
    if not names:
        return b""
    addition = onnx.ModelProto()
    for name in names:
        addition.graph.output.add().name = name
    return bytes(addition.SerializeToString())
