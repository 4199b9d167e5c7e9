"""Calibration and validation data: what a user has, as arrays a model takes."""

from splitter.calibration.read import read_calibration
from splitter.calibration.samples import Division, Samples, divide

__all__ = ["Division", "Samples", "divide", "read_calibration"]
