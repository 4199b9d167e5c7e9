"""Joins the modules of `splitter.glue.board` into the one file that a bundle carries.

A person copies one file to the board; we keep small modules. Imports of the standard library and
numpy are gathered at the top, imports between the modules go, everything else is kept as written.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from importlib import resources
from typing import TypeGuard

PACKAGE = "splitter.glue.board"
MODULES = (
    "messages",
    "bundle",
    "numbers",
    "arrays",
    "runtimes",
    "placement",
    "engine",
    "isolate",
    "onnx_part",
    "runner",
    "bench",
    "main",
)
"""Each before those that import it."""

HEADER = '''\
#!/usr/bin/env python3
"""Runs a bundle made by `split`: arrays by ONNX names in, arrays by ONNX names out.

    python glue/run.py IN.npz -o OUT.npz
    python glue/run.py IN.npz -o OUT.npz --delegate PATH.so --converted DIR --require-npu
    python glue/run.py --bench 50

Needs numpy and one of tflite_runtime, ai_edge_litert or tensorflow, Python 3.8 or newer, and the
bundle's folder around it; onnxruntime too where a part is an .onnx file. From Python, with this
file's folder on the path:

    outputs = Runner(Bundle(folder), Settings()).run({"input": array}).outputs

Exit status: 0 good, 1 a gate failed (--require-npu), 2 bad input or use.
"""

from __future__ import annotations
'''


def run_script() -> str:
    """The text of OUT/glue/run.py."""
    folder = resources.files(PACKAGE)
    texts = {name: folder.joinpath(f"{name}.py").read_text(encoding="utf-8") for name in MODULES}
    trees = {name: ast.parse(text) for name, text in texts.items()}
    top = [node for tree in trees.values() for node in tree.body]
    guarded = [node for guard in top if _is_typing_guard(guard) for node in guard.body]
    typing_only = [*_imports(guarded), "", "Array = NDArray[Any]"]
    header = [*_imports(top), "", "if TYPE_CHECKING:"]
    header += [f"    {line}" if line else "" for line in typing_only]
    bodies = [_body(name, texts[name], trees[name]) for name in MODULES]
    return "\n\n".join([HEADER + "\n" + "\n".join(header) + "\n", *bodies])


def _imports(nodes: Sequence[ast.stmt]) -> list[str]:
    """Import lines for the imports among the nodes, those of our own package left out."""
    plain = {ast.unparse(node) for node in nodes if isinstance(node, ast.Import)}
    names: dict[str, set[str]] = {}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module and not _is_dropped(node.module):
            names.setdefault(node.module, set()).update(map(ast.unparse, node.names))
    wanted = (f"from {module} import {', '.join(sorted(names[module]))}" for module in names)
    lines = [*sorted(plain), *sorted(wanted)]
    standard = [line for line in lines if "numpy" not in line]
    return [*standard, "", *(line for line in lines if "numpy" in line)]


def _is_dropped(module: str) -> bool:
    return module == "__future__" or module.startswith(PACKAGE)


def _is_typing_guard(node: ast.stmt) -> TypeGuard[ast.If]:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def _body(name: str, text: str, tree: ast.Module) -> str:
    """What follows the imports, under the module's own first line."""
    head = [n for n in tree.body if isinstance(n, ast.Import | ast.ImportFrom | ast.If)]
    last = max(n.end_lineno or 0 for n in head if not _is_entry(n))
    lines = "\n".join(text.splitlines()[last:]).strip("\n").splitlines()
    about = [f"# {line}".rstrip() for line in (ast.get_docstring(tree) or "").splitlines()]
    return "\n".join([f"# {name:-<98}", *about, "", "", *lines]).strip("\n") + "\n"


def _is_entry(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "__name__" in ast.unparse(node.test)
