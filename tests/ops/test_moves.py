"""Moving data: pads, slices, blocks, gathers and scatters."""

from __future__ import annotations

import pytest

from tests.ops.lowered import Case, image

CASES = [
    *(
        Case(
            f"Pad {mode}",
            f"(float[1,3,4,5] x) => (float[1,3,7,8] y) <int64[8] p = {{0,0,1,2,0,0,2,1}}>"
            f' {{ y = Pad <mode="{mode}"> (x, p) }}',
        )
        for mode in ("constant", "reflect", "edge", "wrap")
    ),
    Case(
        "Pad of a value",
        "(float[2,3] x) => (float[4,3] y) <int64[4] p = {1,0,1,0}, float v = {1.5}>"
        " { y = Pad (x, p, v) }",
    ),
    Case(
        "Pad by less than nothing",
        "(float[4,5] x) => (float[3,6] y) <int64[4] p = {-1,2,0,-1}> { y = Pad (x, p) }",
    ),
    Case(
        "Slice backwards",
        "(float[3,8] x) => (float[3,3] y) <int64[1] s = {-2}, int64[1] e = {-9}, int64[1] a = {1},"
        " int64[1] t = {-3}> { y = Slice (x, s, e, a, t) }",
    ),
    *(
        Case(
            f"ReverseSequence {name}",
            f"(float[5,3,4] x) => (float[5,3,4] y) <int64[3] n = {{{lengths}}}>"
            f" {{ y = ReverseSequence <time_axis=0, batch_axis=1> (x, n) }}",
        )
        for name, lengths in (("of all", "5, 5, 5"), ("of some", "5, 1, 3"), ("alike", "4, 4, 4"))
    ),
    Case("DepthToSpace", image("DepthToSpace <blocksize=2> (x)", "1,3,10,14", size="1,12,5,7")),
    Case(
        "DepthToSpace CRD",
        image('DepthToSpace <blocksize=2, mode="CRD"> (x)', "1,3,10,14", size="1,12,5,7"),
    ),
    Case("SpaceToDepth", image("SpaceToDepth <blocksize=2> (x)", "1,12,3,4", size="1,3,6,8")),
    Case(
        "Trilu",
        "(float[2,4,5] x) => (float[2,4,5] y) <int64 k = {1}> { y = Trilu <upper=0> (x, k) }",
    ),
    Case(
        "OneHot",
        "(int64[3] x) => (float[3,4] y) <int64 d = {4}, float[2] v = {0.5, 2.0}>"
        " { y = OneHot (x, d, v) }",
    ),
    Case("Tile", "(float[2,3] x) => (float[4,9] y) <int64[2] r = {2,3}> { y = Tile (x, r) }"),
    Case(
        "Expand",
        "(float[2,1,3] x) => (float[2,4,3] y) <int64[3] s = {2,4,3}> { y = Expand (x, s) }",
    ),
    Case(
        "Gather from the end",
        "(float[4,5] x) => (float[4,2] y) <int64[2] i = {-1, 2}> { y = Gather <axis=1> (x, i) }",
    ),
    Case(
        "GatherElements",
        "(float[4,5] x, int64[2,5] i) => (float[2,5] y) { y = GatherElements (x, i) }",
    ),
    Case(
        "GatherND",
        "(float[2,3,4] x, int64[2,5,1] i) => (float[2,5,4] y)"
        " { y = GatherND <batch_dims=1> (x, i) }",
    ),
    Case(
        "GatherND of constants",
        "(float[2,3,4] x) => (float[2,4] y) <int64[2,2] i = {0, -1, 1, 0}> { y = GatherND (x, i) }",
    ),
    Case(
        "ScatterND of constants",
        "(float[4,3] x, float[2,3] u) => (float[4,3] y) <int64[2,1] i = {2, 0}>"
        " { y = ScatterND (x, i, u) }",
    ),
    Case(
        "ScatterND at run time",
        "(float[4,3] x, int64[1,1] i, float[1,3] u) => (float[4,3] y) { y = ScatterND (x, i, u) }",
    ),
    Case(
        "ScatterND that adds",
        "(float[4,3] x, float[3,3] u) => (float[4,3] y) <int64[3,1] i = {2, 0, 2}>"
        ' { y = ScatterND <reduction="add"> (x, i, u) }',
    ),
    Case(
        "ScatterND that adds at run time",
        "(float[4,3] x, int64[2,1] i, float[2,3] u) => (float[4,3] y)"
        ' { y = ScatterND <reduction="add"> (x, i, u) }',
    ),
    Case(
        "ScatterElements",
        "(float[3,4] x, int64[1,4] i, float[1,4] u) => (float[3,4] y)"
        " { y = ScatterElements <axis=0> (x, i, u) }",
    ),
    *(
        Case(
            f"ScatterElements {how}",
            f"(float[3,4] x, float[2,4] u) => (float[3,4] y) <int64[2,4] i = {{0,1,2,0,0,1,1,2}}>"
            f' {{ y = ScatterElements <axis=0, reduction="{how}"> (x, i, u) }}',
            bound=0.04,
        )
        for how in ("add", "mul", "max", "min")
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_computes_what_onnx_runtime_computes(case: Case) -> None:
    for names, lowered in case.lowerings():
        assert lowered.float_error() <= case.exact + lowered.stated, names


@pytest.mark.parametrize("case", CASES, ids=str)
def test_its_int8_form_stays_close_and_holds_no_float(case: Case) -> None:
    for names, lowered in case.lowerings():
        assert lowered.integer_error() <= case.bound, names
