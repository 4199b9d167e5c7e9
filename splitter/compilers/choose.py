"""Which compiler a rule file means, and how a command line is completed from it."""

from __future__ import annotations

import shlex

from splitter.compilers.neutron import Neutron
from splitter.compilers.placement import Compiler
from splitter.compilers.vela import Vela, accelerator
from splitter.diagnostics import SplitterError
from splitter.rules.schema import Target


def compiler_of(target: Target, command: str) -> Compiler:
    """The target's compiler, called by the user's command.

    Options that say which NPU is meant come from the rule file where the command has none. Raises
    SplitterError for a target whose compiler cannot be called from here, and for a wrong command.
    """
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        raise SplitterError(f"not a command line: {error}", where="--compiler") from error
    if not words:
        raise SplitterError("give the compiler's command", where="--compiler", hint=_like(target))
    if target.tool.name == "vela":
        options = accelerator(target.tool.command) if len(words) == 1 else ()
        return Vela((*words, *options))
    if target.tool.name == "neutron-converter":
        chip = _option(target.tool.command, "--target")
        options = ("--target", chip) if chip and "--target" not in words else ()
        return Neutron((*words, *options))
    raise SplitterError(
        f"{target.name} is compiled by {target.tool.name}, which cannot be asked from here",
        where="--compiler",
        hint="vela (Ethos-U) and neutron-converter (Neutron) can",
    )


def _option(command: str, name: str) -> str:
    words = command.split()
    return words[words.index(name) + 1] if name in words[:-1] else ""


def _like(target: Target) -> str:
    return f"like {target.tool.command}" if target.tool.command else ""
