"""report.json: the summary and the verification as plain data, stable and complete.

Decides the schema. Points of plots and pictures are left out; NaN and infinite numbers are null.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from math import isfinite
from typing import Any

import numpy as np

from splitter.report.summary import SCHEMA_VERSION, Summary
from splitter.verify import Findings


def to_json(summary: Summary) -> str:
    """The text of report.json, with a final newline; the same summary gives the same text."""
    findings = summary.comparison.findings
    document = {
        "format": "split report",
        "schema_version": SCHEMA_VERSION,
        "verdict": summary.comparison.verdict,
        "source": summary.source,
        "target": {"title": summary.target_title, **summary.rules},
        "tool": summary.tool,
        "options": summary.options,
        "calibration": summary.calibration,
        "parts": summary.parts,
        "onnx_part": summary.onnx_part,
        "boundary": {"bytes": summary.boundary_bytes, "tensors": summary.boundary},
        "npu_macs_share": summary.npu_macs_share,
        "units_on_proxy_rules": summary.proxies,
        "latency": {
            "total_ms": summary.total_ms,
            "candidates": summary.candidates,
            "more_parts": summary.more,
            "figures": summary.figures,
        },
        "precision": {
            "average_bits": summary.precision.average,
            "elements_by_type": summary.precision.elements,
            "float_tensors": summary.float_tensors,
            "int16": {
                "units": summary.widening.units,
                "everything_outside_the_npu": summary.widening.everything,
                "weights_in_two_pieces": summary.widening.fine,
                "error_left": summary.widening.left,
                "samples": summary.widening.samples,
            },
            "values": summary.precision.values,
        },
        "units": summary.placements,
        "cpu_by_reason": summary.cpu_groups,
        "verification": {
            "samples": findings.runs,
            "circumstances": summary.comparison.circumstances,
            "gates": summary.comparison.gates,
            "task": findings.task,
            "stages": findings.stages,
            "rewrites": summary.rewrites,
            "inner_values": findings.boundary,
            "onnx_part": findings.behind,
            **_rows(findings),
            "decisions": findings.decisions,
            "decisions_on_the_board": findings.board,
            "int16": summary.comparison.wider,
            "int16_not_tried": summary.comparison.untried,
        },
        "notes": summary.notes,
    }
    return json.dumps(plain(document), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _rows(findings: Findings) -> dict[str, Any]:
    """By stage, what became of the rows of outputs that have as many as the data decides."""
    found = {
        stage.stage: {tensor.name: tensor.rows for tensor in stage.tensors if tensor.rows}
        for stage in findings.stages
    }
    return {"rows": found} if any(found.values()) else {}


def plain(value: Any) -> Any:
    """Dataclasses to objects (fields hidden from their repr left out), numpy to Python."""
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value) if f.repr}
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not isfinite(value):
        return None
    return value
