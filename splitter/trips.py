"""How many turns a Loop gets that ends when the data says so, and where that number is from.

Decides which Loops these are, and the number: `--max-trips`, or from the calibration samples, by
counting the turns of the float model in ONNX Runtime. Without either such a Loop is refused. How it
is written then is `bounded`'s.

From samples: the most turns that one took, and half as many more. The largest of n samples that
come in no special order is passed by the next one with probability 1 / (n + 1), whatever their
distribution; with half as much again it is about n ** -1.5 where the numbers of turns fall off
exponentially (32 samples: 0.6 % instead of 3 %), and 0 where they are spread evenly. More would
cost more: every turn is computed in every run. An input that needs more is an error, never a wrong
number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from splitter.bounded import Told, bounded, counted, path_of
from splitter.calibration import Division
from splitter.calibration.take import read_samples
from splitter.diagnostics import SplitterError
from splitter.graph import Array, Value
from splitter.model import Model
from splitter.normalize import opened
from splitter.normalize.functions import inline_functions
from splitter.normalize.loops import endless
from splitter.options import Options
from splitter.reference import OnnxRunner

Arrays = Mapping[str, Array]


@dataclass(frozen=True, slots=True)
class Bound:
    """A Loop (OUTER/INNER for one in another) that takes `most` turns at most.

    flag: the bool output that is true when it is not done then. source: where the number is from.
    """

    loop: str
    flag: str
    most: int
    source: str

    def words(self) -> str:
        return f"Loop {self.loop} is written out for at most {self.most} turns ({self.source})"


@dataclass(frozen=True)
class Bounds:
    """The Loops of a model that were bounded. counting: the file, with the turns it takes."""

    loops: tuple[Bound, ...] = ()
    counting: Model | None = None
    told: tuple[Told, ...] = ()

    @property
    def flags(self) -> frozenset[str]:
        return frozenset(bound.flag for bound in self.loops)

    def notes(self) -> tuple[str, ...]:
        """For the report."""
        return tuple(
            f"{bound.words()}; what needs more is an error of glue/run.py (more: --max-trips)"
            for bound in self.loops
        )


def bound_loops(model: Model, options: Options) -> tuple[Model, Bounds]:
    """The model with its endless Loops bounded; the given one where there are none, where nothing
    says how many turns they take, and where they are left to ONNX Runtime.

    Errors: SplitterError where the samples cannot be read, or the model cannot run on them.
    """
    asked = options.max_trips
    sampled = bool(options.calibration) and options.calibration != "random"
    if asked is None and (options.cpu_runtime or not sampled):
        return model, Bounds()
    loops = waiting(model, options.shapes)
    if not loops:
        return model, Bounds()
    count = counted(model, loops)
    sources: dict[str, str] = {}
    if asked is not None:
        most = {"": asked}
    else:
        shapes = options.shapes
        inputs = [Value(v.name, shapes.get(v.name, v.shape), v.dtype) for v in model.inputs]
        samples = read_samples(options, tuple(inputs)).calibration
        seen = turns(count.model, count.told, samples.batches(tuple(inputs)))
        most = _within_tables(model, loops, options.shapes, seen)
        sources = {
            loop: f"{len(values)} calibration samples took at most {max(values)}; "
            + ("half as many more" if most[loop] == with_margin(max(values)) else "its tables end")
            for loop, values in seen.items()
        }
    made = bounded(model, most, loops)
    found = tuple(
        Bound(
            t.loop, t.value, most.get(t.loop, most.get("", 1)), sources.get(t.loop, "--max-trips")
        )
        for t in made.told
    )
    return made.model, Bounds(found, count.model, count.told)


def _within_tables(
    model: Model,
    loops: Sequence[str],
    shapes: Mapping[str, tuple[int, ...]],
    seen: Mapping[str, Sequence[int]],
) -> dict[str, int]:
    """Turns by Loop with the margin, or as much of it as what is read by the turn's number has."""
    largest = {loop: max(1, max(values)) for loop, values in seen.items()}
    spare = {loop: with_margin(max(values)) - largest[loop] for loop, values in seen.items()}
    while True:
        most = {loop: largest[loop] + spare[loop] for loop in seen}
        if not any(spare.values()) or _fits(bounded(model, most, loops).model, shapes):
            return most
        spare = {loop: max(0, more - 1) for loop, more in spare.items()}


def _fits(model: Model, shapes: Mapping[str, tuple[int, ...]]) -> bool:
    """Whether nothing reads at a known place that is not there."""
    try:
        opened(model, shapes=shapes)
    except SplitterError:
        return False
    return True


def with_margin(seen: int) -> int:
    """Turns for inputs like those seen; at least one, so that the body's shapes are known."""
    return max(1, seen + -(-seen // 2))


def waiting(model: Model, shapes: Mapping[str, tuple[int, ...]]) -> list[str]:
    """The Loops of the main graph that end when the data says so, or hold one that does."""
    nodes = inline_functions(model.proto).graph.node
    loops = [path_of(node) for node in nodes if node.op_type == "Loop" and not node.domain]
    if not loops:
        return []
    draft = opened(model, shapes=shapes)
    left = [node.name for node in draft.nodes if endless(draft, node)]
    return [path for path in loops if any(n == path or n.startswith(f"{path}/") for n in left)]


def turns(model: Model, told: Sequence[Told], samples: Sequence[Arrays]) -> dict[str, list[int]]:
    """The turns that each Loop took, sample by sample. model, told: of `counted`."""
    runner = OnnxRunner(model.proto, [one.value for one in told], threads=1)
    runs = [runner.run(sample) for sample in samples]
    return {one.loop: [int(run[one.value]) for run in runs] for one in told}


def require_within(bounds: Bounds, samples: Division, inputs: Sequence[Value]) -> None:
    """Error where a sample to calibrate or to verify on needs more turns than a Loop has."""
    if bounds.counting is None:
        return
    batches = [s.batches(tuple(inputs)) for s in (samples.calibration, samples.validation)]
    seen = turns(bounds.counting, bounds.told, list(chain(*batches)))
    late = [
        f"{bound.loop} takes up to {max(seen[bound.loop])} turns in "
        f"{sum(n > bound.most for n in seen[bound.loop])} of {len(seen[bound.loop])} samples, and "
        f"is written out for {bound.most} ({bound.source})"
        for bound in bounds.loops
        if max(seen[bound.loop]) > bound.most
    ]
    if late:
        most = max(max(seen[bound.loop]) for bound in bounds.loops)
        raise SplitterError(
            "samples need more turns of a Loop than it has: " + "; ".join(late),
            where="--max-trips",
            hint=f"--max-trips {most} or more, or samples that need fewer",
        )


__all__ = ["Bound", "Bounds", "bound_loops", "require_within", "turns", "waiting", "with_margin"]
