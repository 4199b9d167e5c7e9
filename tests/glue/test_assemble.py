"""The one file for the board, joined from the modules of splitter.glue.board."""

from __future__ import annotations

import ast
from pathlib import Path

from splitter.glue import board, run_script
from splitter.glue.assemble import MODULES


def test_every_module_of_the_folder_is_in_the_file() -> None:
    folder = Path(board.__file__).parent
    assert sorted(MODULES) == sorted(p.stem for p in folder.glob("*.py") if p.stem != "__init__")


def test_the_file_is_good_for_python_3_8() -> None:
    ast.parse(run_script(), feature_version=(3, 8))


def test_the_file_needs_nothing_of_the_splitter() -> None:
    tree = ast.parse(run_script())
    imports = [n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]
    assert not [module for module in imports if module.startswith("splitter")]


def test_no_name_is_defined_by_two_modules() -> None:
    defined = [
        name
        for node in ast.parse(run_script()).body
        for name in (
            [node.name]
            if isinstance(node, ast.FunctionDef | ast.ClassDef)
            else [ast.unparse(target) for target in node.targets]
            if isinstance(node, ast.Assign)
            else []
        )
    ]
    assert len(defined) == len(set(defined))


def test_the_same_text_comes_every_time() -> None:
    assert run_script() == run_script()
