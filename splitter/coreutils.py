"""The command `split`: decides whether a call is ours or the system's own `split`, and hands over.

Coreutils owns the name. The rule: we take only calls that coreutils would refuse anyway, so no
script that uses `split` for cutting files can break:

- an option of ours that coreutils does not know (`split MODEL.onnx --target imx95`);
- one of our subcommands in first place (`split inspect OUT`), unless a file of that name exists;
- `split MODEL.onnx` with nothing else, typed at a prompt: it gets our question for the target.
  In a script it is a file to cut, as ever.

Everything else, `--help` and `--version` included, runs the system's program in this process, with
stdin, signals and environment as they came. `splitter` is always ours and never hands over.

This module decides before anything is imported: the way through costs milliseconds. What the
options and subcommands do is the business of `splitter.cli`.
"""

from __future__ import annotations

import os
import signal
import stat
import sys
from collections.abc import Sequence

SUBCOMMANDS = frozenset({"calibrate", "compare", "explain", "inspect", "rules", "targets"})

OPTIONS = frozenset(
    (
        "--calibration",
        "--calibration-samples",
        "--cpu",
        "--cpu-runtime",
        "--cut",
        "--int16",
        "--json",
        "--keep-float",
        "--max-segments",
        "--max-trips",
        "--mean",
        "--npu",
        "--output",
        "--outputs",
        "--preprocess",
        "--shape",
        "--std",
        "--target",
        "--task",
        "--threads",
        "--trust",
        "--validation",
        "--verify-samples",
    )
)
"""Long options of ours; none is an option of coreutils or an abbreviation of one."""

FALLBACKS = ("/usr/bin/split", "/bin/split")


def split() -> None:
    """Entry point of the console script `split`."""
    arguments = sys.argv[1:]
    if not ours(arguments, prompt=_typed_at_a_prompt()):
        hand_over(arguments)
    splitter()


def splitter() -> None:
    """Entry point of the console script `splitter`: Ctrl-C is quiet while modules load, too."""
    try:
        from splitter.cli import main

        main()
    except KeyboardInterrupt:
        sys.stderr.write("\ninterrupted; nothing was written\n")
        sys.exit(130)


def ours(arguments: Sequence[str], *, prompt: bool = False) -> bool:
    """Whether a call of `split` is for the model splitter.

    prompt: a person typed it at a shell's prompt; no script did.
    """
    if not arguments:
        return False
    if arguments[0] in SUBCOMMANDS:
        return not os.path.isfile(arguments[0])
    before_end = list(arguments)
    if "--" in before_end:
        before_end = before_end[: before_end.index("--")]
    if any(word.partition("=")[0] in OPTIONS for word in before_end):
        return True
    return prompt and len(arguments) == 1 and arguments[0].lower().endswith(".onnx")


def hand_over(arguments: Sequence[str]) -> None:
    """Replace this process by the system's `split`. Returns never."""
    program = system_split()
    if program is None:
        sys.stderr.write("split: no split of the system found; this tool is `splitter`\n")
        sys.exit(127)
    if len(arguments) == 1 and arguments[0] == "--help" and _typed_at_a_prompt():
        sys.stderr.write("(The system's split. For the model splitter: splitter --help)\n")
        sys.stderr.flush()
    for name in ("SIGPIPE", "SIGXFSZ"):  # Python ignores these two; a program we start must not
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_DFL)
    os.execve(program, ["split", *arguments], environment())


def system_split() -> str | None:
    """The first `split` on PATH that is no script, else its usual places, else None.

    Scripts are skipped: they are this entry point, seen through another venv or a symlink, or a
    version manager's shim for it, and would come back here for ever.
    """
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    candidates = [os.path.join(folder or os.curdir, "split") for folder in folders]
    return next((path for path in (*candidates, *FALLBACKS) if _is_program(path)), None)


def environment() -> dict[bytes, bytes] | dict[str, str]:
    """The environment as this process got it: Python itself may have set LC_CTYPE (PEP 538)."""
    try:
        with open("/proc/self/environ", "rb") as file:
            entries = file.read().split(b"\0")
    except OSError:
        return dict(os.environ)
    return dict(entry.split(b"=", 1) for entry in entries if b"=" in entry[1:])


def _is_program(path: str) -> bool:
    try:
        if not stat.S_ISREG(os.stat(path).st_mode) or not os.access(path, os.X_OK):
            return False
        with open(path, "rb") as file:
            return file.read(2) != b"#!"
    except OSError:
        return False


def _typed_at_a_prompt() -> bool:
    """A shell with job control gives a command typed there a process group of its own."""
    return os.getpgrp() == os.getpid() and all(os.isatty(descriptor) for descriptor in (0, 1, 2))
