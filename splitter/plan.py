"""The types of the planning stages: verdicts, candidates, the plan, its estimated latency."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from splitter.diagnostics import Reason

Device = Literal["npu", "cpu"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a unit runs on a device, by which lowering, or ALL the reasons why not.

    `lowering` is the name of a `splitter.ops.Lowering` ("" when none fits). `reasons` maps each
    lowering tried to its reasons. `proxies` counts the accepting rules whose confidence is "proxy".
    """

    lowering: str
    reasons: Mapping[str, tuple[Reason, ...]] = field(default_factory=dict)
    proxies: int = 0

    @property
    def fits(self) -> bool:
        return bool(self.lowering)


@dataclass(frozen=True)
class Support:
    """Verdicts by unit name, for each device. Every unit fits the CPU."""

    npu: Mapping[str, Verdict]
    cpu: Mapping[str, Verdict]


@dataclass(frozen=True, slots=True)
class Cost:
    """Estimated milliseconds of a plan.

    transfer_ms: handing tensors over, with the changes of order and scale that borders need.
    """

    npu_ms: float
    cpu_ms: float
    transfer_ms: float
    invoke_ms: float

    @property
    def total_ms(self) -> float:
        return self.npu_ms + self.cpu_ms + self.transfer_ms + self.invoke_ms


@dataclass(frozen=True, slots=True)
class Segment:
    """Units that run together on one device, in topological order."""

    device: Device
    units: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """Ordered segments that cover every unit once; segment i only reads segments before it.

    `lowerings`: unit name -> lowering name on the device it sits on.
    `name`: how the candidate came about ("npu|cpu by min cut", "all on the CPU", "cut at X").
    """

    name: str
    segments: tuple[Segment, ...]
    lowerings: Mapping[str, str]
    cost: Cost

    def device(self, unit: str) -> Device:
        return next(segment.device for segment in self.segments if unit in segment.units)
