"""Every operator in 16 bits is finer than in 8, or stays in 8 bits where no kernel is wider."""

from __future__ import annotations

import numpy as np
import pytest

from splitter.quantize import calibrate, quantize
from splitter.quantize.affine import quantize_values
from splitter.tflite.runtime import Interpreter
from splitter.tflite.types import LiteGraph
from splitter.tflite.write import write
from tests.ops.lowered import Lowered, as_lite, drawn, every_lowering, parsed, real, relative_rms

SAME = "(float[1,4,6,6] x) => (float[1,4,6,6] y)"
FINER = {
    "prelu": f"{SAME} <float[4,1,1] s> {{ y = PRelu (x, s) }}",
    "logarithm": f"{SAME} {{ a = Abs (x) y = Log (a) }}",
    "root": f"{SAME} {{ a = Abs (x) y = Sqrt (a) }}",
    "sigmoid": f"{SAME} {{ y = Sigmoid (x) }}",
    "hard swish": f"{SAME} {{ y = HardSwish (x) }}",
    "greater": "(float[4,6] x, float[4,6] z) => (bool[4,6] y) { y = Greater (x, z) }",
    "largest": """(float[1,4,300] x) => (int64[1,4,1] y) { y = ArgMax<axis = 2> (x) }""",
    "product": "(float[2,5,6] x, float[2,6,7] z) => (float[2,5,7] y) { y = MatMul (x, z) }",
    "softmax": f"{SAME} {{ y = Softmax (x) }}",
    "clip": f"""{SAME} {{
      low = Constant<value = float {{-1.0}}>() high = Constant<value = float {{1.0}}>()
      y = Clip (x, low, high) }}""",
}
NO_WIDER_KERNEL = {
    "depth to space": """(float[1,8,3,3] x) => (float[1,2,6,6] y) {
      y = DepthToSpace<blocksize = 2> (x) }""",
    "scatter": """(float[1,5,4] x, float[2,4] u) => (float[1,5,4] y) {
      i = Constant<value = int64[2,2] {0,3,0,1}>() y = ScatterND (x, i, u) }""",
    "log softmax": f"{SAME} {{ y = LogSoftmax (x) }}",
}


def lowered(body: str) -> Lowered:
    model = parsed(body, opset=17)
    samples = drawn(model, low=-3, high=3, count=3)
    return next(made for _, made in every_lowering(model, samples))


def error(made: Lowered, *, wide: bool) -> float:
    """Relative RMS with every float tensor in 16 bits, or in 8."""
    graph = made.graph
    names = [t.name for t in graph.tensors.values() if t.dtype == "float32" and t.data is None]
    samples = [as_lite(graph, sample) for sample in made.samples]
    ranges = calibrate(graph, samples, threads=1)
    integer = quantize(graph, ranges, npu=(), int16=names if wide else ())
    interpreter = Interpreter(write(integer))
    worst = 0.0
    for sample, wanted in zip(samples, made.wanted, strict=True):
        got = interpreter.run(quantized(integer, sample))
        worst = max(worst, *(relative_rms(real(integer, n, got[n]), wanted[n]) for n in wanted))
    return worst


def quantized(graph: LiteGraph, sample: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    made = {}
    for name, array in sample.items():
        tensor = graph.tensors[name]
        if tensor.quantization is not None:
            array = quantize_values(array, tensor.quantization, int(tensor.dtype[3:]))
        made[name] = array.astype(tensor.dtype)
    return made


@pytest.mark.parametrize("name", FINER)
def test_sixteen_bits_are_much_finer(name: str) -> None:
    made = lowered(FINER[name])
    coarse, fine = error(made, wide=False), error(made, wide=True)
    assert fine <= max(coarse / 10, 3e-4), (coarse, fine)


@pytest.mark.parametrize("name", NO_WIDER_KERNEL)
def test_an_operator_without_a_wider_kernel_keeps_eight_bits(name: str) -> None:
    assert error(lowered(NO_WIDER_KERNEL[name]), wide=True) <= 0.02


@pytest.mark.parametrize("code", ["Add", "Sub"])
@pytest.mark.parametrize("wide", [False, True])
def test_a_difference_far_below_the_steps_of_its_operands_is_near_zero(
    code: str, wide: bool
) -> None:
    """The kernel would end the process."""
    sign = "-" if code == "Add" else ""
    model = parsed(
        f"""(float[1,8] x) => (float[1,8] y) {{
          k = Constant<value = float {{{sign}1.0000001}}>() z = Mul (x, k) y = {code} (z, x)
        }}""",
        opset=17,
    )
    sample = {"x": np.linspace(-1e4, 1e4, 8, dtype=np.float32)[None]}
    made = next(m for _, m in every_lowering(model, [sample]))
    names = ["x", "z", "y"] if wide else []
    integer = quantize(made.graph, calibrate(made.graph, [sample], threads=1), npu=(), int16=names)
    got = Interpreter(write(integer)).run(quantized(integer, sample))
    assert np.abs(real(integer, "y", got["y"])).max() <= 400
