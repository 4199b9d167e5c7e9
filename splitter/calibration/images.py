"""Pictures to input tensors: which files are read, how they are resized, scaled and laid out.

Decides layout and channels by the input's shape. Leaves to `read` what the user may combine.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from splitter.calibration.samples import spread
from splitter.diagnostics import SplitterError
from splitter.graph import Array, Value

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".webp")
_UNREADABLE = (
    OSError,
    ValueError,
    SyntaxError,  # what pillow raises for a broken PNG
    EOFError,
    struct.error,
    Image.DecompressionBombError,
)


@dataclass(frozen=True, slots=True)
class Scaling:
    """How pixel values 0..255 become the model's numbers: (x / divisor - mean) / std by channel."""

    divisor: float
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)


SCALINGS = {
    # The figures of torchvision's ImageNet models, which DINOv2 and RF-DETR take over.
    "imagenet": Scaling(255.0, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "0-1": Scaling(255.0),
    "none": Scaling(1.0),
}


@dataclass(frozen=True, slots=True)
class Frame:
    """What an image input asks for."""

    height: int
    width: int
    channels: int
    channels_last: bool


def frame_of(value: Value) -> Frame | None:
    """The input as a picture, NCHW or NHWC with 1 or 3 channels; None when it is none."""
    if len(value.shape) != 4:
        return None
    _, first, middle, last = value.shape
    if first in (1, 3):
        return Frame(middle, last, first, channels_last=False)
    if last in (1, 3):
        return Frame(first, middle, last, channels_last=True)
    return None


@dataclass(frozen=True)
class Pictures:
    """uint8 [N, H, W, C] at the model's size, and each one's width and height before, [N, 2]."""

    pixels: Array
    sizes: Array


def read_folder(folder: Path, frame: Frame, *, limit: int) -> Pictures:
    """At most `limit` pictures, spread evenly over the sorted file names (subfolders too).

    Turned upright by their EXIF orientation. Raises SplitterError naming every unreadable file.
    """
    files = sorted(
        (f for f in folder.rglob("*") if f.suffix.lower() in SUFFIXES and f.name[0] != "."),
        key=lambda file: file.relative_to(folder).as_posix(),
    )
    if not files:
        raise SplitterError(
            "there is no image in this folder",
            where=str(folder),
            hint=f"images are files ending in {', '.join(SUFFIXES)}",
        )
    chosen = [files[index] for index in spread(len(files), limit)]
    pixels: list[Array] = []
    sizes: list[tuple[int, int]] = []
    broken: list[str] = []
    for file in chosen:
        try:
            with Image.open(file) as image:
                upright = ImageOps.exif_transpose(image)
                sizes.append(upright.size)
                pixels.append(_fit(upright, frame))
        except _UNREADABLE as problem:
            broken.append(f"{file.relative_to(folder)} ({problem})")
    if broken:
        raise SplitterError(
            f"{len(broken)} of {len(chosen)} images cannot be read: " + "; ".join(broken),
            where=str(folder),
            hint="remove or replace these files",
        )
    return Pictures(np.stack(pixels), np.array(sizes, dtype=np.int64))


def fit_array(images: Array, frame: Frame) -> Pictures:
    """uint8 [N, H, W, 3 or 1] to the frame's size and channels."""
    count, height, width, channels = images.shape
    sizes = np.tile(np.array([[width, height]], dtype=np.int64), (count, 1))
    if (height, width, channels) == (frame.height, frame.width, frame.channels):
        return Pictures(images, sizes)
    flat = images[..., 0] if channels == 1 else images
    return Pictures(np.stack([_fit(Image.fromarray(image), frame) for image in flat]), sizes)


def _fit(image: Image.Image, frame: Frame) -> Array:
    """Bilinear with antialiasing (pillow's BILINEAR widens its support when it shrinks)."""
    if image.mode[0] == "I":  # 16 bits a pixel; pillow would clip them to 255
        image = Image.fromarray((np.asarray(image).clip(0, 65535) // 257).astype(np.uint8))
    colored = image.convert("RGB" if frame.channels == 3 else "L")
    if colored.size != (frame.width, frame.height):
        colored = colored.resize((frame.width, frame.height), Image.Resampling.BILINEAR)
    return np.asarray(colored, np.uint8).reshape(frame.height, frame.width, frame.channels)


def to_input(pixels: Array, value: Value, frame: Frame, scaling: Scaling) -> Array:
    """uint8 [N, H, W, C] to the input's type and layout; a uint8 input takes pixels as they are.

    float32 arithmetic in the order (x / 255 - mean) / std, as training code writes it.
    """
    laid_out = pixels if frame.channels_last else pixels.transpose(0, 3, 1, 2)
    if value.dtype == "uint8":
        return np.ascontiguousarray(laid_out)
    numbers = pixels.astype(np.float32)
    numbers = numbers / np.float32(scaling.divisor)
    numbers = (numbers - _by_channel(scaling.mean)) / _by_channel(scaling.std)
    ordered = numbers if frame.channels_last else numbers.transpose(0, 3, 1, 2)
    return np.ascontiguousarray(ordered, dtype=value.dtype)


def _by_channel(figures: Sequence[float]) -> Array:
    return np.array(figures, dtype=np.float32)
