"""Answers of compilers, read from files and logs.

The logs below are no recordings of a run here: the Vela lines have the form that ethos-u-vela 5.2.0
and 3.10.0 print, the neutron lines the form that users of SDK 2.0.2 to 3.2 quote. The converted
file is made by hand: an operator replaced by a NeutronGraph node.
"""

from __future__ import annotations

from dataclasses import replace

from splitter.compilers.neutron import conversion_ratio
from splitter.compilers.placement import Placement, left_on_cpu
from splitter.compilers.vela import accelerator, reasons
from splitter.specimens import specimen

VELA_5 = """
Warning (supported operators) operator: GATHER, ofm: '/a/Gather_output_0'
Reason: axis: 1 != batch_dims: 0
axis must be equal to batch_dims
"""
VELA_3 = """
Warning: MEAN 'mean' is not supported on the NPU. Placing on CPU instead
 - IFM Tensor batch size must be 1
   Tensor 'x' has batch size: 2
Warning: Unsupported TensorFlow Lite semantics for RESHAPE 'r'. Placing on CPU instead
 - Input(s) and Output tensors must not be greater than 4D
"""
NEUTRON = """
Number of operators after optimize = 385
Number of Neutron graphs = 2
Operator conversion ratio = 351 / 385 = 0.911688
"""


def test_reasons_are_read_by_the_tensor_that_the_operator_writes() -> None:
    assert reasons(VELA_5) == {"/a/Gather_output_0": "axis: 1 != batch_dims: 0"}
    old = reasons(VELA_3)
    assert set(old) == {"mean", "r"}
    assert "batch size must be 1" in old["mean"]


def test_the_conversion_ratio_is_read_from_the_log() -> None:
    assert conversion_ratio(NEUTRON) == (351, 385)
    assert conversion_ratio("nothing of the kind") is None


def test_what_a_compiler_leaves_keeps_its_code_and_its_tensors() -> None:
    graph = specimen("SOFTMAX", {})
    assert left_on_cpu(graph, "NeutronGraph") == (frozenset({"y"}), 0)
    taken = replace(
        graph, operators=tuple(replace(op, code="CUSTOM:NeutronGraph") for op in graph.operators)
    )
    assert left_on_cpu(taken, "NeutronGraph") == (frozenset(), 1)


def test_a_failed_compilation_takes_nothing() -> None:
    assert not Placement(failed="ended by signal 11").takes(["y"])
    assert Placement(cpu=frozenset({"z"})).takes(["y"])


def test_the_npu_is_said_by_the_options_of_the_command() -> None:
    command = "vela --accelerator-config ethos-u85-256 --output-dir {output_dir} {input}"
    assert accelerator(command) == ("--accelerator-config", "ethos-u85-256")
