"""compare.json: the comparison as plain data. Decides the schema.

The times of this computer are measurements; everything else is the same for the same input.
"""

from __future__ import annotations

import json
from typing import Any

from splitter.compare.rows import Row
from splitter.compare.study import Study
from splitter.compare.telling import apart
from splitter.report.plain import plain

FORMAT = "split comparison"
SCHEMA_VERSION = 1


def to_json(study: Study) -> str:
    """The text of compare.json, with a final newline."""
    samples = study.samples
    document = {
        "format": FORMAT,
        "schema_version": SCHEMA_VERSION,
        "source": {"name": study.model.path.name, "sha256": study.model.sha256},
        "targets": [
            {"name": t.name, "title": t.title, "revision": t.revision, "sha256": t.sha256}
            for t in study.targets
        ],
        "calibration": None
        if samples is None
        else {
            "source": samples.calibration.source,
            "random": samples.calibration.random,
            "samples": len(samples.calibration),
            "clipping": study.clip,
        },
        "verification": None
        if samples is None
        else {
            "source": samples.validation.source,
            "samples": len(samples.validation),
            "seen_by_calibration": samples.shared,
        },
        "first_and_second": [line.strip() for line in apart(study)],
        "candidates": [_row(row) for row in study.rows],
    }
    return json.dumps(plain(document), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _row(row: Row) -> dict[str, Any]:
    npu, cpu = row.stages_ms
    return {
        **plain(row),
        "total_ms": row.total_ms,
        "npu_busy_ms": npu,
        "cpu_busy_ms": cpu,
        "frames_per_second": row.frames,
        "host_cpu_ms": row.host_ms,
    }
