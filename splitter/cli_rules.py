"""The commands about targets and their rules: `split targets`, `split rules ...`.

Arguments in, text out; what is printed is made by `rules.book`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from splitter import arguments as args
from splitter.diagnostics import SplitterError

rules = typer.Typer(help="Look at rule files, check them, learn them from a compiler.")


def targets_command(as_json: args.Json = False) -> int:
    """The NPUs that rule files come with."""
    from splitter.console import wrapped
    from splitter.rules.book import counts
    from splitter.rules.targets import load_target, targets

    known = [(load_target(name), counts(load_target(name))) for name in targets()]
    if as_json:
        rows: list[dict[str, Any]] = [
            {
                "name": target.name,
                "title": target.title,
                "dialect": target.dialect,
                "tool": target.tool.name,
                "version": target.version,
                "versions": list(target.tool.versions),
                "max_segments": target.max_segments,
                "operators": {kind: found[kind] for kind in ("yes", "no", "unknown")},
            }
            for target, found in known
        ]
        print(json.dumps(rows, indent=1))
        return 0
    for target, found in known:
        known_of = f"{found['yes']} operators" if target.has_npu else "no NPU"
        others = [f"@{one}" for one in target.tool.versions if one != target.version]
        more = f"; also {' '.join(others)}" if others else ""
        print(wrapped(f"{target.name:<11} {target.title}; {known_of}{more}"))
    return 0


@rules.command("show")
def rules_show(
    target: Annotated[str, typer.Argument(metavar="TARGET|FILE.toml")],
    operator: Annotated[str, typer.Argument(metavar="OPERATOR")] = "",
    as_json: args.Json = False,
) -> int:
    """The rules of a target, or of one operator: limits, source, confidence."""
    from splitter.console import wrapped
    from splitter.rules.book import rulebook, rules_json
    from splitter.rules.targets import load_target

    loaded = load_target(target)
    if as_json:
        print(json.dumps(rules_json(loaded, operator), indent=1))
    else:
        print(wrapped(rulebook(loaded, operator)))
    return 0


@rules.command("check")
def rules_check(
    files: Annotated[list[str], typer.Argument(metavar="TARGET|FILE.toml ...")],
    as_json: args.Json = False,
) -> int:
    """Whether rule files are right; every mistake is listed, with the valid names."""
    from splitter.rules.targets import load_target

    right: list[dict[str, Any]] = []
    wrong: list[SplitterError] = []
    for file in files:
        try:
            target = load_target(file)
        except SplitterError as error:
            wrong.append(error)
            continue
        found = {"file": file, "operators": len(target.operators), "revision": target.revision}
        right.append(found)
        if not as_json:
            print("{file}: {operators} operators, revision {revision}".format(**found))
    if len(wrong) == 1:
        raise wrong[0]
    if wrong:
        raise SplitterError(
            f"{len(wrong)} of {len(files)} rule files are wrong\n"
            + "\n".join(f"{error.where}: {error.what}" for error in wrong),
            hint=wrong[-1].hint,
        )
    if as_json:
        print(json.dumps({"files": right}, indent=1))
    return 0


@rules.command("probe")
def rules_probe(
    target: Annotated[str, typer.Argument(metavar="TARGET|FILE.toml")],
    compiler: Annotated[
        str, typer.Option(metavar="CMD", help="The vendor's compiler, with options or without.")
    ],
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="FILE.toml", help="Default TARGET-probed.toml.")
    ] = "",
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="OPERATOR,...", help="Try these; the others stay as they are."),
    ] = None,
    as_json: args.Json = False,
) -> int:
    """Learn a rule file from the vendor's compiler, and list where it differs from ours."""
    from splitter.console import watched, wrapped
    from splitter.probe import Probed, probe
    from splitter.progress import Progress

    out = Path(output or f"{args.short_name(target).partition('@')[0]}-probed.toml")

    def work(progress: Progress) -> Probed:
        progress.stage("probe")
        return probe(target, compiler, out, only=args.names(only), step=progress.step)

    found = watched(work, quiet=as_json)
    print(json.dumps(found.to_json(), indent=1) if as_json else wrapped(found.to_text()))
    return 0


def explain_command(
    model: args.Model,
    node: Annotated[
        str, typer.Argument(metavar="NODE", help="A node, a value or a kind of operator.")
    ] = "",
    target: args.Target = "",
    assumed: Annotated[
        list[str] | None,
        typer.Option("--assume", metavar="OPERATOR,...", help="Plan as if the NPU took them."),
    ] = None,
    trust: args.Trust = "proxy",
    npu: args.Npu = None,
    cpu: args.Cpu = None,
    cut: args.Cut = None,
    max_segments: args.MaxSegments = None,
    outputs: args.Outputs = None,
    cpu_runtime: args.CpuRuntime = "",
    max_trips: args.MaxTrips = None,
    shape: args.Shape = None,
    as_json: args.Json = False,
) -> int:
    """Why operators are on the CPU: all reasons, what it costs, what would move them."""
    from splitter.console import wrapped
    from splitter.explain import explanation
    from splitter.options import Options
    from splitter.rules.schema import TRUSTS

    options = Options(
        model=model,
        target=args.required_target(target),
        out=Path(),
        outputs=args.names(outputs),
        shapes=args.shapes(shape),
        trust=args.one_of("--trust", trust, TRUSTS),
        npu=args.names(npu),
        cpu=args.names(cpu),
        cut=args.names(cut),
        max_segments=max_segments,
        cpu_runtime=args.runtime(cpu_runtime),
        max_trips=max_trips,
    )
    found = explanation(options, node=node, assumed=args.names(assumed))
    print(json.dumps(found.to_json(), indent=1) if as_json else wrapped(found.to_text()))
    return 0
