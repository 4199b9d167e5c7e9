"""report.html: one self-contained file, no script, no network, the same bytes each time.

Decides which pictures and plots go in; words and layout are the template's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from markupsafe import Markup

from splitter.report import words
from splitter.report.data import ReportData
from splitter.report.facts import (
    decision_facts,
    more_parts,
    onnx_facts,
    precision_fact,
    stage_facts,
    width_facts,
)
from splitter.report.page import packaged, template
from splitter.report.picture import draw_graph
from splitter.report.plots import draw_example, draw_histogram, draw_scatter
from splitter.report.summary import Summary

TEMPLATE, STYLE = "report.html.j2", "report.css"
MOST_PLOTS = 12


@dataclass(frozen=True, slots=True)
class Plots:
    """What is shown of one output: float against integer, and the histogram of the error."""

    name: str
    scatter: Markup
    histogram: Markup


def to_html(data: ReportData, summary: Summary) -> str:
    """The whole page."""
    page = template("splitter.report", TEMPLATE)
    return page.render(
        s=summary,
        findings=summary.comparison.findings,
        verdict=summary.comparison.verdict,
        wider=summary.comparison.wider,
        widths=list(width_facts(summary)),
        style=Markup(packaged("splitter.report", STYLE)),
        graph=Markup(draw_graph(data, summary)),
        plots=list(_plots(summary)),
        examples=[Markup(example) for example in _examples(data)],
        precision=precision_fact(summary),
        more_parts=list(more_parts(summary)),
        stages=[*stage_facts(summary), *onnx_facts(summary)],
        decisions=[
            *decision_facts(summary.comparison),
            *(("note", note) for note in summary.notes),
        ],
        facts=summary,
    )


def _plots(summary: Summary) -> Iterator[Plots]:
    """The outputs (query order aside), then the values at the border that were compared."""
    stage = summary.comparison.findings.stage("quantization")
    if stage is None:
        return
    outputs = [stage.unordered(tensor.name) for tensor in stage.tensors]
    for tensor in (*outputs, *summary.comparison.findings.boundary)[:MOST_PLOTS]:
        title = words.shortened(tensor.name, 26)
        yield Plots(
            tensor.name,
            Markup(draw_scatter(tensor, title, left="integer", below="float")),
            Markup(draw_histogram(tensor, f"relative RMS {words.error(tensor.relative_rms)}")),
        )


def _examples(data: ReportData) -> Iterator[str]:
    if data.pictures is None:
        return
    for example in data.comparison.findings.examples:
        if example.index >= len(data.pictures):
            continue
        size = (1.0, 1.0)
        if data.sizes is not None:
            width, height = data.sizes[example.index]
            size = (float(width), float(height))
        picture = data.pictures[example.index]
        yield draw_example(picture, example, size=size, names=data.class_names)
