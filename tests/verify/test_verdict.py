"""From outputs to the verdict: what is trusted, what is doubted, what is not trusted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest

from splitter.diagnostics import SplitterError
from splitter.graph import Array
from splitter.verify import Circumstances, Comparison, Run, Task, Wider, verify, weigh_wider
from splitter.verify.decisions import DetectionDecisions

DETECTION = Task("detection", "", boxes="dets", scores="labels")
CLASSES = Task("classification", "", scores="y")
NONE = Task("none", "")
FINE = Circumstances()

Change = Callable[[dict[str, Array]], dict[str, Array]]


def same(outputs: dict[str, Array]) -> dict[str, Array]:
    return {name: array.copy() for name, array in outputs.items()}


def detector(index: int) -> dict[str, Array]:
    """Six objects that are sure, ten queries that are not, far apart from each other."""
    rng = np.random.default_rng(index)
    grid = np.stack(np.meshgrid(np.arange(4), np.arange(4)), axis=-1).reshape(-1, 2) / 4 + 0.125
    boxes = np.concatenate([grid, rng.uniform(0.1, 0.2, (16, 2))], axis=1)[None]
    logits = rng.normal(-6, 0.5, (1, 16, 3))
    logits[0, np.arange(6), rng.integers(0, 3, 6)] = 3
    return {"dets": boxes.astype(np.float32), "labels": logits.astype(np.float32)}


def classifier(index: int) -> dict[str, Array]:
    return {"y": np.random.default_rng(index).standard_normal((1, 5)).astype(np.float32)}


def judged(
    make: Callable[[int], dict[str, Array]],
    *,
    integer: Change = same,
    parts: Change = same,
    task: Task = DETECTION,
    count: int = 20,
    circumstances: Circumstances = FINE,
    floating: Change = same,
    annotations: dict[str, Array] | None = None,
) -> Comparison:
    def runs() -> Iterator[Run]:
        for index in range(count):
            original = make(index)
            whole = integer(same(original))
            yield Run(original, whole, parts(same(whole)), floating(same(original)))

    names = sorted(make(0))
    return verify(runs(), names, task=task, circumstances=circumstances, annotations=annotations)


def reverse_queries(outputs: dict[str, Array]) -> dict[str, Array]:
    return {name: array[:, ::-1].copy() for name, array in outputs.items()}


def one_bit(outputs: dict[str, Array]) -> dict[str, Array]:
    first = outputs[min(outputs)]
    first.reshape(-1)[0] = np.nextafter(first.reshape(-1)[0], np.float32(9))
    return outputs


def test_an_equal_detector_is_trusted() -> None:
    verdict = judged(detector).verdict
    assert verdict.level == "trusted" and verdict.passed
    assert "bit for bit" in verdict.line and "100.0 % of 120 detections" in verdict.line


def test_another_query_order_is_trusted_although_the_tensors_differ() -> None:
    comparison = judged(detector, integer=reverse_queries)
    quantization = comparison.findings.stage("quantization")
    assert quantization is not None
    assert quantization.tensors[0].relative_rms > 0.3
    assert quantization.unordered("dets").relative_rms == 0.0
    assert comparison.verdict.level == "trusted"


def test_one_bit_between_parts_and_whole_is_not_trusted() -> None:
    verdict = judged(detector, parts=one_bit).verdict
    assert not verdict.passed and "parts against the whole" in verdict.line


def test_lost_detections_are_not_trusted() -> None:
    def lose(outputs: dict[str, Array]) -> dict[str, Array]:
        outputs["labels"][0, 0] = -6
        return outputs

    verdict = judged(detector, integer=lose).verdict
    assert verdict.level == "NOT trusted"
    assert "detections found again 83.3 % (75.7 to 88.9) (gate: at least 97 %)" in verdict.line


def test_a_share_under_its_gate_on_too_few_samples_is_a_doubt_and_no_verdict() -> None:
    def lose_one(outputs: dict[str, Array]) -> dict[str, Array]:
        if outputs["dets"][0, 0, 2] == detector(0)["dets"][0, 0, 2]:  # the first run only
            outputs["labels"][0, 0] = -6
        return outputs

    few = judged(detector, integer=lose_one, count=5).verdict
    assert few.level == "trusted with reservations" and few.passed
    assert "detections found again 96.7 % (83.3 to 99.4) (at least 97 % wanted)" in few.line


def test_invented_detections_are_not_trusted() -> None:
    def invent(outputs: dict[str, Array]) -> dict[str, Array]:
        outputs["labels"][0, 9, 1] = 5
        return outputs

    assert "extra detections 16.7 %" in judged(detector, integer=invent).verdict.line


def test_an_output_that_became_constant_is_not_trusted_however_the_decisions_are() -> None:
    def flat(outputs: dict[str, Array]) -> dict[str, Array]:
        return {"y": np.zeros_like(outputs["y"])}

    verdict = judged(classifier, integer=flat, task=NONE).verdict
    assert not verdict.passed and "one value everywhere" in verdict.line


def test_nan_is_not_trusted() -> None:
    def poison(outputs: dict[str, Array]) -> dict[str, Array]:
        outputs["dets"][0, 15, 0] = np.nan
        return outputs

    assert "NaN or infinite" in judged(detector, integer=poison).verdict.line


def test_a_float_file_that_is_off_is_doubted_then_not_trusted() -> None:
    def scaled(factor: float) -> Change:
        return lambda outputs: {n: a * np.float32(factor) for n, a in outputs.items()}

    assert judged(detector, floating=scaled(1 + 1e-5)).verdict.level == "trusted"
    assert judged(detector, floating=scaled(1.001)).verdict.level == "trusted with reservations"
    assert judged(detector, floating=scaled(1.1)).verdict.level == "NOT trusted"


def test_few_detections_are_a_reservation() -> None:
    verdict = judged(detector, count=2).verdict
    assert verdict.level == "trusted with reservations" and verdict.passed
    assert "only few detections: 12 in 2 images" in verdict.line


def test_samples_that_calibration_has_seen_are_a_reservation() -> None:
    verdict = judged(detector, circumstances=Circumstances(shared=True)).verdict
    assert "samples that calibration has seen" in verdict.line and verdict.passed


def test_random_calibration_is_never_trusted() -> None:
    verdict = judged(detector, circumstances=Circumstances(random=True)).verdict
    assert verdict.level == "NOT trusted" and "random" in verdict.line
    assert verdict.passed  # no gate failed: the exit status speaks of the gates


def test_no_sure_detection_in_float_is_a_reservation_and_the_tensors_decide() -> None:
    def unsure(index: int) -> dict[str, Array]:
        outputs = detector(index)
        return outputs | {"labels": outputs["labels"] - 9}

    assert "no float detection over 0.5" in judged(unsure).verdict.line

    def half(outputs: dict[str, Array]) -> dict[str, Array]:
        return {name: array / 2 for name, array in outputs.items()}

    assert judged(unsure, integer=half).verdict.level == "NOT trusted"


def test_a_pure_gain_error_is_not_trusted_although_cosine_is_one() -> None:
    def scaled(outputs: dict[str, Array]) -> dict[str, Array]:
        return {"y": outputs["y"] * np.float32(0.8)}

    comparison = judged(classifier, integer=scaled, task=NONE)
    quantization = comparison.findings.stage("quantization")
    assert quantization is not None
    assert quantization.tensors[0].cosine == pytest.approx(1.0)
    assert "gain of y: 0.800" in comparison.verdict.line


def test_flipped_answers_are_not_trusted_although_accuracy_is_the_same() -> None:
    def flip_some(outputs: dict[str, Array]) -> dict[str, Array]:
        y = outputs["y"]
        best = int(y.argmax())
        if best in (0, 1):  # half go to class 0, half from it: accuracy on labels below is equal
            y[0, 1 - best] = y[0, best] + 1
        return outputs

    labels = np.arange(200) % 5
    comparison = judged(
        classifier, integer=flip_some, task=CLASSES, count=200, annotations={"labels": labels}
    )
    answers = comparison.findings.decisions
    assert answers is not None and not isinstance(answers, DetectionDecisions)
    assert answers.accuracy is not None and answers.accuracy.p_value > 0.05
    assert answers.flips.share > 0.3
    assert comparison.verdict.level == "NOT trusted"


def test_labels_that_are_too_few_are_the_users_to_mend() -> None:
    with pytest.raises(SplitterError, match="3 labels for 20 answers"):
        judged(classifier, task=CLASSES, annotations={"labels": np.zeros(3, int)})


def test_annotated_images_give_precision_and_a_loss_of_it_is_not_trusted() -> None:
    truth = [detector(index) for index in range(20)]
    centers = np.stack([outputs["dets"][0, :6] for outputs in truth]).astype(np.float64)
    boxes = np.concatenate(
        [centers[..., :2] - centers[..., 2:] / 2, centers[..., :2] + centers[..., 2:] / 2], axis=-1
    )
    notes = {
        "boxes": boxes,
        "labels": np.stack([outputs["labels"][0, :6].argmax(-1) for outputs in truth]),
        "counts": np.full(20, 6),
    }

    def widen(outputs: dict[str, Array]) -> dict[str, Array]:
        outputs["dets"][..., 2] *= 1.3
        return outputs

    good = judged(detector, annotations=notes)
    assert isinstance(good.findings.decisions, DetectionDecisions)
    assert good.findings.decisions.candidate is not None
    assert good.findings.decisions.candidate.ap == pytest.approx(1.0)
    assert good.verdict.level == "trusted"
    bad = judged(detector, integer=widen, annotations=notes)
    assert "mAP50-95 lost" in bad.verdict.line


def test_values_inside_the_model_are_compared_and_do_not_decide() -> None:
    inner = np.ones((1, 4), np.float32)
    run = Run({**detector(0), "memory": inner}, {**detector(0), "memory": inner * 2}, detector(0))
    comparison = verify([run], ["dets", "labels"], task=DETECTION, circumstances=FINE)
    assert [tensor.name for tensor in comparison.findings.boundary] == ["memory"]
    assert comparison.verdict.passed


def test_outputs_recorded_on_the_board_are_a_comparison_of_their_own() -> None:
    runs = [
        Run(detector(i), detector(i), detector(i), board=one_bit(detector(i))) for i in range(9)
    ]
    comparison = verify(runs, ["dets", "labels"], task=DETECTION, circumstances=FINE)
    assert comparison.verdict.level == "trusted with reservations"
    assert "board: dets differs" in comparison.verdict.line
    exact = [replace(run, board=run.integer_parts) for run in runs]
    assert verify(exact, ["dets"], task=DETECTION, circumstances=FINE).verdict.level == "trusted"


def test_nothing_to_verify_on_is_the_users_to_mend() -> None:
    with pytest.raises(SplitterError, match="no sample"):
        verify([], ["y"], task=NONE, circumstances=FINE)


def test_a_missing_output_is_a_mistake_of_the_caller() -> None:
    run = Run({"y": np.ones(2)}, {"z": np.ones(2)}, {"y": np.ones(2)})
    with pytest.raises(ValueError, match="no y"):
        verify([run], ["y"], task=NONE, circumstances=FINE)


def test_what_sixteen_bits_would_gain_is_weighed() -> None:
    def lose(outputs: dict[str, Array]) -> dict[str, Array]:
        outputs["labels"][0, 0] = -6
        return outputs

    worse, better = judged(detector, integer=lose).findings, judged(detector).findings
    wider = weigh_wider(worse, better)
    assert wider is not None and wider.helps
    assert str(wider) == (
        "with --int16 auto: detections found again 100.0 % instead of 83.3 %"
        " (+16.7 points, 20 runs)"
    )
    unlike = weigh_wider(better, better)
    assert unlike is not None and not unlike.helps


def test_a_model_that_takes_every_query_for_an_object_is_said_to_look_untrained() -> None:
    def crowded(index: int) -> dict[str, Array]:
        outputs = detector(index)
        outputs["labels"][:] = np.random.default_rng(index).normal(4, 1, (1, 16, 3))
        return outputs

    def shuffle(outputs: dict[str, Array]) -> dict[str, Array]:
        outputs["labels"] = np.roll(outputs["labels"], 1, axis=2)
        return outputs

    line = judged(crowded, integer=shuffle).verdict.line
    assert "NOT trusted" in line
    assert "320 of 320 queries for objects, as one with untrained weights does" in line
    lost = judged(detector, integer=lambda outputs: {**outputs, "labels": -outputs["labels"]})
    assert "untrained" not in lost.verdict.line


def test_annotations_that_the_float_model_knows_nothing_of_are_no_gate() -> None:
    boxes = np.tile(np.array([[0.9, 0.9, 0.99, 0.99]], np.float32), (20, 1, 1))
    elsewhere = {
        "boxes": boxes,
        "labels": np.full((20, 1), 7),
        "counts": np.ones(20, np.int64),
    }
    judged_so = judged(detector, annotations=elsewhere)
    assert not any("mAP" in check.name for check in judged_so.verdict.checks)
    assert "mAP" not in judged_so.verdict.line


def test_little_gain_where_nearly_all_is_lost_is_not_told() -> None:
    one = Wider("--int16 auto", "detections found again", 0.02, 0.03, 4)
    assert not one.helps
    assert replace(one, now=0.97, then=0.98).helps
    assert not replace(one, now=0.97, then=0.973).helps
    assert replace(one, figure="mAP50-95", now=0.79, then=0.80, goal=0.81).helps
