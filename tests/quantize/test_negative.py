"""NEG of LiteRT changes the sign of the integers; the integer model changes that of the values."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ops.lowered import every_lowering, parsed

JOINED = """(float[2,30] x, float[2,30] z) => (float[2,60] y) {
  a = Neg (x)
  y = Concat<axis = 1> (a, z)
}"""


@pytest.mark.parametrize("top", [3, 20])
def test_a_sign_is_changed_whatever_the_zero_point(top: float) -> None:
    random = np.random.default_rng(0)
    x, z = random.uniform(-3, 3, (2, 30)), random.uniform(0, top, (2, 30))
    sample = {"x": x.astype(np.float32), "z": z.astype(np.float32)}
    (_, made), *_ = every_lowering(parsed(JOINED, opset=17), [sample])
    assert made.integer_error() <= 0.01
