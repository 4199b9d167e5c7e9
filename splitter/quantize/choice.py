"""Which way of clipping ranges serves this model: measured, since no rule serves all.

Least squares keeps more of the bulk (transformers: a fifth less error); for networks in which rare
large values carry the decision (text recognition) it loses them. Both integer models run on a few
calibration samples; the smaller error wins. Decides nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from splitter.quantize.affine import quantize_values
from splitter.quantize.clipping import Clip, least_squares, min_max
from splitter.tflite.runtime import Interpreter
from splitter.tflite.types import Array, LiteGraph, Operator, Tensor
from splitter.tflite.write import write

CANDIDATES: Mapping[str, Clip] = {"least squares": least_squares, "extremes": min_max}
SAMPLES = 2
ORDERS = ("TOPK_V2", "ARG_MAX", "ARG_MIN")
"""Behind these a small difference reorders rows: errors are taken before them."""


def pick_clip(
    graph: LiteGraph,
    samples: Sequence[Mapping[str, Array]],
    make: Callable[[str], LiteGraph],
) -> str:
    """The name of the better candidate.

    graph: the float graph. make: the integer graph for a candidate's name. samples: by input name.
    """
    used = [
        {n: s[n].astype(graph.tensors[n].dtype) for n in graph.inputs} for s in samples[:SAMPLES]
    ]
    names = probes(graph)
    wanted = _values(graph, used, names)
    with ThreadPoolExecutor(len(CANDIDATES)) as pool:  # the interpreters run side by side
        found = pool.map(lambda name: _error(make(name), used, wanted), CANDIDATES)
        errors = dict(zip(CANDIDATES, found, strict=True))
    return min(errors, key=lambda name: errors[name])


def probes(graph: LiteGraph) -> tuple[str, ...]:
    """Float values to compare: model outputs that no ranking precedes, and what rankings read; of
    rows that data takes out of others, these others."""
    ranked: set[str] = set()
    found: list[str] = []
    for op in graph.operators:
        if op.whole is not None:
            found += [name for name in op.inputs if _comes_to(graph, name, op)]
        elif op.code in ORDERS:
            found.append(op.inputs[0])
        if op.code in ORDERS or ranked & set(op.inputs):
            ranked.update(op.outputs)
    ends = [graph.producers[n].inputs[0] if graph.tensors[n].open else n for n in graph.outputs]
    found += [name for name in ends if name not in ranked]
    floats = [n for n in found if graph.tensors[n].dtype == "float32" and n not in ranked]
    return tuple(n for n in dict.fromkeys(floats) if graph.tensors[n].data is None)


def _comes_to(graph: LiteGraph, name: str, op: Operator) -> bool:
    """Whether a value is made outside of the whole that reads it."""
    maker = graph.producers.get(name)
    return bool(name) and (maker is None or maker.whole is not op.whole)


def _values(
    graph: LiteGraph, samples: Sequence[Mapping[str, Array]], names: Sequence[str]
) -> list[dict[str, Array]]:
    interpreter = Interpreter(write(graph, beyond=True), all_tensors=True)
    found = []
    for sample in samples:
        interpreter.run(sample)
        found.append({name: interpreter.tensor(name).copy() for name in names})
    return found


def _error(
    whole: LiteGraph, samples: Sequence[Mapping[str, Array]], wanted: Sequence[Mapping[str, Array]]
) -> float:
    """Mean relative RMS error of the probes that the integer graph still has."""
    names = [n for n in (wanted[0] if wanted else ()) if n in whole.tensors]
    coded = [{n: to_integer(s[n], whole.tensors[n]) for n in whole.inputs} for s in samples]
    found = _values(whole, coded, names)
    errors = []
    for name in names:
        real = np.stack([one[name] for one in wanted]).astype(np.float64)
        made = np.stack([to_real(one[name], whole.tensors[name]) for one in found])
        errors.append(np.sqrt(np.square(made - real).mean() / max(np.square(real).mean(), 1e-30)))
    return float(np.mean(errors)) if errors else 0.0


def to_integer(values: Array, tensor: Tensor) -> Array:
    """Real values in the tensor's type; as they are when it is not quantized."""
    q = tensor.quantization
    if q is None or not np.issubdtype(values.dtype, np.floating):
        return np.asarray(values, tensor.dtype)
    bits = np.iinfo(tensor.dtype).bits
    return np.asarray(quantize_values(values, q, bits), tensor.dtype)


def to_real(values: Array, tensor: Tensor) -> Array:
    """What the tensor's integers stand for."""
    q = tensor.quantization
    real: Array = values.astype(np.float64)
    return np.asarray(real if q is None else (real - q.zero_point[0]) * q.scale[0])
