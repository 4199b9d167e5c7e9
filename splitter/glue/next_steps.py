"""NEXT_STEPS.md: the commands from here to the board, for these parts and this target.

Decides which steps a person needs. What the vendor's tool is called, how versions are compared and
what traps there are comes from the target's rule file; the text is `NEXT_STEPS.md.j2`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import PurePosixPath
from typing import Any

import jinja2
import numpy as np

from splitter.glue.entries import Carrier, PartEntry
from splitter.glue.manifest import Manifest
from splitter.quantize.kernels import YOUNG16
from splitter.rules.schema import Target

CONVERTED = "converted"
"""The folder for the converter's files, in the bundle or beside it."""


def next_steps(manifest: Manifest, target: Target) -> str:
    """The text of NEXT_STEPS.md for a bundle."""
    parts = [_part(entry, target) for entry in manifest.parts]
    npu = [part for part in parts if part["device"] == "npu"]
    text = _template().render(
        source=_inline(manifest.source.name),
        folder=_folder(manifest.source.name),
        tool=f"{manifest.tool.name} {manifest.tool.version}",
        target=target,
        random=manifest.calibration.random,
        warning=manifest.calibration.warning,
        preprocessing=_preprocessing(manifest.options),
        parts=parts,
        npu=npu,
        behind=manifest.remainder,
        unsupported=_unsupported(manifest),
        open_ended=_open_ended(manifest),
        npu_flags=_flags(target) if npu else "",
        lines=[line for line in target.sdk if line.tool == target.version] or list(target.sdk),
        int16=manifest.precision.int16_operators,
        young=sorted(YOUNG16.intersection(manifest.precision.int16_operators)),
        inputs=[
            {"name": _inline(i.name), "dtype": i.dtype, "shape": list(i.shape)}
            for i in manifest.inputs
        ],
    )
    return text + _sources(text, target)


def _sources(text: str, target: Target) -> str:
    """What the short names of sources in the rule file's own words stand for."""
    cited = sorted(key for key in target.sources if re.search(rf"\b{re.escape(key)}\b", text))
    if not cited:
        return ""
    lines = [f"- {key}: {target.sources[key]}" for key in cited]
    return "\n".join(["", f"Sources named above, from the rules of {target.name}:", "", *lines, ""])


def _template() -> jinja2.Template:
    text = resources.files("splitter.glue").joinpath("NEXT_STEPS.md.j2").read_text("utf-8")
    environment = jinja2.Environment(
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
        autoescape=False,
    )
    return environment.from_string(text)


def _part(entry: PartEntry, target: Target) -> dict[str, Any]:
    converted = f"{CONVERTED}/{PurePosixPath(entry.file).stem}_converted.tflite"
    source = entry.vendor.file if entry.vendor else entry.file
    command = target.tool.command.replace("{input}", source)
    command = command.replace("{output}", converted).replace("{output_dir}", CONVERTED)
    return {
        **dict(entry),
        "converted": converted,
        "command": command,
        "bytes_in": f"{_bytes(entry.inputs):,}",
        "bytes_out": f"{_bytes(entry.outputs):,}",
    }


def _bytes(tensors: Sequence[Carrier]) -> int:
    return sum(int(np.prod(t.shape, dtype=np.int64)) * np.dtype(t.type).itemsize for t in tensors)


def _unsupported(manifest: Manifest) -> str:
    """ "NonZero x 3, Loop x 1", "" without an ONNX part."""
    causes = manifest.remainder.unsupported if manifest.remainder else ()
    return ", ".join(f"{op} x {n}" for op, n in Counter(c.operator for c in causes).items())


def _open_ended(manifest: Manifest) -> list[str]:
    """Outputs that have as many rows as the data decides."""
    outputs = manifest.remainder.outputs if manifest.remainder else ()
    names = [o.name for o in outputs if o.shape is None or None in o.shape]
    whole = {piece: join.name for join in manifest.joined for piece in join.pieces}
    own = (whole.get(output.name, output.name) for output in manifest.outputs if output.open)
    return [_inline(name) for name in dict.fromkeys((*own, *names))]


def _flags(target: Target) -> str:
    flags = f" --delegate {target.board.delegate}" if target.board.delegate else ""
    return flags + (f" --converted {CONVERTED}" if target.tool.command else "")


def _preprocessing(options: Mapping[str, Any]) -> str:
    """What was asked for images, "" for arrays that came prepared."""
    given = [f"--preprocess {options['preprocess']}"] if options.get("preprocess") else []
    given += [f"--{name} {options[name]}" for name in ("mean", "std") if options.get(name)]
    return ", ".join(given)


def _inline(name: str) -> str:
    """A name inside Markdown: nothing that ends a line, a table cell or a code span."""
    return re.sub(r"[`|\s]+", " ", name)


def _folder(name: str) -> str:
    """A folder on the board that needs no quotes."""
    return re.sub(r"[^A-Za-z0-9_]+", "-", PurePosixPath(name).stem).strip("-") or "model"
