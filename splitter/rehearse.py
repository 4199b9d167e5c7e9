"""Runs what was made on samples, each form beside the original: the material for `verify`.

Decides what is run: the ONNX file in ONNX Runtime, the float graph and the whole integer file in
LiteRT's built-in kernels, and the parts in order by the very code that goes to the board. Leaves
comparing to `verify`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from splitter.glue.board.bundle import Bundle, Tensor
from splitter.glue.board.engine import Settings
from splitter.glue.board.numbers import dequantize
from splitter.glue.board.runner import Runner
from splitter.glue.bundle import write_bundle
from splitter.graph import Array, Value
from splitter.model import Model
from splitter.reference import OnnxRunner
from splitter.tflite.runtime import Interpreter
from splitter.verify import Run

Arrays = Mapping[str, Array]
Step = Callable[[int, int], None]


@contextmanager
def unpacked(files: Mapping[str, bytes]) -> Iterator[Path]:
    """The files of a bundle in a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="split-") as folder:
        yield write_bundle(Path(folder) / "bundle", files)


def runs(
    folder: Path,
    original: Model,
    outputs: Sequence[Value],
    samples: Sequence[Arrays],
    *,
    float_file: bytes,
    threads: int,
    step: Step = lambda done, total: None,
) -> Iterator[Run]:
    """One `Run` for each sample. folder: an unpacked bundle. outputs: the model's, static shapes.

    Inner values are added where a part hands on a value of the ONNX file, as it is stored there.
    The forms run side by side, a thread each, `threads` of them at a time: two threads in one
    interpreter wait for each other and are slower than one when anything else runs.
    """
    settings = Settings(threads=1)
    parts = Runner(Bundle(folder), settings)
    whole = Runner(Bundle(folder, unsplit=True), settings)
    inner = inner_values(original, parts.bundle)
    names = [value.name for value in outputs]
    reference = OnnxRunner(original.proto, [*names, *inner], threads=1)
    floats = FloatFile(float_file, outputs)
    with ThreadPoolExecutor(threads) as pool:
        for index, sample in enumerate(samples):
            step(index, len(samples))
            made = pool.submit(parts.run, sample, keep_raw=True)
            one, other = pool.submit(whole.run, sample), pool.submit(floats.run, sample)
            expected = pool.submit(reference.run, sample).result()
            integer = dict(one.result().outputs)
            for name, tensor in inner.items():
                raw = made.result().raw[f"boundary/{name}"][0]
                if raw.shape == expected[name].shape:
                    integer[name] = dequantize(raw, tensor, expected[name].dtype.name)
                else:  # the parts store it in another layout
                    del expected[name]
            yield Run(expected, integer, made.result().outputs, other.result())


def inner_values(original: Model, bundle: Bundle) -> dict[str, Tensor]:
    """What parts hand on under the name that it has in the ONNX file, with its parameters."""
    known = {name for node in original.proto.graph.node for name in node.output}
    known -= {value.name for value in original.outputs}
    passed = {source.get("output") for part in bundle.parts for source in part.sources}
    return {
        tensor.name: tensor
        for part in bundle.parts
        for tensor in part.outputs
        if tensor.name in known & passed
    }


class FloatFile:
    """The whole float graph, its outputs in the ONNX types."""

    def __init__(self, data: bytes, outputs: Sequence[Value]) -> None:
        self._interpreter = Interpreter(data)
        self._outputs = outputs

    def run(self, sample: Arrays) -> dict[str, Array]:
        feeds = {
            name: sample[name].astype(detail["dtype"])
            for name, detail in self._interpreter.inputs.items()
        }
        made = self._interpreter.run(feeds)
        return {value.name: made[value.name].astype(value.dtype) for value in self._outputs}
