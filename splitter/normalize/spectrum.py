"""Fourier transforms of a known length, as products with constant cosines and sines.

DFT is one MatMul, STFT a convolution along time whose filters are the windowed waves. Both keep the
ONNX form of the result: real and imaginary parts along a last axis.
"""

from __future__ import annotations

import numpy as np

from splitter.draft import Array, Draft, Node
from splitter.normalize.writer import Writer

MOST = 1 << 24
"""Elements of the matrix: 64 MB in float32."""


def dft(draft: Draft, node: Node) -> None:
    """input [..., n, ..., 1 or 2] along an axis; inverse; one-sided; padded or cut to a length."""
    shape = draft.shape(node.inputs[0])
    given = draft.scalar(node.input(1)) if node.input(1) else None
    where = draft.scalar(node.input(2)) if node.input(2) else -2
    if shape is None or where is None or (node.input(1) and given is None):
        return
    rank, parts = len(shape), shape[-1]
    axis = int(where) % rank
    half, inverse = bool(node.attrs.get("onesided", 0)), bool(node.attrs.get("inverse", 0))
    known = shape[axis]
    length = int(given) if given is not None else 2 * (known - 1) if half and inverse else known
    matrix = waves(known, parts, length, inverse=inverse, half=half)
    if matrix.size > MOST or axis == rank - 1:
        return
    w = Writer(draft, node)
    rest = [a for a in range(rank - 1) if a != axis]
    turned = w.add("Transpose", [node.inputs[0]], perm=[*rest, rank - 1, axis])
    lengths = [shape[a] for a in rest]
    rows = w.add("Reshape", [turned, w.const([*lengths, parts * known])])
    real = 1 if half and inverse else 2
    product = w.add("MatMul", [rows, w.const(matrix, draft.dtype(node.inputs[0]))])
    apart = w.add("Reshape", [product, w.const([*lengths, real, -1])])
    order = [*rest, rank - 1, axis]
    w.add("Transpose", [apart], out=w.out, perm=[order.index(a) for a in range(rank)])


def waves(known: int, parts: int, length: int, *, inverse: bool, half: bool) -> Array:
    """[parts * known, 2 * bins], or [.., length] for the inverse of a one-sided spectrum.

    From sum x[n] exp(-2 pi i k n / N), and its inverse with 1 / N (the ONNX operator DFT).
    """
    sign = -1.0 if inverse else 1.0
    back = half and inverse
    columns = length if back or not half else length // 2 + 1
    angle = 2 * np.pi * np.outer(np.arange(known), np.arange(columns)) / length
    cosine, sine = np.cos(angle), sign * np.sin(angle)
    kept = np.arange(known) < (length // 2 + 1 if back else length)
    weight = kept.astype(np.float64)
    if back:  # the other half of the spectrum is the mirrored one
        twice = (np.arange(known) > 0) & (2 * np.arange(known) != length)
        weight *= np.where(twice, 2.0, 1.0)
    weight /= length if inverse else 1.0
    real = [np.concatenate([cosine, -sine], axis=1), np.concatenate([sine, cosine], axis=1)]
    rows = [part[:, :columns] if back else part for part in real[:parts]]
    return np.concatenate([part * weight[:, None] for part in rows])


def stft(draft: Draft, node: Node) -> None:
    """signal [B, L, 1], frame step, window, frame length -> [B, frames, bins, 2]."""
    shape = draft.shape(node.inputs[0])
    step, given = draft.scalar(node.inputs[1]), draft.constant(node.input(2))
    length = draft.scalar(node.input(3)) if node.input(3) else None
    length = len(given) if length is None and given is not None else length
    real = shape is not None and (len(shape) == 2 or shape[2] == 1)
    if shape is None or not real or step is None or length is None:
        return
    if node.input(2) and given is None:
        return
    size, dtype = int(length), draft.dtype(node.inputs[0])
    window = np.ones(size) if given is None else given.astype(np.float64).reshape(-1)
    half = bool(node.attrs.get("onesided", 1))
    filters = waves(size, 1, size, inverse=False, half=half).T * window
    if filters.size > MOST or len(window) != size:
        return
    w = Writer(draft, node)
    signal = w.add("Reshape", [node.inputs[0], w.const([shape[0], 1, shape[1]])])
    kernel = w.const(filters[:, None, :], dtype)
    y = w.add("Conv", [signal, kernel], strides=[int(step)], kernel_shape=[size])
    frames = w.add("Transpose", [y], perm=[0, 2, 1])
    count = 1 + (shape[1] - size) // int(step)
    apart = w.add("Reshape", [frames, w.const([shape[0], count, 2, -1])])
    w.add("Transpose", [apart], out=w.out, perm=[0, 1, 3, 2])
