"""Functions of the model are inlined, whatever the size of its weights."""

from __future__ import annotations

import numpy as np
from onnx import numpy_helper, parser

from splitter.normalize import normalize
from tests.normalize.support import as_model, ops, same

TEXT = """
<ir_version: 8, opset_import: ["" : 18, "own" : 1]>
g (float[2,30] x) => (float[2,30] y) { h = own.layer(x, w) y = own.layer <slope = 0.5> (h, w) }
<domain: "own", opset_import: ["" : 18], overload: "">
layer <slope: float = 0.1> (x, w) => (y) {
  m = MatMul(x, w) y = LeakyRelu <alpha: float = @slope> (m)
}
"""


def test_calls_of_functions_are_their_bodies() -> None:
    model = parser.parse_model(TEXT)
    weight = np.random.default_rng(0).standard_normal((30, 30)).astype(np.float32)
    model.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    before = model.SerializeToString()
    after = normalize(as_model(model)).proto
    assert ops(after) == {"MatMul": 2, "LeakyRelu": 2} and same(model, after, tolerance=1e-5)
    assert model.SerializeToString() == before
