"""Operators that TFLite has no counterpart of, written as others, each by the rule of its family.

Quantized operators, those of ONNX Runtime's own domain, windows by taps or at computed places,
norms with computed parameters, Fourier transforms. A rule that does not know a form leaves the node
alone; it is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable

from splitter.draft import Draft, Node
from splitter.normalize import (
    computed_parameters,
    contrib,
    quantized_operators,
    sampled,
    spectrum,
    taps,
)
from splitter.normalize.fold import fold_constants, infer

Rule = Callable[[Draft, Node], None]

RULES: dict[str, dict[str, Rule]] = {
    "": {
        **quantized_operators.STANDARD,
        "BatchNormalization": computed_parameters.batch_norm,
        "InstanceNormalization": computed_parameters.instance_norm,
        "Conv": taps.conv_by_taps,
        "DeformConv": sampled.deform_conv,
        "DFT": spectrum.dft,
        "MaxPool": taps.max_pool_with_places,
        "MaxUnpool": taps.max_unpool,
        "RoiAlign": sampled.roi_align,
        "STFT": spectrum.stft,
    },
    contrib.DOMAIN: {**quantized_operators.CONTRIB, **contrib.RULES},
}


def expand(draft: Draft) -> None:
    """Rewrite every node that has a rule; the passes after it see standard operators."""
    changed = False
    for node in draft.nodes:
        rule = RULES.get(node.domain, {}).get(node.op)
        if rule is not None:
            rule(draft, node)
            changed = changed or not draft.alive(node)
        if draft.alive(node) and any(out and out not in draft.types for out in node.outputs):
            infer(draft, node)  # what was rewritten before it has types now
    if changed:
        fold_constants(draft)
