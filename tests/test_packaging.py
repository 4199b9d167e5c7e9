"""What an installed wheel holds and needs."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
MODULES = {"ai_edge_litert": "ai-edge-litert", "PIL": "pillow", "google": "protobuf"}
"""Modules whose distribution has another name."""
THROUGH = {"protobuf": "onnx", "flatbuffers": "ai-edge-litert", "markupsafe": "jinja2"}
"""Distributions that are required by one of ours, and come with it."""
ON_THE_BOARD = {"tensorflow", "tflite-runtime"}
"""What the glue looks for when ai-edge-litert is not there."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (made,) = folder.glob("*.whl")
    return made


def test_the_wheel_holds_rules_templates_and_types_but_no_models(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    for rule in (ROOT / "rules").glob("*.toml"):
        assert f"splitter/_rules/{rule.name}" in names
    data = [p for p in (ROOT / "splitter").rglob("*") if p.suffix in (".j2", ".css", ".js", ".svg")]
    assert data
    for path in data:
        assert str(path.relative_to(ROOT)) in names
    assert not [name for name in names if name.endswith((".onnx", ".npz", ".tflite"))]
    assert not [name for name in names if name.split("/")[0] in ("tests", "models", "bench")]


def test_the_wheel_has_both_commands_and_the_licence(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (scripts,) = [name for name in archive.namelist() if name.endswith("entry_points.txt")]
    text = archive.read(scripts).decode()
    assert "split = splitter.coreutils:split" in text
    assert "splitter = splitter.coreutils:splitter" in text
    assert [name for name in archive.namelist() if name.endswith("licenses/LICENSE")]


def test_the_tool_finds_its_rules_when_it_runs_from_the_wheel(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    shown = subprocess.run(
        [sys.executable, "-m", "splitter", "rules", "check", "imx95"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "site")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert shown.returncode == 0, shown.stderr
    assert "imx95" in shown.stdout


def imported() -> dict[str, set[str]]:
    """Top-level modules that the package imports -> the files that do."""
    found: dict[str, set[str]] = {}
    for path in (ROOT / "splitter").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module]
            for name in names:
                found.setdefault(name.split(".")[0], set()).add(str(path.relative_to(ROOT)))
    return found


def test_every_import_is_a_declared_dependency() -> None:
    declared = {re.split(r"[^\w-]", entry)[0] for entry in PROJECT["dependencies"]}
    missing = {}
    for module, files in imported().items():
        distribution = MODULES.get(module, module.replace("_", "-"))
        if module in sys.stdlib_module_names or module in ("splitter", "tomli", "tomllib"):
            continue
        if {distribution, THROUGH.get(distribution)} & declared:
            continue
        if distribution in ON_THE_BOARD and all("glue/board" in file for file in files):
            continue
        missing[module] = files
    assert missing == {}


def test_every_declared_dependency_is_imported() -> None:
    used = {MODULES.get(module, module.replace("_", "-")) for module in imported()}
    declared = {re.split(r"[^\w-]", entry)[0] for entry in PROJECT["dependencies"]}
    assert declared - used == set()


def test_no_module_needs_torch() -> None:
    assert not {"torch", "torchvision", "rfdetr"} & set(imported())
