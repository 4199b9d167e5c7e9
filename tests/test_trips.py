"""Loops that data ends: bounded they give the same numbers, and say when they are not done."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest

from splitter.bounded import bounded, counted
from splitter.diagnostics import SplitterError, Unsupported
from splitter.glue.board.bundle import Bundle
from splitter.glue.board.engine import Settings
from splitter.glue.board.messages import BadInput
from splitter.glue.board.runner import Runner
from splitter.model import load
from splitter.normalize import normalize
from splitter.options import Options
from splitter.pipeline import Result, run
from splitter.progress import Silent
from splitter.reference import OnnxRunner
from splitter.source import read_source
from splitter.trips import turns, waiting, with_margin
from tests.normalize.support import as_model, model_of

COUNTED = """g (float[1,4] x, int64 n) => (float[1,4] y) <float[4,4] w> {
  zero = Constant<value = int64 {0}>()
  start = Less(zero, n)
  k, copy, y = Loop(, start, zero, n, x)<body = b (int64 i, bool c, int64 k0, int64 m, float[1,4] s)
      => (bool d, int64 k1, int64 m1, float[1,4] t) {
    one = Constant<value = int64 {1}>()
    k1 = Add(k0, one) d = Less(k1, m) m1 = Identity(m)
    p = MatMul(s, w) t = Tanh(p)
  }>
}"""
EARLY = """g (float[1,4] x, int64 n) => (float[1,4] y) {
  y = Loop(n, , x)<body = b (int64 i, bool c, float[1,4] s) => (bool[1] d, float[1,4] t) {
    half = Constant<value = float {0.5}>()
    axis = Constant<value = int64[1] {1}>()
    least = Constant<value = float {0.1}>()
    t = Mul(s, half)
    size = ReduceMax<keepdims = 0>(t, axis) d = Greater(size, least)
  }>
}"""
"""Ends after n turns, or when the largest value is at most 0.1."""
BOTH = """g (float[1,4] x, int64 n) => (float[1,4] y) {
  two = Constant<value = int64 {2}>()
  start = Less(two, n)
  y = Loop(n, start, x)<body = b (int64 i, bool c, float[1,4] s) => (bool d, float[1,4] t) {
    d = Identity(c) k = Cast<to = 1>(i) a = Add(s, k) t = Sin(a)
  }>
}"""
NESTED = """g (float[1,4] x, int64 n) => (float[1,4] y) {
  three = Constant<value = int64 {3}>()
  y = Loop(three, , x)<body = b (int64 i, bool c, float[1,4] s) => (bool d, float[1,4] t) {
    d = Identity(c)
    m = Sub(n, i)
    t = Loop(m, , s)<body = inner (int64 j, bool e, float[1,4] p) => (bool f, float[1,4] q) {
      f = Identity(e) u = Cast<to = 1>(j) v = Add(p, u) q = Cos(v)
    }>
  }>
}"""
"""Three turns of max(0, n - i) turns each."""
BOTH_ENDLESS = NESTED.replace("Loop(three, , x)", "Loop(n, , x)")
FORMS = {"counted": COUNTED, "early": EARLY, "both": BOTH, "nested": NESTED, "in": BOTH_ENDLESS}


def sample(n: int) -> dict[str, np.ndarray]:
    x = np.linspace(-1, 3.1, 4, dtype=np.float32)[None]
    return {"x": x, "n": np.asarray(n, np.int64)}


@pytest.mark.parametrize("name", FORMS)
def test_a_bounded_loop_gives_the_same_numbers_or_says_that_it_is_not_done(name: str) -> None:
    model = as_model(model_of(FORMS[name], opset=18))
    loops = waiting(model, {})
    assert len(loops) == 1
    count, rewritten = counted(model, loops), bounded(model, {"": 4}, loops)
    whole, after = OnnxRunner(model.proto), OnnxRunner(rewritten.model.proto)
    static = normalize(rewritten.model).proto
    assert "Loop" not in {node.op_type for node in static.graph.node}
    unrolled = OnnxRunner(static)
    done = set()
    for n in range(8):
        arrays = sample(n)
        took = turns(count.model, count.told, [arrays])
        enough = all(one[0] <= 4 for one in took.values())
        done.add(enough)
        for runner in (after, unrolled):
            made = runner.run(arrays)
            assert any(made[told.value] for told in rewritten.told) != enough
            if enough:
                np.testing.assert_allclose(made["y"], whole.run(arrays)["y"], rtol=1e-6)
    assert True in done and (name == "early" or False in done)


def test_turns_are_counted_where_the_data_ends_them_and_in_loops_of_loops() -> None:
    def took(body: str, n: int) -> list[int]:
        model = as_model(model_of(body, opset=18))
        count = counted(model, waiting(model, {}))
        return [one[0] for one in turns(count.model, count.told, [sample(n)]).values()]

    assert took(COUNTED, 5) == [5] and took(COUNTED, 0) == [0]
    assert took(EARLY, 100) == [5], "3.1 halved five times is under 0.1"
    assert took(BOTH, 2) == [0] and took(BOTH, 6) == [6]
    assert took(NESTED, 6) == [6], "the most of the inner one; the outer has a fixed number"
    assert took(BOTH_ENDLESS, 6) == [6, 6]


def test_an_early_end_is_not_mistaken_for_turns_that_are_missing() -> None:
    model = as_model(model_of(EARLY, opset=18))
    rewritten = bounded(model, {"": 5}, waiting(model, {}))
    made = OnnxRunner(rewritten.model.proto).run(sample(100))
    assert not made[rewritten.told[0].value]
    made = OnnxRunner(bounded(model, {"": 4}, waiting(model, {})).model.proto).run(sample(100))
    assert made[rewritten.told[0].value]


def test_the_margin_is_half_as_much_again() -> None:
    assert [with_margin(seen) for seen in (0, 1, 2, 3, 10)] == [1, 2, 3, 5, 15]


COLLECTS = """g (float[1,4] x, int64 n) => (float[1,4] y, float[k,1,4] all) {
  y, all = Loop(n, , x)<body = b (int64 i, bool c, float[1,4] s)
      => (bool d, float[1,4] t, float[1,4] u) { d = Identity(c) t = Sin(s) u = Cos(s) }>
}"""
GROWS = """g (float[1,4] x, int64 n) => (float[k,4] y) {
  y = Loop(n, , x)<body = b (int64 i, bool c, float[r,4] s) => (bool d, float[q,4] t) {
    d = Identity(c) t = Concat<axis = 0>(s, x)
  }>
}"""


@pytest.mark.parametrize(
    ("body", "why"),
    [(COLLECTS, "data decides how many rows it collects in all"), (GROWS, "depends on data")],
)
def test_what_a_loop_collects_or_grows_stays_refused_with_the_reason(body: str, why: str) -> None:
    model = as_model(model_of(body, opset=18))
    with pytest.raises(Unsupported, match=why):
        normalize(bounded(model, {"": 3}, waiting(model, {})).model)


def test_a_refusal_without_a_bound_offers_one() -> None:
    with pytest.raises(Unsupported) as caught:
        normalize(as_model(model_of(COUNTED, opset=18)))
    assert "--max-trips K" in caught.value.hint


def save(folder: Path, counts: list[int]) -> Options:
    """The counted model, and samples that take so many turns."""
    onnx.save(model_of(COUNTED, opset=18), folder / "loop.onnx")
    x = np.random.default_rng(0).normal(0, 1, (len(counts), 1, 4)).astype(np.float32)
    np.savez(folder / "c.npz", x=x, n=np.asarray(counts, np.int64))
    return Options(folder / "loop.onnx", "imx95", folder / "out", calibration=str(folder / "c.npz"))


Made = tuple[Path, Result]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("loop")
    options = save(folder, [0, 1, 2] * 4)
    return options.out, run(options, Silent())


def test_the_bound_is_read_off_the_calibration_samples_and_told(bundle: Made) -> None:
    out, result = bundle
    manifest = json.loads((out / "manifest.json").read_text())
    (entry,) = manifest["loops"]
    assert entry["turns"] == 3 and "calibration samples took at most 2" in entry["source"]
    assert "max_trips" not in manifest["options"]
    text = " ".join(result.text().split())
    assert "is written out for at most 3 turns" in text and "--max-trips" in text
    assert [one.name for one in result.comparison.findings.stages[0].tensors] == ["y"]
    assert max(t.relative_rms for t in result.comparison.findings.stages[0].tensors) < 1e-5


@pytest.mark.parametrize("n", range(4))
def test_within_the_bound_the_outputs_are_the_models(bundle: Made, n: int) -> None:
    arrays = {**sample(n), "x": sample(n)["x"] * np.float32(0.4)}
    made = Runner(Bundle(bundle[0]), Settings()).run(arrays).outputs
    assert list(made) == ["y"]
    expected = OnnxRunner(bundle[0].parent / "loop.onnx").run(arrays)["y"]
    assert np.abs(made["y"] - expected).max() < 0.1


def test_an_input_that_needs_more_turns_is_an_error_on_the_board(
    bundle: Made, tmp_path: Path
) -> None:
    with pytest.raises(BadInput, match=r"needs more than the 3 turns.*--max-trips"):
        Runner(Bundle(bundle[0]), Settings()).run(sample(4))
    np.savez(tmp_path / "in.npz", **sample(4))
    words = [sys.executable, str(bundle[0] / "glue/run.py"), str(tmp_path / "in.npz"), "-o"]
    done = subprocess.run([*words, str(tmp_path / "o.npz")], capture_output=True, text=True)
    assert done.returncode == 2 and "needs more than the 3 turns" in done.stderr
    assert not (tmp_path / "o.npz").exists()


def test_a_manifest_without_the_flag_of_a_loop_is_refused(bundle: Made) -> None:
    path = bundle[0] / "manifest.json"
    before = path.read_text()
    path.write_text(before.replace('"flag": "', '"flag": "no'))
    try:
        with pytest.raises(BadInput, match="there is no output no"):
            Bundle(bundle[0])
    finally:
        path.write_text(before)


def test_a_sample_that_needs_more_turns_than_asked_for_is_an_error(tmp_path: Path) -> None:
    options = save(tmp_path, [0, 1, 2, 5] * 3)
    with pytest.raises(SplitterError) as caught:
        run(replace(options, max_trips=2), Silent())
    assert "takes up to 5 turns in 3 of 12 samples" in caught.value.what
    assert "--max-trips 5" in caught.value.hint and not options.out.exists()


def test_random_numbers_say_nothing_of_turns(tmp_path: Path) -> None:
    options = save(tmp_path, [0, 1, 2])
    with pytest.raises(Unsupported, match="ends when the data says so"):
        run(replace(options, calibration="random"), Silent())


def test_a_file_without_such_loops_is_left_alone(tmp_path: Path) -> None:
    options = save(tmp_path, [0])
    model = load(options.model)
    assert waiting(model, {}) == ["Loop_k"]
    assert bounded(model, {"": 3}, []).model is model


TABLE = """g (float[1,4] x, int64 n) => (float[1,4] y) <float[4,4] w> {
  y = Loop(n, , x)<body = b (int64 i, bool e, float[1,4] s) => (bool d, float[1,4] t) {
    d = Identity(e) row = Gather<axis = 0>(w, i) t = Add(s, row)
  }>
}"""


def test_the_margin_ends_where_what_a_turn_reads_ends(tmp_path: Path) -> None:
    options = save(tmp_path, [0, 1, 2, 3] * 4)
    onnx.save(model_of(TABLE, opset=18), options.model)
    run(options, Silent())
    (entry,) = json.loads((options.out / "manifest.json").read_text())["loops"]
    assert entry["turns"] == 4, "with the margin 5, of 4 rows"
    assert entry["source"].endswith("its tables end")
    made = Runner(Bundle(options.out), Settings()).run(sample(4)).outputs["y"]
    assert np.abs(made - OnnxRunner(options.model).run(sample(4))["y"]).mean() < 0.2


def test_more_turns_than_a_table_has_rows_are_one_message(tmp_path: Path) -> None:
    options = save(tmp_path, [0, 1, 2, 3] * 4)
    onnx.save(model_of(TABLE, opset=18), options.model)
    with pytest.raises(SplitterError, match="it reads at 4 of 4"):
        run(replace(options, max_trips=6), Silent())


FOUND = """g (float[1,4] x, int64 n) => (float[1,4] y, int64[2,k] places) <float[4,4] w> {
  BEFORE
  zero = Constant<value = int64 {0}>()
  start = Less(zero, n)
  k, copy, y = Loop(, start, zero, n, a)<body = b (int64 i, bool c, int64 k0, int64 m, float[1,4] s)
      => (bool d, int64 k1, int64 m1, float[1,4] t) {
    one = Constant<value = int64 {1}>()
    k1 = Add(k0, one) d = Less(k1, m) m1 = Identity(m)
    p = MatMul(s, w) t = Tanh(p)
  }>
  odds = Sigmoid(y) signs = Bernoulli(odds)
  places = NonZero(signs)
}"""
BEFORE = {"before": "a = Tanh(x)", "behind": "h = MatMul(x, w) b0 = Sigmoid(h) a = Bernoulli(b0)"}


@pytest.mark.parametrize("place", BEFORE)
def test_with_an_onnx_part_a_loop_is_bounded_where_it_is_before_that(
    place: str, tmp_path: Path
) -> None:
    body = FOUND.replace("BEFORE", BEFORE[place])
    onnx.save(model_of(body, opset=18), tmp_path / "loop.onnx")
    options = Options(tmp_path / "loop.onnx", "cpu", Path(), cpu_runtime="onnxruntime", max_trips=3)
    source = read_source(options)
    assert source.remainder is not None
    assert source.remainder.results == ("y", "places")
    assert [bound.most for bound in source.bounds.loops] == ([3] if place == "before" else [])
    assert ("Loop" in {n.op_type for n in source.remainder.proto.graph.node}) == (place == "behind")


@pytest.mark.parametrize("turns", [2, 3])
def test_turns_that_few_or_no_samples_take_are_calibrated_too(turns: int, tmp_path: Path) -> None:
    growing = """g (float[1,4] x, int64 n) => (float[1,4] y) <float[4,4] w> {
      y = Loop(n, , x)<body = b (int64 i, bool e, float[1,4] s) => (bool d, float[1,4] t) {
        d = Identity(e) t = Add(s, s)
      }>
    }"""
    options = save(tmp_path, [0, 1, 2] * 8)
    onnx.save(model_of(growing, opset=18), options.model)
    run(options, Silent())
    arrays = {"x": np.asarray([[1, -1, 0.5, -0.5]], np.float32), "n": np.asarray(turns, np.int64)}
    made = Runner(Bundle(options.out), Settings()).run(arrays).outputs["y"]
    expected = OnnxRunner(options.model).run(arrays)["y"]
    assert np.sqrt(np.mean((made - expected) ** 2) / np.mean(expected**2)) < 0.1


def test_counts_of_several_runs_stand_along_the_first_axis(bundle: Made) -> None:
    runner = Runner(Bundle(bundle[0]), Settings())
    x = np.concatenate([sample(n)["x"] for n in (0, 2, 3)]) * np.float32(0.4)
    made = runner.run({"x": x, "n": np.asarray([0, 2, 3], np.int64)}).outputs["y"]
    for row, n in enumerate((0, 2, 3)):
        alone = runner.run({"x": x[row : row + 1], "n": np.asarray(n, np.int64)}).outputs["y"]
        assert np.array_equal(made[row : row + 1], alone)
    with pytest.raises(BadInput, match="different numbers of batches"):
        runner.run({"x": x, "n": np.asarray([0, 2], np.int64)})


def test_new_names_leave_those_of_the_file_alone() -> None:
    model = as_model(model_of(COUNTED, opset=18))
    loops = waiting(model, {})
    first = bounded(model, {"": 2}, loops).model.proto
    spoiled = model_of(COUNTED, opset=18)
    own = {out for node in spoiled.graph.node for out in node.output}
    taken = {out for node in first.graph.node for out in node.output} - own
    assert taken
    for name in sorted(taken):
        spoiled.graph.node.append(onnx.helper.make_node("Identity", ["x"], [name]))
    made = bounded(as_model(spoiled), {"": 2}, loops).model.proto
    onnx.checker.check_model(made)


HALVING = """g (float[1,4] x) => (float[1,4] y)
<int64 most = {9}, float one = {1}, float[1,1] half = {0.5}> {
  go = Constant<value = bool {1}>()
  y = Loop(most, go, x)<body = b (int64 i, bool e, float[1,4] s) => (bool d, float[1,4] t) {
    t = Mul(s, half) top = ReduceMax<keepdims = 0>(t) d = Greater(top, one)
  }>
}"""
"""Its first turn is known to be taken; after that data decides."""


def test_a_loop_whose_first_turn_is_known_is_bounded_like_others(tmp_path: Path) -> None:
    options = save(tmp_path, [0] * 12)
    onnx.save(model_of(HALVING, opset=18), options.model)
    x = np.random.default_rng(0).uniform(0.5, 7, (12, 1, 4)).astype(np.float32)
    np.savez(tmp_path / "c.npz", x=x)
    assert waiting(load(options.model), {}) == ["Loop_y"]
    result = run(options, Silent())
    assert max(t.relative_rms for t in result.comparison.findings.stages[0].tensors) < 1e-5
    with pytest.raises(Unsupported, match="ends when the data says so"):
        run(replace(options, calibration="random", out=tmp_path / "other"), Silent())
