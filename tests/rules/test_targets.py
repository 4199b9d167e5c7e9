"""Rule files are found, read, and refused with every mistake at once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from splitter.diagnostics import SplitterError
from splitter.rules.schema import Condition, in_versions, trusted
from splitter.rules.targets import load_target, targets

RULES = Path(__file__).parents[2] / "rules"


def edited(folder: Path, *changes: tuple[str, str]) -> str:
    """imx95.toml with replacements, as a user's own file."""
    text = (RULES / "imx95.toml").read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    path = folder / "my_npu.toml"
    path.write_text(text)
    return str(path)


def message(name: str) -> str:
    with pytest.raises(SplitterError) as caught:
        load_target(name)
    return str(caught.value)


@pytest.mark.parametrize("name", targets())
def test_every_rule_file_reads_and_cites_only_sources_it_lists(name: str) -> None:
    target = load_target(name)
    assert target.name == name
    assert target.file == f"rules/{name}.toml"


def test_a_file_of_the_user_is_taken_by_its_path(tmp_path: Path) -> None:
    path = edited(tmp_path, ('name = "imx95"', 'name = "mine"'))
    assert load_target(path).name == "mine"


def test_a_file_of_the_user_is_read_for_the_version_behind_its_path(tmp_path: Path) -> None:
    path = edited(tmp_path, ('name = "imx95"', 'name = "mine"'))
    target = load_target(f"{path}@3.0.1")
    assert (target.name, target.version, target.called) == ("mine", "3.0.1", path)
    assert "no rules for neutron-converter '9'" in message(f"{path}@9")
    odd = tmp_path / "a@b.toml"
    odd.write_text(Path(path).read_text())
    assert load_target(str(odd)).name == "mine"
    assert load_target("imx95@3.0.1").called == "imx95"


def test_an_unknown_target_is_refused_with_the_list() -> None:
    text = message("imx59")
    for name in targets():
        assert name in text
    assert "did you mean imx95" in text
    assert message("zzz").count("imx95") == 1, "the list is not told twice"


def test_a_version_without_rules_is_refused_with_the_versions_that_have_them() -> None:
    assert "3.2.2" in message("imx95@9.9")


def test_a_missing_file_and_a_broken_one_are_refused(tmp_path: Path) -> None:
    assert "cannot read it" in message(str(tmp_path / "none.toml"))
    broken = tmp_path / "broken.toml"
    broken.write_text("a = [")
    assert "not a TOML file" in message(str(broken))


def test_all_mistakes_come_in_one_error_with_the_nearest_names(tmp_path: Path) -> None:
    path = edited(
        tmp_path,
        ("[operators.SLICE]", "[operators.SLCE]"),
        ('fact = "rows"', 'fact = "row"'),
        ("max = 2040", "maximum = 2040"),
        ('since = "3.2.0"', 'sinse = "3.2.0"'),
        ('Gelu = ["logistic"]', 'Gelu = ["logistics"]'),
        ('support = "unknown"', 'support = "maybe"'),
        ('source = "N1"\n', 'source = "N9"\n'),
        ('assumed = "3.2.2"', 'assumed = "3.2.9"'),
        ("sort = {", "sorting = {"),
    )
    text = message(path)
    for part in (
        "operators.SLCE: no such TFLite operator; did you mean SLICE",
        "no fact 'row'; did you mean rows",
        "maximum: unknown key; did you mean max",
        "sinse: unknown key; did you mean since",
        "no lowering 'logistics'; did you mean logistic",
        "operators.SPACE_TO_DEPTH.support: input should be 'yes', 'no' or 'unknown', not 'maybe'",
        "no source 'N9'",
        "'3.2.9' is not among tool.versions",
        "classes: sort is missing",
        "sorting: unknown class",
    ):
        assert part in text


def test_values_that_cannot_be_are_mistakes_each_with_what_would_be_right(tmp_path: Path) -> None:
    path = edited(
        tmp_path,
        ('fact = "static", equals = true', 'fact = "static", equals = "true"'),
        ('fact = "dtypes", in = ["int8"]', 'fact = "dtypes", in = ["in8"]'),
        ('fact = "channels", max = 2040', 'fact = "channels", min = 4000, max = 2040'),
        ('fact = "bias_dtype", in = ["int32", "none"]', 'fact = "bias_dtype", in = []'),
        ('fact = "channels", multiple_of = 16', 'fact = "channels", multiple_of = 0'),
        ('since = "3.2.0"', 'since = "3.2.9"'),
        ('until = "3.1.0"', 'since = "3.2.0", until = "3.1.0"'),
        (" --input {input} --output {output}", ""),
        ('dialect = "tflite"', 'dialect = "tflite"\nmax_segments = 0'),
    )
    text = message(path)
    for part in (
        "static is true or false, not 'true'",
        "dtypes: no type 'in8'; did you mean int8",
        "channels has min 4000 over max 2040",
        "bias_dtype has an empty list of values",
        "channels cannot be a multiple of 0",
        "since: '3.2.9' is not among tool.versions; did you mean 3.2",
        "since 3.2.0 is not before until 3.1.0",
        "tool.command: has no {input}",
        "tool.command: has neither {output} nor {output_dir}",
        "max_segments: 0; leave it out for any number",
    ):
        assert part in text, part


def test_a_figure_below_0_and_a_divisor_of_0_are_mistakes(tmp_path: Path) -> None:
    text = (RULES / "imx95.toml").read_text()
    peak, invoke = (
        next(line for line in text.splitlines() if line.startswith(f"{name} = {{ value"))
        for name in ("peak", "invoke")
    )
    zero = re.sub(r"value = [\d.]+", "value = 0", peak)
    negative = re.sub(r"value = [\d.]+", "value = -1", invoke)
    told = message(edited(tmp_path, (peak, zero), (invoke, negative)))
    assert "latency.npu.peak.value: 0 must be over 0" in told
    assert "latency.npu.invoke.value: -1 must be at least 0" in told


def test_a_limit_without_a_value_is_a_mistake(tmp_path: Path) -> None:
    assert "given no value" in message(edited(tmp_path, ("max = 2040, ", "")))


def test_limits_follow_the_version_of_the_tool() -> None:
    old, new = load_target("imx95@3.0.1"), load_target("imx95")
    assert new.version == "3.2.2"
    addresses = [{a for a, _ in target.limits("CONV_2D")} for target in (old, new)]
    assert "CONV_2D.batch" in addresses[0] - addresses[1]
    assert "CONV_2D.stride_h" in addresses[1] - addresses[0]


def test_versions_are_compared_by_number_and_the_end_is_open() -> None:
    assert in_versions("3.10.0", since="3.9.0", until="")
    assert not in_versions("3.1.0", since="", until="3.1.0")
    assert in_versions("3.0.9", since="3.0.0", until="3.1.0")


def test_trust_is_an_order_and_probed_counts_as_the_vendors_word() -> None:
    order = ("vendor", "field", "proxy", "inferred")
    for i, trust in enumerate(order):
        assert [trusted(one, trust) for one in order] == [j <= i for j in range(4)]
        assert trusted("probed", trust)


@pytest.mark.parametrize(
    ("keys", "inside", "outside"),
    [
        ({"max": 3}, (3, 0), (4, "unknown", "3")),
        ({"min": 1, "max": 3}, (1, 3), (0, 4)),
        ({"equals": True}, (True,), (False, "unknown")),
        ({"in": ["int8", "none"]}, ("int8", ("int8", "none")), ("int16", ("int8", "int16"))),
        ({"multiple_of": 16}, (16, 32), (17, "unknown")),
    ],
)
def test_a_condition_holds_inside_its_values_and_never_for_what_is_unknown(
    keys: dict[str, object], inside: tuple[object, ...], outside: tuple[object, ...]
) -> None:
    condition = Condition.model_validate({"fact": "f", **keys})
    assert all(condition.holds(value) for value in inside)
    assert not any(condition.holds(value) for value in outside)
    assert str(condition)
