"""compare.html: one self-contained file, no script, no network.

Decides which pictures go in; words and layout are the template's, looks the report's.
"""

from __future__ import annotations

from markupsafe import Markup

from splitter.compare.pictures import draw_bars, draw_pareto
from splitter.compare.study import Study
from splitter.compare.telling import apart, basis, chance, reading
from splitter.report.page import packaged, template

TEMPLATE, STYLE = "compare.html.j2", "compare.css"


def to_html(study: Study) -> str:
    """The whole page."""
    page = template("splitter.compare", TEMPLATE)
    style = packaged("splitter.report", "report.css") + packaged("splitter.compare", STYLE)
    goal = study.goal if study.decides else None  # 100 % of likeness would hide the differences
    pictures = [
        (
            target,
            Markup(draw_pareto(rows, figure=study.figure_name, goal=goal)),
            Markup(draw_bars(rows)),
        )
        for target in study.targets
        if (rows := [row for row in study.rows if row.target == target.name])
    ]
    return page.render(
        s=study,
        rows=study.rows,
        best=study.rows[0],
        chosen=[row for row in study.rows if row.chosen],
        titles=", ".join(target.title for target in study.targets),
        several=len(study.targets) > 1,
        style=Markup(style),
        pictures=pictures,
        reading=list(reading(study)),
        apart=[line.strip() for line in apart(study)],
        basis=list(basis(study)),
        chance=chance(study),
    )
