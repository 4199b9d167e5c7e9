"""Runs what was made on samples, each form beside the original: the material for `verify`.

Decides what is run: the ONNX file in ONNX Runtime, the float graphs and the whole integer file in
LiteRT's built-in kernels, and the parts in order by the very code that goes to the board. Leaves
comparing to `verify`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from splitter.diagnostics import SplitterError
from splitter.glue.board.bundle import Bundle, Tensor
from splitter.glue.board.engine import Settings
from splitter.glue.board.messages import BadInput
from splitter.glue.board.numbers import dequantize
from splitter.glue.board.runner import Result, Runner, whole_outputs
from splitter.glue.bundle import write_bundle
from splitter.graph import Array, Value
from splitter.model import Model
from splitter.reference import OnnxRunner
from splitter.remainder import Remainder
from splitter.tail import NO_TRIAL, Trial
from splitter.tflite.runtime import Interpreter
from splitter.tflite.types import LiteGraph
from splitter.tflite.write import write
from splitter.verify import Behind, Ranking, Run, near_tie

Arrays = Mapping[str, Array]
Step = Callable[[int, int], None]

REWRITTEN = 2
"""Samples that also run through the float graph with the plan's lowerings: its error against the
exact one varies little from sample to sample."""


PARTS_FAIL = (
    "the file itself runs on these arrays, so the integers before the part gave values that it "
    "does not take: give more calibration samples of the real kind, keep 16 bits where they are "
    "made (--int16 auto), or end the model before that node (--outputs VALUE,...) and do the rest "
    "in your own code"
)
NOT_OPENED = "end the model before that node (--outputs VALUE,...) and do the rest in your own code"


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
    exact: LiteGraph,
    planned: LiteGraph,
    trial: Trial = NO_TRIAL,
    remainder: Remainder | None = None,
    threads: int,
    step: Step = lambda done, total: None,
) -> Iterator[Run]:
    """One `Run` for each sample. folder: an unpacked bundle. outputs: the model's, static shapes.

    exact, planned: the float graph with exact lowerings and with those of the plan; often the same
    one. Only the first REWRITTEN samples go through `planned` too: it is a second float model.
    original, outputs: with a `remainder`, the model up to it.
    Inner values are added where a part hands on a value of the ONNX file, as it is stored there.
    The forms run side by side, a thread each, `threads` of them at a time: two threads in one
    interpreter wait for each other and are slower than one when anything else runs.
    """
    behind = BehindRunner(remainder, original) if remainder else None
    settings = Settings(threads=1)
    with told("verification", NOT_OPENED):
        parts = Runner(Bundle(folder), settings)
        whole = Runner(Bundle(folder, unsplit=True), settings)
    inner = inner_values(original, parts.bundle)
    names = [value.name for value in outputs]
    ranked = Rankings(original, exact)
    reference = OnnxRunner(original.proto, [*names, *inner, *ranked.reference], threads=1)
    floats = FloatModel(replace(exact, outputs=(*exact.outputs, *ranked.candidate)))
    rewritten = None if planned is exact else FloatModel(planned)
    with ThreadPoolExecutor(threads) as pool:
        for index, sample in enumerate(samples):
            step(index, len(samples))
            made = pool.submit(parts.run, sample, keep_raw=True)
            one, other = pool.submit(whole.run, sample), pool.submit(floats.run, sample)
            third = pool.submit(rewritten.run, sample) if rewritten else None
            if index + 1 == REWRITTEN:
                rewritten = None
            fifth = pool.submit(behind.whole.run, sample) if behind else None
            result = _result(made, fifth, f"sample {index + 1} of those to verify on")
            raw = {key.partition("/")[2]: array[0] for key, array in result.raw.items()}
            fourth = pool.submit(trial.tail.run, raw) if trial.tail and index < trial.runs else None
            expected = pool.submit(reference.run, sample).result()
            tie = near_tie(ranked.of({**sample, **expected}, other.result()))
            integer = dict(one.result().values)
            for name, tensor in inner.items():
                if raw[name].shape == expected[name].shape:
                    integer[name] = dequantize(raw[name], tensor, expected[name].dtype.name)
                else:  # the parts store it in another layout
                    del expected[name]
            expected = {name: expected[name] for name in (*names, *inner) if name in expected}
            yield Run(
                expected,
                integer,
                result.values,
                as_declared(other.result(), outputs),
                as_declared(third.result(), outputs) if third else None,
                wider=joined(parts.bundle, raw, fourth.result()) if fourth else None,
                tie=tie,
                behind=behind.compared(fifth.result(), sample, expected, result.outputs)
                if behind and fifth
                else None,
            )


def _result(made: Future[Result], whole: Future[dict[str, Array]] | None, where: str) -> Result:
    """What the parts made of a sample. SplitterError where a runtime fails in one of them; where
    the whole file fails on the sample too, that is told instead."""
    with told(where, PARTS_FAIL):
        failure = made.exception()
        if isinstance(failure, BadInput) and whole is not None:
            whole.result()
        return made.result()


@contextmanager
def told(where: str, hint: str) -> Iterator[None]:
    """What a runtime has against a part, with its node, becomes a SplitterError: `where` it was."""
    try:
        yield
    except BadInput as error:
        raise SplitterError(str(error), where=where, hint=hint) from error


class BehindRunner:
    """The whole file and the ONNX part cut out of it, in ONNX Runtime."""

    def __init__(self, remainder: Remainder, original: Model) -> None:
        self._remainder = remainder
        self._ranked = behind_rankings(original)
        self.whole = OnnxRunner(remainder.whole.proto, list(remainder.results), threads=1)
        self._part = OnnxRunner(remainder.proto, threads=1)
        open_ended = {
            port.name for port in remainder.outputs if port.shape is None or None in port.shape
        }
        self._fixed = frozenset(remainder.results) - open_ended

    def compared(self, whole: Arrays, sample: Arrays, values: Arrays, integer: Arrays) -> Behind:
        """values: what ONNX Runtime computes up to the part. integer: the bundle's outputs."""
        known = {**values, **sample}
        cut = self._part.run({port.name: known[port.name] for port in self._remainder.inputs})
        own = list(self._part.outputs)
        results = self._remainder.results
        return Behind(
            {n: whole[n] for n in own},
            cut,
            {n: integer[n] for n in own},
            ({n: whole[n] for n in results}, {n: integer[n] for n in results}),
            self._fixed,
            self._ranked,
        )


def behind_rankings(model: Model) -> frozenset[str]:
    """The values that hang on the order in which a TopK puts its rows."""
    found: set[str] = set()
    for node in model.proto.graph.node:
        if node.op_type == "TopK" or found.intersection(node.input):
            found.update(node.output)
    return frozenset(found)


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


class Rankings:
    """The TopK operators that both the ONNX file and the float graph have, in the file's order."""

    def __init__(self, original: Model, lite: LiteGraph) -> None:
        self._inputs = {value.name for value in original.inputs}
        self._nodes = [
            node
            for node in original.proto.graph.node
            if node.op_type == "TopK" and len(node.output) > 1 and node.output[1] in lite.producers
        ]

    @property
    def reference(self) -> list[str]:
        """Names of what ONNX Runtime must give besides: scores that are no input, and indices."""
        named = [name for node in self._nodes for name in (node.input[0], node.output[1])]
        return [name for name in named if name not in self._inputs]

    @property
    def candidate(self) -> list[str]:
        """Names of what the float graph must give besides: indices."""
        return [node.output[1] for node in self._nodes]

    def of(self, reference: Arrays, candidate: Arrays) -> Iterator[Ranking]:
        """What one run ranked."""
        for node in self._nodes:
            axis = next((a.i for a in node.attribute if a.name == "axis"), -1)
            indices = node.output[1]
            yield Ranking(reference[node.input[0]], reference[indices], candidate[indices], axis)


def joined(bundle: Bundle, raw: Arrays, made: Arrays) -> dict[str, Array]:
    """The model's outputs from what a tail made, the others from the raw values of the parts."""
    real = {
        name: made[name].astype(port.dtype)
        if name in made
        else dequantize(raw[name], port.tensor, port.dtype)
        for name, port in bundle.outputs.items()
    }
    return whole_outputs(real, bundle.joins)


class FloatModel:
    """A whole float graph, run on arrays of the ONNX types."""

    def __init__(self, graph: LiteGraph) -> None:
        self._interpreter = Interpreter(write(graph, beyond=True))

    def run(self, sample: Arrays) -> dict[str, Array]:
        feeds = {
            name: sample[name].astype(detail["dtype"])
            for name, detail in self._interpreter.inputs.items()
        }
        return self._interpreter.run(feeds)


def as_declared(made: Arrays, outputs: Sequence[Value]) -> dict[str, Array]:
    """The model's outputs among the arrays, in the ONNX types."""
    return {value.name: made[value.name].astype(value.dtype) for value in outputs}
