"""The new rule file on disk: whole or not at all, and never over a file that was read."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from splitter.diagnostics import SplitterError
from splitter.refit.refit import Refit
from splitter.rules.schema import Target
from splitter.rules.targets import rule_file


def write_rule_file(out: Path, found: Refit, target: Target, measurements: Sequence[Path]) -> None:
    """Raises SplitterError for a name that is no rule file's, is read, or cannot be written."""
    if out.suffix != ".toml":
        raise SplitterError("a rule file's name ends in .toml", where=f"-o {out}")
    read = [rule_file(target), *measurements]
    if out.exists() and any(out.samefile(path) for path in read):
        raise SplitterError(
            "what is read is not written over", where=f"-o {out}", hint="give another name"
        )
    beside = out.with_name(f".{out.name}.{os.getpid()}.partial")
    try:
        try:
            beside.write_text(found.text, encoding="utf-8")
            os.replace(beside, out)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise SplitterError(
            f"cannot be written: {error.strerror or error}", where=f"-o {out}"
        ) from error
