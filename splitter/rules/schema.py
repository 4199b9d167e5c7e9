"""What a rule file may say: the types of rules/*.toml, and the meaning of one condition.

Decides what a limit means and which rules a tool version and a trust take in. Reads no files
(`targets` does) and looks at no operator (`support` does).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Scalar = bool | int | float | str
Confidence = Literal["vendor", "probed", "field", "proxy", "inferred"]
Trust = Literal["vendor", "field", "proxy", "inferred"]

_RANK: Mapping[str, int] = {"vendor": 0, "probed": 0, "field": 1, "proxy": 2, "inferred": 3}
TRUSTS: tuple[str, ...] = ("vendor", "field", "proxy", "inferred")


def trusted(confidence: str, trust: str) -> bool:
    """Whether a rule of this confidence is taken at this trust. Probed counts as vendor."""
    return _RANK[confidence] <= _RANK[trust]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Condition(Strict):
    """One fact and the values it may take. Conditions given together must all hold.

    On a fact with several values (the types of an operator) each value must satisfy it.
    """

    fact: str
    min: int | float | None = None
    max: int | float | None = None
    equals: Scalar | None = None
    among: tuple[Scalar, ...] | None = Field(default=None, alias="in")
    multiple_of: int | None = None

    def holds(self, value: object) -> bool:
        if isinstance(value, tuple):
            return all(self.holds(one) for one in value)
        if self.equals is not None and value != self.equals:
            return False
        if self.among is not None and value not in self.among:
            return False
        return self._in_range(value)

    def _in_range(self, value: object) -> bool:
        if self.min is None and self.max is None and self.multiple_of is None:
            return True
        if not isinstance(value, int | float):
            return False
        low = self.min is None or value >= self.min
        high = self.max is None or value <= self.max
        return low and high and (self.multiple_of is None or value % self.multiple_of == 0)

    @property
    def empty(self) -> bool:
        given = (self.min, self.max, self.equals, self.among, self.multiple_of)
        return all(part is None for part in given)

    def __str__(self) -> str:
        parts = []
        if self.min is not None and self.max is not None:
            parts.append(f"{self.min} to {self.max}")
        elif self.max is not None:
            parts.append(f"at most {self.max}")
        elif self.min is not None:
            parts.append(f"at least {self.min}")
        if self.equals is not None:
            parts.append(_printed(self.equals))
        if self.among is not None:
            parts.append(" or ".join(_printed(one) for one in self.among))
        if self.multiple_of is not None:
            parts.append(f"multiples of {self.multiple_of}")
        return ", ".join(parts)


class Sourced(Strict):
    """Where a statement comes from. `source`: keys of [sources], separated by commas."""

    source: str
    confidence: Confidence
    note: str = ""


class Limit(Condition):
    """A condition on an operator, where every condition of `when` holds.

    since, until: first tool version the limit holds for, first version it no longer holds for.
    """

    source: str
    confidence: Confidence
    note: str = ""
    since: str = ""
    until: str = ""
    when: tuple[Condition, ...] = ()

    def __str__(self) -> str:
        when = " and ".join(f"{one.fact} is {Condition.__str__(one)}" for one in self.when)
        return Condition.__str__(self) + (f" when {when}" if when else "")


class OperatorRule(Sourced):
    """Whether the target takes an operator, and within which limits.

    support "unknown" is a value of its own: nobody knows, so the operator goes to the CPU.
    """

    support: Literal["yes", "no", "unknown"]
    since: str = ""
    until: str = ""
    limits: tuple[Limit, ...] = ()


class Every(Strict):
    """Limits on every operator, and the source for taking no operator that is not listed."""

    limits: tuple[Limit, ...] = ()
    unlisted: Sourced


class Tool(Strict):
    """The vendor's compiler. `command` has {input} and {output}; `versions` oldest first."""

    name: str
    command: str = ""
    versions: tuple[str, ...] = ()
    assumed: str = ""
    show_version: str = ""
    note: str = ""
    log_markers: tuple[str, ...] = ()
    output_markers: tuple[str, ...] = ()


class VersionCheck(Strict):
    """One thing to compare on the board before the files are trusted."""

    what: str
    command: str
    shows: str
    source: str
    confidence: Confidence


class Board(Strict):
    """Runtime and delegate on the board, and how to see that the NPU was used."""

    runtime: str = ""
    delegate: str = ""
    environment: Mapping[str, str] = {}
    placement_line: str = ""
    version_rule: str = ""
    checks: tuple[VersionCheck, ...] = ()
    notes: tuple[str, ...] = ()


class SdkLine(Strict):
    """A pairing of tool and board software seen somewhere."""

    tool: str
    board: str
    source: str
    confidence: Confidence
    note: str = ""


class Figure(Sourced):
    """A number of the latency model with its unit and what it rests on."""

    value: float
    unit: str


class NpuFigures(Strict):
    """peak: MAC/ms after padding channels to `channel_step`; see `latency` for how they act."""

    peak: Figure
    channel_step: Figure
    efficiency: Figure
    depthwise_efficiency: Figure
    memory: Figure
    local_memory: Figure
    operator: Figure
    elements: Figure
    invoke: Figure
    transfer: Figure
    transfer_fixed: Figure


class CpuFigures(Strict):
    """Nanoseconds by kernel class: a MAC for the matrix classes, an output element for others."""

    cores: Figure
    operator: Figure
    classes: Mapping[str, Figure]


class Latency(Strict):
    """npu_classes: nanoseconds on the NPU by kernel class, where `npu` says too little.

    Of a padded MAC for the matrix classes, of an element for others.
    """

    npu: NpuFigures | None = None
    npu_classes: Mapping[str, Figure] = {}
    cpu: CpuFigures


class Target(Strict):
    """One rule file: `file` is its name as users know it ("rules/imx95.toml"), `sha256` its own."""

    format: Literal[1]
    name: str
    title: str
    revision: str
    dialect: Literal["tflite", "onnx"]
    note: str = ""
    file: str = ""
    sha256: str = ""
    max_segments: int | None = None
    sources: Mapping[str, str] = {}
    tool: Tool
    board: Board = Board()
    sdk: tuple[SdkLine, ...] = ()
    every: Every
    preferred: Mapping[str, tuple[str, ...]] = {}
    operators: Mapping[str, OperatorRule] = {}
    latency: Latency

    @property
    def has_npu(self) -> bool:
        """Whether there is one, its operators known or not."""
        return self.tool.name != "none"

    @property
    def version(self) -> str:
        """The tool version the rules are read for."""
        return self.tool.assumed

    @property
    def called(self) -> str:
        """What --target takes for it: its name, or the path of a file that is not ours."""
        return self.name if self.file == f"rules/{self.name}.toml" else self.file

    def at(self, version: str) -> Target:
        """The same target, its rules read for another version of the tool."""
        return self.model_copy(update={"tool": self.tool.model_copy(update={"assumed": version})})

    def source_text(self, keys: str) -> str:
        return "; ".join(self.sources.get(key.strip(), key.strip()) for key in keys.split(","))

    def limits(self, code: str) -> tuple[tuple[str, Limit], ...]:
        """(address, limit) of every limit on an operator at this version, general ones first."""
        rule = self.operators.get(code)
        general = [(f"every.{limit.fact}", limit) for limit in self.every.limits]
        own = [(f"{code}.{limit.fact}", limit) for limit in (rule.limits if rule else ())]
        return tuple(
            (address, limit)
            for address, limit in (*general, *own)
            if in_versions(self.version, since=limit.since, until=limit.until)
        )


def in_versions(version: str, *, since: str, until: str) -> bool:
    """Whether a version lies in [since, until); empty bounds are open, an empty version is any."""
    if not version:
        return not until
    key = version_key(version)
    return (not since or key >= version_key(since)) and (not until or key < version_key(until))


def version_key(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def _printed(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
