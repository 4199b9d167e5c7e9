"""report.html: one file that needs nothing else, well formed, safe, the same each time."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from splitter.report import ReportData, Summary, report_files, summarize
from splitter.report.html import to_html

VOID = {"meta", "link", "br", "hr", "img", "input"}


class Tags(HTMLParser):
    """Checks that tags nest; keeps the text of titles."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.titles: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        if tag not in VOID:
            self.open.append(tag)
        if tag == "title":
            self.titles.append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, text: str) -> None:
        if self.open and self.open[-1] == "title":
            self.titles[-1] += text


@pytest.fixture(scope="module")
def page(data: ReportData, summary: Summary) -> str:
    return to_html(data, summary)


@pytest.fixture(scope="module")
def tags(page: str) -> Tags:
    parser = Tags()
    parser.feed(page)
    parser.close()
    assert not parser.open
    return parser


def test_it_needs_nothing_from_outside(page: str, tags: Tags) -> None:
    assert not tags.seen & {"script", "link", "iframe", "object", "img", "base"}
    addresses = set(re.findall(r"[a-z]+://[^\s\"'<)]+", page))
    assert addresses <= {"http://www.w3.org/2000/svg"}
    assert not re.search(r"@import|url\((?!#)", page)
    references = re.findall(r'(?:href|src)="([^"]*)"', page)
    assert all(reference.startswith(("#", "data:image/")) for reference in references)


def test_every_picture_is_well_formed_xml(page: str) -> None:
    pictures = re.findall(r"<svg class=.*?</svg>", page, flags=re.DOTALL)
    assert len(pictures) >= 5
    for picture in pictures:
        ElementTree.fromstring(picture)


def test_every_unit_is_a_box_that_says_what_it_is(data: ReportData, tags: Tags) -> None:
    for unit in data.graph.units:
        assert any(f"{unit.op}  {unit.name}" in title for title in tags.titles)


def test_the_reason_stands_where_one_hovers_and_in_the_table(page: str, tags: Tags) -> None:
    assert any("Sin" in title and "SIN" in title for title in tags.titles)
    assert page.count("SIN") >= 2


def test_boundary_tensors_have_name_shape_and_bytes(summary: Summary, page: str) -> None:
    for row in summary.boundary:
        assert row.name in page and f"{row.bytes:,}" in page


def test_names_cannot_break_out_of_the_page(data: ReportData, summary: Summary) -> None:
    evil = "<script>alert(1)</script>"
    page = to_html(data, replace(summary, model=evil, line=evil, notes=(evil,)))
    assert evil not in page and "<b>bird</b>" not in page


def test_the_same_data_gives_the_same_bytes(data: ReportData) -> None:
    first = report_files(data, summarize(data))
    assert first == report_files(data, summarize(data))
    assert set(first) == {"report.json", "report.html"}


def test_neither_time_nor_place_of_the_run_is_in_it(data: ReportData, page: str) -> None:
    assert "/tmp" not in page and "/home" not in page
    assert not re.search(r"\b\d{1,2}:\d{2}:\d{2}\b", page)


def test_random_calibration_is_a_banner(data: ReportData, summary: Summary, page: str) -> None:
    assert 'class="alarm"' not in page
    assert 'class="alarm"' in to_html(data, replace(summary, random=True))


def test_a_plan_of_one_part_has_no_boundary(data: ReportData) -> None:
    cpu = next(plan for plan in data.candidates if plan.name == "all on the CPU")
    whole = replace(data.parts[1], graph=data.whole)
    entry = data.manifest.parts[1]
    alone = replace(
        data,
        candidates=(cpu,),
        parts=(whole,),
        manifest=data.manifest.model_copy(update={"parts": (entry,)}),
    )
    page = to_html(alone, summarize(alone))
    assert "None: there is one part." in page


def test_images_appear_only_when_there_are_some(data: ReportData, summary: Summary) -> None:
    assert "data:image/png" in to_html(data, summary)
    assert "data:image" not in to_html(replace(data, pictures=None), summary)
