"""The latency estimate: its form, not its figures."""

from __future__ import annotations

import pytest

from splitter.latency import (
    FREE,
    KERNELS,
    invoke_ms,
    operator_ms,
    padded_macs,
    transfer_ms,
)
from splitter.rules.mistakes import CPU_CLASSES
from splitter.rules.targets import load_target, targets
from splitter.specimens import specimen
from splitter.tflite.codes import CODES
from splitter.tflite.facts import macs
from splitter.tflite.types import LiteGraph

IMX95 = load_target("imx95")


def npu_ms(graph: LiteGraph) -> float:
    return operator_ms(graph, graph.operators[0], "npu", IMX95)


def test_channels_count_padded_to_the_step_of_the_npu() -> None:
    for code in ("CONV_2D", "FULLY_CONNECTED"):
        graph = specimen(code, {"channels": 3, "output_channels": 17})
        assert macs(graph, graph.operators[0]) == 3 * 17
        assert padded_macs(graph, graph.operators[0], 16) == 16 * 32
    graph = specimen("BATCH_MATMUL", {"channels": 17, "columns": 5})
    assert padded_macs(graph, graph.operators[0], 16) == 16 * 32 * 16
    graph = specimen("DEPTHWISE_CONV_2D", {"channels": 17, "kernel_h": 3})
    assert padded_macs(graph, graph.operators[0], 16) == 32 * 3


@pytest.mark.parametrize("code", ["CONV_2D", "FULLY_CONNECTED", "BATCH_MATMUL"])
def test_an_aligned_operator_is_not_padded(code: str) -> None:
    graph = specimen(code, {"channels": 32})
    assert padded_macs(graph, graph.operators[0], 16) == macs(graph, graph.operators[0])


def test_more_work_never_takes_less_time() -> None:
    for device in ("npu", "cpu"):
        times = [
            operator_ms(graph, graph.operators[0], device, IMX95)
            for depth in (1, 16, 17, 1000, 30000)
            for graph in (specimen("FULLY_CONNECTED", {"channels": depth}),)
        ]
        assert times == sorted(times)


def test_renaming_bytes_is_free_on_both_devices() -> None:
    for code in FREE:
        graph = specimen(code, {})
        assert npu_ms(graph) == 0.0
        assert operator_ms(graph, graph.operators[0], "cpu", IMX95) == 0.0


def test_a_slice_of_a_large_tensor_costs_its_own_bytes() -> None:
    assert npu_ms(specimen("SLICE", {})) <= npu_ms(specimen("CONCATENATION", {}))


def test_a_transfer_costs_a_fixed_part_and_its_bytes() -> None:
    empty, large = transfer_ms(0, IMX95), transfer_ms(3_000_000, IMX95)
    assert 0 < empty < large


def test_a_target_without_npu_has_no_transfer_and_no_invocation() -> None:
    cpu = load_target("cpu")
    assert transfer_ms(1000, cpu) == invoke_ms(cpu) == 0.0
    graph = specimen("ADD", {})
    with pytest.raises(ValueError, match="no NPU"):
        operator_ms(graph, graph.operators[0], "npu", cpu)


def test_kernel_classes_are_operators_and_classes_that_exist() -> None:
    assert set(KERNELS) <= set(CODES)
    assert set(KERNELS.values()) | {"elementwise"} == set(CPU_CLASSES)


@pytest.mark.parametrize("name", targets())
def test_every_figure_is_positive_and_says_what_it_rests_on(name: str) -> None:
    latency = load_target(name).latency
    figures = [latency.cpu.cores, latency.cpu.operator, *latency.cpu.classes.values()]
    figures += (
        [getattr(latency.npu, key) for key in type(latency.npu).model_fields]
        if (latency.npu)
        else []
    )
    for figure in figures:
        assert figure.value > 0
        assert figure.source
        assert figure.note or figure.confidence != "inferred"
