"""A rule file is learned from Arm's own compiler, run for real."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from splitter.compilers.vela import Vela
from splitter.probe import probe
from splitter.rules.targets import load_target
from splitter.specimens import specimen
from splitter.tflite.write import write

RULES = Path(__file__).parents[2] / "rules"
VELA = shutil.which("vela") or shutil.which("vela", path=str(Path(sys.executable).parent))

pytestmark = pytest.mark.skipif(
    VELA is None, reason="vela is not installed: pip install ethos-u-vela (x86_64)"
)


def test_vela_says_of_each_operator_where_it_is_and_why() -> None:
    vela = Vela((str(VELA), "--accelerator-config", "ethos-u85-256"))
    taken = vela.place(write(specimen("CONV_2D", {})))
    assert taken.takes(["y"])
    assert taken.npu_nodes == 1
    refused = vela.place(write(specimen("SIN", {})))
    assert not refused.takes(["y"])
    assert refused.why["y"]


def test_what_a_file_says_wrongly_of_vela_is_found_and_what_it_says_rightly_is_probed(
    tmp_path: Path,
) -> None:
    text = (RULES / "ethos-u55.toml").read_text()
    sine = '[operators.SIN]\nsupport = "yes"\nsource = "V1"\nconfidence = "vendor"\n\n'
    wrong = text.replace("[operators.SLICE]", f"{sine}[operators.SLICE]", 1)
    assert wrong != text
    (tmp_path / "mine.toml").write_text(wrong)
    out = tmp_path / "probed.toml"
    done = probe(str(tmp_path / "mine.toml"), str(VELA), out, only=("SIN", "tanh", "SLICE"))
    assert [one.place for one in done.learned.differences] == ["SIN"]
    learned = load_target(str(out))
    assert learned.version == done.version
    assert learned.operators["SIN"].support == "no"
    assert learned.operators["TANH"].confidence == "probed"
    assert learned.operators["ADD"] == load_target("ethos-u55").operators["ADD"]
    assert {limit.confidence for limit in learned.operators["SLICE"].limits} <= {
        "probed",
        "vendor",
    }
    assert "written" in done.to_text()
