"""A compiler is started wherever it stands; one that does not answer is told, with what it said."""

from __future__ import annotations

from pathlib import Path

import pytest

from splitter.compilers.command import run, version_text
from splitter.compilers.vela import Vela
from splitter.diagnostics import SplitterError


def program(folder: Path, text: str) -> Path:
    path = folder / "compiler"
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_a_program_given_by_a_path_from_here_runs_in_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path, "#!/bin/sh\npwd\n")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    ran = run(["./compiler"], folder=tmp_path / "elsewhere")
    assert (ran.status, Path(ran.output.strip()).name) == (0, "elsewhere")


@pytest.mark.parametrize("text", ["no program at all", "#!/no/such/interpreter\n"])
def test_a_file_that_cannot_be_started_is_a_message(tmp_path: Path, text: str) -> None:
    with pytest.raises(SplitterError, match="cannot be started"):
        run([str(program(tmp_path, text))])


def test_a_program_that_hangs_when_asked_for_its_version_is_given_up(tmp_path: Path) -> None:
    hanging = program(tmp_path, "#!/bin/sh\nexec sleep 60\n")
    with pytest.raises(SplitterError, match=r"does not answer: given up after 0\.2 s"):
        version_text(str(hanging), seconds=0.2)


def test_what_a_program_says_instead_of_a_version_is_shown_in_letters(tmp_path: Path) -> None:
    binary = program(tmp_path, "#!/bin/sh\nprintf 'hello \\033[31m there\\n'\n")
    with pytest.raises(SplitterError, match=r"but 'hello \[31m there'"):
        Vela((str(binary),)).version()
