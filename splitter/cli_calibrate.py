"""The command `split calibrate`: arguments in, text out. What is fitted is `refit`'s matter."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from splitter import arguments as args


def calibrate_command(
    target: Annotated[str, typer.Argument(metavar="TARGET|FILE.toml")],
    measurements: Annotated[list[Path], typer.Argument(metavar="MEASUREMENTS.json ...")],
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="FILE.toml", help="The rule file to write.")
    ] = "",
    bundle: Annotated[
        list[Path] | None,
        typer.Option(metavar="OUT", help="Where the measured parts are, if not beside the file."),
    ] = None,
    only: Annotated[str, typer.Option(metavar="cpu|npu", help="Fit one device alone.")] = "",
    as_json: args.Json = False,
) -> None:
    """Fit a target's latency figures to what glue/run.py --bench measured on your board."""
    from splitter.console import wrapped
    from splitter.refit import refit, write_rule_file
    from splitter.refit.text import to_json, to_text
    from splitter.rules.targets import load_target

    rules_of = load_target(target)
    devices = args.devices(only, rules_of.latency.npu is not None)
    found = refit(rules_of, measurements, devices=devices, bundles=bundle or ())
    if output:
        write_rule_file(Path(output), found, rules_of, measurements)
    text = json.dumps(to_json(found, out=output), indent=1) if as_json else ""
    print(text or wrapped(to_text(found, out=output)))
