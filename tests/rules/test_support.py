"""Verdicts: the first lowering whose operators all pass, or every reason of every lowering."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from splitter.diagnostics import SplitterError
from splitter.graph import Array, Graph, Unit, Value
from splitter.plan import Verdict
from splitter.rules.schema import Target
from splitter.rules.support import as_int8, check_lite, judge
from splitter.rules.targets import load_target
from splitter.specimens import specimen
from splitter.tflite.types import Quantization

IMX95 = load_target("imx95")


def one_unit(
    op: str,
    shapes: dict[str, tuple[int, ...]],
    *,
    out: tuple[int, ...],
    constants: dict[str, Array] | None = None,
    dtype: str = "float32",
    **attrs: Any,
) -> Graph:
    """A graph of one unit "u" over the named inputs."""
    constants = constants or {}
    values = {name: Value(name, shape, dtype) for name, shape in shapes.items()}
    values |= {
        name: Value(name, array.shape, array.dtype.name) for name, array in constants.items()
    }
    values["y"] = Value("y", out, dtype)
    unit = Unit("u", op, (*shapes, *constants), ("y",), attrs, ("node",))
    return Graph(tuple(shapes), ("y",), values, constants, (unit,))


def verdict(graph: Graph, target: Target = IMX95, *, trust: str = "proxy") -> Verdict:
    return judge(graph, target, trust=trust).npu["u"]


def rules(found: Verdict) -> set[str]:
    return {reason.rule for group in found.reasons.values() for reason in group}


def linear() -> Graph:
    weight = np.ones((8, 16), np.float32)
    return one_unit("FullyConnected", {"x": (4, 16)}, out=(4, 8), constants={"w": weight})


def test_a_float_unit_is_judged_as_the_int8_it_will_be() -> None:
    assert verdict(linear()).fits


def test_an_integer_unit_is_refused_by_an_int8_only_target() -> None:
    found = verdict(one_unit("Add", {"a": (4,), "b": (4,)}, out=(4,), dtype="int64"))
    (reason,) = [r for r in found.reasons["add"] if r.rule == "every.dtypes"]
    assert (reason.actual, reason.limit, reason.confidence) == ("int32", "int8", "vendor")
    assert reason.file == "rules/imx95.toml"
    assert "NXP support" in reason.source


def test_the_preferred_lowering_is_tried_first_and_the_cpu_keeps_its_own() -> None:
    both = judge(one_unit("Gelu", {"x": (4, 16)}, out=(4, 16)), IMX95, trust="proxy")
    assert both.npu["u"].lowering == "logistic"
    assert both.cpu["u"].lowering == "gelu"


def test_a_lowering_that_fits_the_limit_takes_over_from_one_that_does_not() -> None:
    small = one_unit("Softmax", {"x": (6, 145, 145)}, out=(6, 145, 145), axis=-1)
    large = one_unit("Softmax", {"x": (6, 577, 577)}, out=(6, 577, 577), axis=-1)
    assert verdict(small).lowering == "softmax"
    assert verdict(large).lowering == "softmax_by_head"


def test_a_unit_that_fits_by_no_lowering_carries_the_reasons_of_all() -> None:
    found = verdict(one_unit("Softmax", {"x": (2, 9, 2041)}, out=(2, 9, 2041), axis=-1))
    assert not found.fits
    assert set(found.reasons) == {"softmax", "softmax_by_head", "softmax_by_rows"}
    for name in ("softmax", "softmax_by_head"):
        assert "SOFTMAX.channels" in {reason.rule for reason in found.reasons[name]}
    assert found.reasons["softmax_by_rows"]


def test_every_broken_rule_is_told_not_only_the_first() -> None:
    shape = (3, 2000, 2041)
    found = rules(verdict(one_unit("Softmax", {"x": shape}, out=shape, axis=-1)))
    assert {"SOFTMAX.channels", "SOFTMAX.rows", "SOFTMAX.elements"} <= found


def test_an_operator_that_is_not_listed_is_not_taken() -> None:
    assert rules(verdict(one_unit("Sin", {"x": (4, 16)}, out=(4, 16)))) == {"SIN"}


def test_trust_shuts_out_operators_known_only_from_a_sibling() -> None:
    graph = one_unit("Softmax", {"x": (4, 16)}, out=(4, 16), axis=-1)
    assert verdict(graph).proxies == 1
    assert rules(verdict(graph, trust="field")) == {
        "SOFTMAX.confidence",
        "Softmax.softmax_by_head",
        "Softmax.softmax_by_rows",
    }


def test_a_field_report_is_no_proxy_and_the_vendors_word_outranks_it() -> None:
    graph = one_unit("Sigmoid", {"x": (4, 16)}, out=(4, 16))
    assert verdict(graph, trust="field").proxies == 0
    assert rules(verdict(graph, trust="vendor")) == {"LOGISTIC.confidence"}
    assert verdict(linear(), trust="vendor").fits


def test_limits_hold_whatever_their_confidence() -> None:
    graph = one_unit("MatMul", {"a": (3, 5, 7), "b": (3, 7, 5)}, out=(3, 5, 5))
    assert verdict(graph, trust="vendor").fits
    op = specimen("BATCH_MATMUL", {"rank": 4})
    (broken,) = check_lite(op, IMX95, trust="vendor")
    assert {reason.rule for reason in broken[1]} == {"BATCH_MATMUL.rank"}


def test_an_unknown_operator_goes_to_the_cpu() -> None:
    (broken,) = check_lite(specimen("SPACE_TO_DEPTH", {}), IMX95, trust="inferred")
    assert [reason.rule for reason in broken[1]] == ["SPACE_TO_DEPTH.support"]


def test_a_rule_counts_from_its_version_on() -> None:
    graph = specimen("RSQRT", {})
    assert check_lite(graph, IMX95, trust="proxy") == []
    (broken,) = check_lite(graph, load_target("imx95@3.1.3"), trust="proxy")
    assert [reason.rule for reason in broken[1]] == ["RSQRT.since"]


def test_quantization_demands_hold_until_there_are_parameters_to_check() -> None:
    graph = specimen("BATCH_MATMUL", {})
    assert check_lite(graph, IMX95, trust="proxy") == []
    tensors = {
        name: replace(tensor, quantization=Quantization((0.1,), (3,)))
        for name, tensor in graph.tensors.items()
    }
    (broken,) = check_lite(replace(graph, tensors=tensors), IMX95, trust="proxy")
    assert [reason.rule for reason in broken[1]] == ["BATCH_MATMUL.input_zero_points"]
    assert broken[1][0].actual == "3, 3"


def test_a_finished_file_is_judged_by_its_own_types() -> None:
    (broken,) = check_lite(specimen("ADD", {"dtypes": "float32"}), IMX95, trust="proxy")
    assert broken[1][0].actual == "float32"


def test_nothing_fits_a_target_without_npu_and_everything_its_cpu() -> None:
    both = judge(linear(), load_target("cpu"), trust="inferred")
    assert not both.npu["u"].fits
    assert both.cpu["u"].fits


def test_units_without_lowering_are_refused_together() -> None:
    graph = one_unit("Nonsense", {"x": (4,)}, out=(4,))
    with pytest.raises(SplitterError, match="Nonsense"):
        judge(graph, IMX95, trust="proxy")


def test_arithmetic_with_a_number_beyond_32_bits_is_refused_and_a_mere_bound_is_not() -> None:
    constants = {"c": np.array([5_000_000_000], np.int64)}
    shapes: dict[str, tuple[int, ...]] = {"x": (4,)}
    added = one_unit("Add", shapes, out=(4,), constants=constants, dtype="int64")
    with pytest.raises(SplitterError, match="5000000000 in c does not fit the 32 bits"):
        judge(added, IMX95, trust="proxy")
    bounded = one_unit("Min", shapes, out=(4,), constants=constants, dtype="int64")
    assert judge(bounded, IMX95, trust="proxy").cpu["u"].fits


def test_biases_become_int32_and_everything_else_float_int8() -> None:
    graph = specimen(
        "FULLY_CONNECTED",
        {"dtypes": "float32", "weights_dtype": "float32", "bias_dtype": "float32"},
    )
    types = {name: tensor.dtype for name, tensor in as_int8(graph).tensors.items()}
    assert types == {"x": "int8", "weights": "int8", "bias": "int32", "y": "int8"}
