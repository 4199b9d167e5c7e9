"""The NPU's parts as ONNX files, for targets whose compiler reads ONNX and quantizes by itself.

Decides whether a part can be cut out of the file: its borders must be values that the file has. A
border that a part stores in another layout is the file's value in the layout of the file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from splitter.carve import Part
from splitter.extract import extract
from splitter.model import Model
from splitter.normalize import opened
from splitter.normalize.exchange import type_proto
from splitter.normalize.functions import inline_functions
from splitter.rules.schema import Target

STORED = re.compile(r"/(\d+|view)(_\d+)?$")
"""What the layout stage puts behind the name of a value that it stores otherwise."""


@dataclass(frozen=True)
class VendorPart:
    """A part for the vendor's compiler: float, its inputs and outputs by ONNX names.

    without: why there is no file, "" where there is one.
    """

    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    data: bytes = field(default=b"", repr=False)
    without: str = ""


def vendor_parts(
    parts: Sequence[Part],
    model: Model,
    target: Target,
    *,
    shapes: Mapping[str, tuple[int, ...]],
) -> dict[int, VendorPart]:
    """By the part's index; empty where the target's compiler reads TFLite.

    model: the one that the parts were made from, before `normalize`.
    """
    npu = {index: part for index, part in enumerate(parts) if part.device == "npu"}
    if target.dialect != "onnx" or not npu:
        return {}
    source = inline_functions(model.proto)
    draft = opened(model, shapes=shapes)
    typed = {info.name: info for info in (*source.graph.value_info, *source.graph.output)}
    made = {out for node in source.graph.node for out in node.output if out}
    known = made | set(draft.inputs)
    found: dict[int, VendorPart] = {}
    for index, part in npu.items():
        borders = [
            tuple(dict.fromkeys(_named(name, known) for name in names))
            for names in (part.graph.inputs, part.graph.outputs)
        ]
        missing = [name for names in borders for name in names if name not in known]
        if missing:
            found[index] = VendorPart(without=f"the file has no value {', '.join(missing)}")
            continue
        inputs, outputs = borders
        proto = extract(source, draft, inputs, outputs)
        for name in outputs:
            info = typed.get(name)
            if name in draft.types:
                proto.graph.output.add(name=name, type=type_proto(draft.types[name]))
            elif info is not None:
                proto.graph.output.append(info)
            else:
                proto.graph.output.add(name=name)
        reads = tuple(value.name for value in proto.graph.input)
        found[index] = VendorPart(reads, outputs, proto.SerializeToString(deterministic=True))
    return found


def vendor_notes(found: Mapping[int, VendorPart], target: Target) -> tuple[str, ...]:
    """What the report says of them."""
    return tuple(
        f"part {index} has no ONNX file for {target.tool.name}: {part.without}; choose borders "
        "with --cut"
        if part.without
        else f"parts/{index}-npu.onnx is part {index} for {target.tool.name}, in float; what was "
        "verified here is the .tflite file beside it"
        for index, part in found.items()
    )


def _named(name: str, known: set[str]) -> str:
    """The value of the file that a tensor at a border holds."""
    while name not in known and (stored := STORED.search(name)):
        name = name[: stored.start()]
    return name
