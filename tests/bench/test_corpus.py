"""The corpus: rows that are kept, the page and the table made of them, a peer's file judged."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest
from rich.console import Console

from bench.corpus.page import corpus_page
from bench.corpus.peer import error_of, last_words, layouts, match
from bench.corpus.recorded import (
    Kept,
    Peer,
    PeerRow,
    add_rows,
    load_peer,
    load_rows,
    save_peer,
)
from bench.corpus.sweep import add_arguments, sweep
from bench.corpus.table import corpus_table, reasons

ROW: dict[str, Any] = {
    "name": "net", "kind": "models", "target": "cpu", "status": "right", "split": True,
    "float_error": {"y": 2e-6, "z": 1e-7}, "integer_error": {"y": 0.0123456}, "noise": {},
    "forced_error": {}, "flips": (0, 0), "decisions": {}, "units": 9, "on_npu": 4,
    "operators": 1234, "cpu_seconds": 1.5, "seconds": 2.0, "megabytes": 200,
}  # fmt: skip

RELU = """<ir_version: 8, opset_import: ["" : 17]>
g (float[1,8] x) => (float[1,8] y) { y = Relu (x) }"""


def test_a_new_row_takes_the_place_of_the_old_one_of_its_graph_and_target(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    add_rows(path, [ROW, ROW | {"name": "other"}])
    add_rows(path, [ROW | {"status": "coarse"}, ROW | {"target": "imx95"}])
    rows = load_rows(path)
    assert [(r.name, r.target, r.status) for r in rows] == [
        ("net", "cpu", "coarse"), ("net", "imx95", "right"), ("other", "cpu", "right"),
    ]  # fmt: skip
    assert (rows[0].float_error, rows[0].integer_error) == (2e-6, 0.0123)


def test_no_folder_of_the_machine_stays_in_a_reason(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    add_rows(path, [ROW | {"status": "crashed", "reason": "status 1: /home/me/x/net.onnx: gone"}])
    assert load_rows(path)[0].reason == "status 1: net.onnx: gone"


def test_the_peers_rows_are_read_as_they_were_written(tmp_path: Path) -> None:
    peer = Peer({"tool": "t"}, {"a": PeerRow("a", "right", 0.0, 1.5), "b": PeerRow("b", "refused")})
    save_peer(tmp_path / "peer.json", peer)
    assert load_peer(tmp_path / "peer.json") == peer
    assert load_peer(tmp_path / "none.json") == Peer()


def test_page_and_table_show_every_row_and_the_reason_of_every_refusal() -> None:
    rows = [
        Kept(
            "net", "cpu", "right", "models", float_error=2e-6, integer_error=0.012,
            date="2026-01-01",
        ),
        Kept("loop", "cpu", "refused", "zoo", reason="no end", date="2026-01-02"),
    ]  # fmt: skip
    about = {"tool": "t 1", "command": "t", "compared": "c", "date": "d", "machine": "m"}
    peer = Peer(about, {"net": PeerRow("net", "wrong", 0.3, 2.0, "because")})
    page = corpus_page(rows, peer)
    assert "| net | right | 2.0e-06 | 0.012 |" in page and "wrong | 0.300 | 2.0 |" in page
    assert "- loop (cpu), refused: no end" in page
    assert "2026-01-01 to 2026-01-02" in page and "(1 not run)" in page
    console = Console(width=160, record=True)
    console.print(corpus_table(rows, peer))
    text = console.export_text()
    assert "net" in text and "loop" in text and "not run" in text
    assert reasons(rows) == ["loop (cpu): refused: no end"]
    many = reasons([Kept("many", "cpu", "refused", reason="node " * 999)])
    assert many[0].endswith("node ...") and len(many[0]) < 450


def test_a_layout_that_fits_is_found_and_another_output_is_not_taken_for_it() -> None:
    array = np.random.default_rng(0).normal(size=(1, 3, 5, 4)).astype(np.float32)
    last = array.transpose(0, 2, 3, 1)
    assert np.array_equal(next(layouts(array, (1, 5, 4, 3))), last)
    assert np.array_equal(next(layouts(array, (1, -1, -1, 3))), last)
    assert error_of({"y": array}, {"made": last}) == 0.0
    assert error_of({"y": array}, {"made": last + 1}) > 0.5
    assert error_of({"y": array}, {"made": last[:, :2]}) == float("inf")


def test_inputs_are_matched_by_name_first_and_then_in_order() -> None:
    theirs = ["serving_default_b:0", "arg"]
    assert match(["a", "b"], theirs) == {"b": "serving_default_b:0", "a": "arg"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("start\nValueError:  no such  op\nbye\n", "ValueError: no such op"),
        ("start\nbye\n", "bye"),
        ("", "no output"),
    ],
)
def test_a_peer_that_fails_is_quoted(text: str, words: str) -> None:
    assert last_words(text) == words


def test_a_sweep_gives_a_row_to_a_graph_that_runs_and_to_one_that_breaks(tmp_path: Path) -> None:
    onnx.save(onnx.parser.parse_model(RELU), tmp_path / "relu.onnx")
    (tmp_path / "torn.onnx").write_bytes(b"\x08\x08torn")
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    rows = list(sweep(parser.parse_args(["--models", str(tmp_path), "--target", "cpu"])))
    found = {row["name"]: row for row in rows}
    assert (found["relu"]["status"], found["relu"]["kind"]) == ("right", "models")
    assert found["torn"]["status"] in ("refused", "crashed") and found["torn"]["reason"]
