"""Runs a bundle: batches, quantize, the parts in order with raw integers between, dequantize."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from splitter.glue.board.bundle import Bundle, Join, LoopBound, Part, constant
from splitter.glue.board.engine import Engine, Settings, Step, converted_file
from splitter.glue.board.isolate import IsolatedEngine
from splitter.glue.board.messages import BadInput, GateFailed
from splitter.glue.board.numbers import dequantize, quantize
from splitter.glue.board.onnx_part import OnnxEngine

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    Array = NDArray[Any]

KINDS = {"f": "f", "i": "iu", "u": "iu", "b": "b"}
"""Kind of the model's dtype -> kinds of arrays taken for it."""


class Lap(NamedTuple):
    """Seconds of one inference: quantize, each part, dequantize, all of it, the ONNX part."""

    quantize: float
    steps: tuple[Step, ...]
    dequantize: float
    total: float
    remainder: float = 0.0


class Result(NamedTuple):
    """outputs by ONNX name; raw integers by "input/NAME", "boundary/NAME", "output/NAME".

    values: what the TFLite parts give, as real values; the outputs themselves without an ONNX part.
    late: Loops that the inputs need more turns of than they have; the outputs are wrong then.
    """

    outputs: dict[str, Array]
    raw: dict[str, Array]
    laps: tuple[Lap, ...]
    values: dict[str, Array]
    late: tuple[LoopBound, ...] = ()


class Runner:
    """The bundle's parts, opened. `run` takes and gives arrays by ONNX names."""

    def __init__(self, bundle: Bundle, settings: Settings) -> None:
        self.bundle = bundle
        self.settings = settings
        self.engines = [_open(part, settings) for part in bundle.parts]
        behind = bundle.remainder
        self.remainder = OnnxEngine(behind, threads=settings.threads) if behind else None

    def run(self, arrays: Mapping[str, Array], *, keep_raw: bool = False) -> Result:
        """Arrays of the model's shapes, or with a first axis of several batches.

        Outputs are joined along their first axis; raw arrays, if kept, get a new first axis, one
        index a batch. Raises BadInput for a wrong name, shape, dtype or value.
        """
        results: list[Result] = []
        for feeds in batches(self.bundle, arrays):
            if results:
                self._refuse_open_ended()
            result = self.infer(feeds)
            _refuse_late(result.late, len(results))
            results.append(result if keep_raw else result._replace(raw={}))
        outputs = _every([result.outputs for result in results])
        values = _every([result.values for result in results])
        raw = {key: np.stack([result.raw[key] for result in results]) for key in results[0].raw}
        laps = tuple(lap for result in results for lap in result.laps)
        return Result(outputs, raw, laps, values)

    def infer(self, feeds: Mapping[str, Array]) -> Result:
        """One batch, its arrays checked before."""
        begin = time.perf_counter()
        inputs = {
            name: quantize(feeds[name], self.bundle.inputs[name].tensor)
            for name in self.bundle.used
        }
        quantized = time.perf_counter()
        made: list[dict[str, Array]] = []
        steps = []
        for engine in self.engines:
            part = engine.part
            wanted = {
                tensor.name: _fetch(source, inputs, made)
                for tensor, source in zip(part.inputs, part.sources)  # noqa: B905
            }
            steps.append(engine.run(wanted))
            made.append(steps[-1].outputs)
        run = time.perf_counter()
        ports = self.bundle.outputs
        raw = {name: _fetch(port.source, inputs, made) for name, port in ports.items()}
        real = {n: dequantize(raw[n], port.tensor, port.dtype) for n, port in ports.items()}
        values = whole_outputs(real, self.bundle.joins)
        late = tuple(loop for loop in self.bundle.loops if values.pop(loop.flag).any())
        done = time.perf_counter()
        outputs, behind = self._behind(values, feeds)
        end = time.perf_counter()
        lap = Lap(quantized - begin, tuple(steps), done - run, end - begin, behind)
        return Result(outputs, self._raw(inputs, made, raw), (lap,), values, late)

    def _behind(
        self, values: dict[str, Array], feeds: Mapping[str, Array]
    ) -> tuple[dict[str, Array], float]:
        """The model's outputs, and the seconds of the ONNX part, if there is one."""
        if self.remainder is None:
            return values, 0.0
        given = {name: feeds[name] for name in self.remainder.part.given}
        step = self.remainder.run({**values, **given})
        every = {**values, **step.outputs}
        return {name: every[name] for name in self.remainder.part.results}, step.invoke

    def _refuse_open_ended(self) -> None:
        names = self.bundle.open_ended
        if names:
            raise BadInput(
                f"give one batch at a time: {', '.join(names)} would come without a mark where one "
                "batch ends"
            )

    def require_npu(self) -> None:
        """Raises GateFailed unless a delegate took every NPU part. Says what was counted."""
        engines = [engine for engine in self.engines if engine.part.device == "npu"]
        failures = [] if engines else ["no part of this bundle is for the NPU"]
        for engine in engines:
            if isinstance(engine, IsolatedEngine) and engine.lost:
                failures.append(engine.lost)
            elif engine.placement is None:
                failures.append(f"{engine.part.label}: no --delegate was given")
            else:
                refusal = engine.placement.refusal(engine.part.operators)
                failures += [f"{engine.part.label}: {refusal}"] if refusal else []
        if failures:
            raise GateFailed("--require-npu: " + "; ".join(failures))

    def close(self) -> None:
        for engine in self.engines:
            engine.close()

    def _raw(
        self,
        inputs: Mapping[str, Array],
        made: list[dict[str, Array]],
        outputs: Mapping[str, Array],
    ) -> dict[str, Array]:
        raw = {f"input/{name}": array for name, array in inputs.items()}
        for part in self.bundle.parts:
            for source in part.sources:
                if "part" in source:
                    raw[f"boundary/{source['output']}"] = _fetch(source, inputs, made)
        raw.update({f"output/{name}": array for name, array in outputs.items()})
        return raw


def _refuse_late(loops: Sequence[LoopBound], batch: int) -> None:
    """Raises BadInput for an input that a Loop of the model is not done with."""
    if loops:
        listed = "; ".join(
            f"Loop {loop.loop} needs more than the {loop.turns} turns that it is written out for "
            f"({loop.source})"
            for loop in loops
        )
        raise BadInput(
            f"batch {batch}: {listed}; its outputs would be wrong: split the model again with a "
            "larger --max-trips"
        )


def whole_outputs(arrays: Mapping[str, Array], joins: Sequence[Join]) -> dict[str, Array]:
    """The model's own outputs: each joined one in the place of its first piece."""
    place = {join.pieces[0]: join for join in joins}
    pieces = {name for join in joins for name in join.pieces}
    whole: dict[str, Array] = {}
    for name, array in arrays.items():
        if name in place:
            join = place[name]
            whole[join.name] = np.concatenate([arrays[n] for n in join.pieces], join.axis)
        elif name not in pieces:
            whole[name] = array
    return whole


def _every(results: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
    """The arrays of all batches, by name."""
    return {name: _joined([result[name] for result in results]) for name in results[0]}


def _joined(arrays: Sequence[Array]) -> Array:
    """Along the first axis; scalars make one; a single batch stays as it is."""
    if len(arrays) == 1:
        return arrays[0]
    return np.concatenate([np.atleast_1d(array) for array in arrays])


def batches(bundle: Bundle, arrays: Mapping[str, Array]) -> Iterator[dict[str, Array]]:
    """The arrays cut to the model's own shapes. Raises BadInput with all that is wrong."""
    problems = []
    counts = {}
    for name in bundle.used:
        problem, count = _count(bundle, name, arrays)
        problems += [problem] if problem else []
        counts[name] = count
    if not problems and len(set(counts.values())) > 1:
        listed = ", ".join(f"{name} {count}" for name, count in counts.items())
        problems.append(f"the inputs hold different numbers of batches: {listed}")
    if problems:
        raise BadInput("; ".join(problems))
    return _cut(bundle, arrays, max(counts.values(), default=1))


def _cut(bundle: Bundle, arrays: Mapping[str, Array], count: int) -> Iterator[dict[str, Array]]:
    for i in range(count):
        feeds = {}
        for name in bundle.used:
            shape = bundle.inputs[name].tensor.shape
            rows = shape[0] if shape else 1
            whole = np.atleast_1d(arrays[name])
            part = whole[i * rows : (i + 1) * rows]
            feeds[name] = np.ascontiguousarray(part).reshape(shape)
        yield feeds


def _count(bundle: Bundle, name: str, arrays: Mapping[str, Array]) -> tuple[str, int]:
    """(what is wrong or "", number of batches) of one input."""
    port = bundle.inputs[name]
    shape = port.tensor.shape
    if name not in arrays:
        return f"no input {name}; the model takes {', '.join(bundle.used)}", 0
    array = arrays[name]
    if array.dtype.kind not in KINDS[np.dtype(port.dtype).kind]:
        return f"input {name} is {array.dtype.name}, the model takes {port.dtype}", 0
    if array.shape == shape:
        return "", 1
    wanted = f"the model takes {list(shape)}, or several along the first axis"
    if not shape and array.ndim == 1 and array.size:
        return "", array.size
    if array.ndim != len(shape) or array.shape[1:] != shape[1:] or not array.shape[0]:
        return f"input {name} has shape {list(array.shape)}; {wanted}", 0
    count, rest = divmod(array.shape[0], max(shape[0], 1))
    if rest:
        return f"input {name}: {array.shape[0]} does not divide by the batch of {shape[0]}", 0
    return "", count


def _open(part: Part, settings: Settings) -> Engine | IsolatedEngine:
    npu = part.device == "npu"
    path = (
        converted_file(part, Path(settings.converted)) if npu and settings.converted else part.path
    )
    return (IsolatedEngine if npu and settings.isolate else Engine)(part, path, settings)


def _fetch(
    source: Mapping[str, Any], inputs: Mapping[str, Array], made: list[dict[str, Array]]
) -> Array:
    if "model_input" in source:
        return inputs[str(source["model_input"])]
    if "part" in source:
        made_by = made[int(source["part"])]
        return made_by[str(source["output"])]
    return constant(source["constant"])
