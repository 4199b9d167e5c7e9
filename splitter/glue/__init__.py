"""What a bundle adds to the parts: manifest.json, glue/run.py, NEXT_STEPS.md, and its folder."""

from __future__ import annotations

from splitter.glue.assemble import run_script
from splitter.glue.bundle import check_out, write_bundle
from splitter.glue.describe import Artifacts, build_manifest
from splitter.glue.manifest import Manifest, check_files, from_json, read_manifest
from splitter.glue.next_steps import next_steps
from splitter.glue.vendor import vendor_notes, vendor_parts
from splitter.rules.schema import Target

__all__ = [
    "Artifacts",
    "Manifest",
    "build_manifest",
    "check_files",
    "check_out",
    "from_json",
    "glue_files",
    "next_steps",
    "read_manifest",
    "run_script",
    "vendor_notes",
    "vendor_parts",
    "write_bundle",
]


def glue_files(manifest: Manifest, target: Target) -> dict[str, bytes]:
    """manifest.json, glue/run.py and NEXT_STEPS.md by their path in the bundle."""
    texts = {
        "manifest.json": manifest.to_json(),
        "glue/run.py": run_script(),
        "NEXT_STEPS.md": next_steps(manifest, target),
    }
    return {name: text.encode("utf-8") for name, text in texts.items()}
