"""The samples that a call of the main job asks for. Decides nothing: options become arguments."""

from __future__ import annotations

from collections.abc import Sequence

from splitter.calibration.read import read_calibration
from splitter.calibration.samples import Division, Samples, divide
from splitter.graph import Value
from splitter.options import Options


def take_samples(options: Options, spec: str, inputs: Sequence[Value], limit: int) -> Samples:
    """At most `limit` samples of one folder or file, as the options say."""
    return read_calibration(
        spec,
        inputs,
        preprocess=options.preprocess,
        mean=options.mean,
        std=options.std,
        limit=limit,
    )


def read_samples(options: Options, inputs: Sequence[Value]) -> Division:
    """Samples to calibrate on and samples to verify on, from one file or two."""
    calibration, validation = options.calibration_samples, options.verify_samples
    if not options.validation:
        samples = take_samples(options, options.calibration, inputs, calibration + validation)
        return divide(samples, inputs, calibration=calibration, validation=validation)
    return Division(
        calibration=take_samples(options, options.calibration, inputs, calibration),
        validation=take_samples(options, options.validation, inputs, validation),
        shared=False,
    )
