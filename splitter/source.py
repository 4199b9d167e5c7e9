"""From a file to the graph that every command starts with.

Decides nothing: the stages load, normalize and layout in their order, with what goes into an ONNX
part split off where that is asked for.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from splitter.diagnostics import SplitterError
from splitter.equalize import equalize
from splitter.fixed_ranges import fixed_ranges
from splitter.graph import Graph
from splitter.layout import layout
from splitter.model import Model, ending_at, load
from splitter.normalize import normalize
from splitter.options import Options
from splitter.plain_types import plain_types
from splitter.progress import Progress, Silent
from splitter.remainder import Remainder, named_in_full, split_off
from splitter.trips import Bounds, bound_loops

NO_BOUNDS = Bounds()


@dataclass(frozen=True)
class Source:
    """What a file holds for the TFLite parts.

    loaded: the file, ending at the outputs asked for. original: the same with fixed ranges and
    without the remainder, in the file's own operators; its Loops bounded as `bounds` says, and as
    they were in `unbounded`. model: normalized. remainder: what ONNX Runtime runs behind it.
    """

    loaded: Model
    original: Model
    model: Model
    remainder: Remainder | None
    options: Options
    bounds: Bounds = NO_BOUNDS
    unbounded: Model | None = None

    @property
    def alone(self) -> bool:
        """Whether nothing is left for TFLite: the ONNX part is all of it."""
        return self.remainder is not None and not self.original.outputs

    @property
    def reference(self) -> Model:
        """What the parts are compared with: the file's own Loops, where nothing else is cut off."""
        return self.unbounded or self.original

    def refusing(self) -> AbstractContextManager[None]:
        """Within it a refusal names every operator of the model that has no form here."""
        return named_in_full(self.original, shapes=self.options.shapes)

    def graph(self) -> Graph:
        """Laid out and leveled. Raises SplitterError for what has no form; use `refusing`."""
        if self.alone:
            raise SplitterError(
                "nothing is left for TFLite: there is no cut to look at",
                where="--cpu-runtime",
                hint="`split` itself writes such a model as an ONNX part alone",
            )
        return equalize(layout(self.model))


def read_source(options: Options, progress: Progress | None = None) -> Source:
    """Load and normalize. Raises SplitterError for what the user must change."""
    progress = progress or Silent()
    progress.stage("load")
    loaded = ending_at(load(options.model), options.outputs)
    unbounded = fixed_ranges(plain_types(loaded))
    progress.stage("normalize")
    original, bounds = bound_loops(unbounded, options)
    remainder = None
    if options.cpu_runtime:
        if bounds.loops and not _before(original, bounds, options):
            original, bounds = unbounded, NO_BOUNDS
        original, remainder = split_off(original, shapes=options.shapes)
        if remainder is not None:
            results = tuple(name for name in remainder.results if name not in bounds.flags)
            remainder = replace(remainder, results=results)
    if remainder is not None and not original.outputs:
        return Source(loaded, original, original, remainder, options)
    with named_in_full(original, shapes=options.shapes):
        model = normalize(original, shapes=options.shapes)
    own = unbounded if bounds.loops and remainder is None else None
    return Source(loaded, original, model, remainder, options, bounds, own)


def _before(model: Model, bounds: Bounds, options: Options) -> bool:
    """Whether all bounded Loops are in what TFLite gets; ONNX Runtime needs none to be bounded."""
    try:
        head, _ = split_off(model, shapes=options.shapes)
    except SplitterError:
        return False
    return bounds.flags <= {value.name for value in head.outputs}
