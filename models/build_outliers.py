"""A variant of the tiny RF-DETR with outlier channels: the same function in float, hard for INT8.

    python models/build_outliers.py [OUT.onnx] [--strength 40] [--seed 0]

Trained vision transformers have a few channels that are far larger than the others; the tiny model
has none. Here some are made by factors that cancel: what one constant multiplies, the next divides.

- LayerNorm: weight and bias of a channel times f; that row of every linear layer after it over f.
- Values: a column of the value projection times f; that row of the output projection over f.
- Keys: a column of the key projection times f; that column of the query projection over f.
- LayerScale: a column of the projection before it times f; the scale of that channel over f.

Factors are log-uniform between a quarter of the strength and the strength, channels are drawn, both
from a frozen random stream: the same bytes every time. Printed: how many channels were changed, the
largest difference to the original in ONNX Runtime, and how much wider the ranges have become.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

Array = NDArray[Any]

HERE = Path(__file__).resolve().parent
TINY = HERE / "rf_detr_tiny.onnx"
BUILT = HERE / "built" / "rf_detr_tiny_outliers.onnx"
MEAN = np.array((0.485, 0.456, 0.406), np.float32)
STD = np.array((0.229, 0.224, 0.225), np.float32)
SHARE = 0.04
"""Of the channels of a layer, how many become outliers (at least two)."""


@dataclass
class Weights:
    """The constants of the graph by name, as arrays that are changed in place."""

    arrays: dict[str, Array]
    random: np.random.RandomState
    strength: float
    changed: int = 0

    def draw(self, channels: int) -> tuple[Array, Array]:
        """Some channels and a factor for each, float32."""
        count = max(2, round(SHARE * channels))
        chosen = self.random.choice(channels, count, replace=False)
        exponent = self.random.uniform(0.0, 1.0, count)
        low, high = np.log(self.strength / 4), np.log(self.strength)
        self.changed += count
        return chosen, np.exp(low + (high - low) * exponent).astype(np.float32)

    def multiply(self, names: Sequence[str], chosen: Array, factors: Array) -> None:
        """Output channels: the last axis of a vector or of a [in, out] matrix."""
        for name in names:
            self.arrays[name][..., chosen] *= factors

    def divide_rows(self, name: str, chosen: Array, factors: Array) -> None:
        """Input channels of a [in, out] matrix."""
        self.arrays[name][chosen] /= factors[:, None]


class Layers:
    """Linear layers and norms of the graph, found by structure."""

    def __init__(self, graph: onnx.GraphProto, constants: Mapping[str, Array]) -> None:
        self.constants = constants
        self.nodes = {node.name: node for node in graph.node}
        self.users: dict[str, list[onnx.NodeProto]] = {}
        for node in graph.node:
            for name in node.input:
                self.users.setdefault(name, []).append(node)

    def constant(self, node: onnx.NodeProto) -> str:
        """The name of the node's one constant operand."""
        (name,) = (str(name) for name in node.input if name in self.constants)
        return name

    def linear(self, name: str) -> tuple[str, str]:
        """Weight and bias of the layer whose nodes are NAME/MatMul and NAME/Add."""
        matmul, add = self.nodes[f"{name}/MatMul"], self.nodes[f"{name}/Add"]
        return self.constant(matmul), self.constant(add)

    def before_linears(self) -> list[tuple[onnx.NodeProto, list[str]]]:
        """Each LayerNorm that only linear layers read, with their weights. Shared ones left out."""
        found = []
        for node in self.nodes.values():
            users = self.users.get(node.output[0], [])
            if node.op_type != "LayerNormalization" or not users:
                continue
            readers = [user.input[1] for user in users if user.op_type == "MatMul"]
            own = [name for name in (*node.input[1:3], *readers) if len(self.users[name]) == 1]
            if len(readers) == len(users) and len(own) == len(readers) + 2:
                found.append((node, readers))
        return found

    def blocks(self) -> list[str]:
        """Names of the transformer blocks of the backbone."""
        end = "/attention/attention/value/MatMul"
        return [name.removesuffix(end) for name in self.nodes if name.endswith(end)]


def add_outliers(model: onnx.ModelProto, *, strength: float, seed: int) -> tuple[Any, int]:
    """A model that computes the same, and the number of channels that were scaled."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    arrays = {
        tensor.name: onnx.numpy_helper.to_array(tensor).copy()
        for tensor in made.graph.initializer
        if tensor.data_type == onnx.TensorProto.FLOAT
    }
    weights = Weights(arrays, np.random.RandomState(seed), strength)
    layers = Layers(made.graph, arrays)
    for norm, readers in layers.before_linears():
        chosen, factors = weights.draw(len(arrays[norm.input[1]]))
        weights.multiply(norm.input[1:3], chosen, factors)
        for reader in readers:
            weights.divide_rows(reader, chosen, factors)
    for block in layers.blocks():
        scale_attention(layers, weights, f"{block}/attention")
        scale_residual(layers, weights, f"{block}/attention/output/dense", f"{block}/layer_scale1")
        scale_residual(layers, weights, f"{block}/mlp/fc2", f"{block}/layer_scale2")
    for tensor in made.graph.initializer:
        if tensor.name in arrays:
            tensor.CopyFrom(onnx.numpy_helper.from_array(arrays[tensor.name], tensor.name))
    return made, weights.changed


def scale_attention(layers: Layers, weights: Weights, name: str) -> None:
    value, dense = layers.linear(f"{name}/attention/value"), layers.linear(f"{name}/output/dense")
    chosen, factors = weights.draw(weights.arrays[value[1]].size)
    weights.multiply(value, chosen, factors)
    weights.divide_rows(dense[0], chosen, factors)
    key, query = layers.linear(f"{name}/attention/key"), layers.linear(f"{name}/attention/query")
    chosen, factors = weights.draw(weights.arrays[key[1]].size)
    weights.multiply(key, chosen, factors)
    weights.multiply(query, chosen, 1 / factors)


def scale_residual(layers: Layers, weights: Weights, linear: str, scale: str) -> None:
    projection = layers.linear(linear)
    chosen, factors = weights.draw(weights.arrays[projection[1]].size)
    weights.multiply(projection, chosen, factors)
    weights.multiply([layers.constant(layers.nodes[f"{scale}/Mul"])], chosen, 1 / factors)


def run(model: onnx.ModelProto, images: Array, extra: Sequence[str] = ()) -> dict[str, Array]:
    """Outputs of the model, and of the values named, over uint8 images [N, H, W, 3]."""
    import onnxruntime

    probed = onnx.ModelProto()
    probed.CopyFrom(model)
    probed.graph.output.extend(onnx.ValueInfoProto(name=name) for name in extra)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        probed.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    batch = ((images.astype(np.float32) / 255 - MEAN) / STD).transpose(0, 3, 1, 2)
    names = [output.name for output in session.get_outputs()]
    rows = [session.run(names, {"input": image[None]}) for image in batch]
    return {name: np.concatenate([row[i] for row in rows]) for i, name in enumerate(names)}


def report(original: onnx.ModelProto, made: onnx.ModelProto) -> None:
    """Print the largest difference of each output, and how the ranges grew."""
    images = np.load(HERE / "calib_images.npz", allow_pickle=False)["images"][:8]
    arrays = {tensor.name: np.empty(0) for tensor in made.graph.initializer}
    norms = [norm.output[0] for norm, _ in Layers(made.graph, arrays).before_linears()]
    before, after = run(original, images, norms), run(made, images, norms)
    for output in original.graph.output:
        difference = np.abs(before[output.name] - after[output.name]).max()
        print(f"{output.name}: largest difference in float {difference:.1e}")
    growth = [np.ptp(after[name]) / np.ptp(before[name]) for name in norms]
    print(f"ranges after LayerNorm: {np.median(growth):.1f} times as wide (median)")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("out", type=Path, nargs="?", default=BUILT)
    parser.add_argument("--strength", type=float, default=40.0, help="largest factor (40)")
    parser.add_argument("--seed", type=int, default=0)
    wanted = parser.parse_args()
    original = onnx.load(TINY)
    made, changed = add_outliers(original, strength=wanted.strength, seed=wanted.seed)
    wanted.out.parent.mkdir(parents=True, exist_ok=True)
    wanted.out.write_bytes(made.SerializeToString(deterministic=True))
    low, high = wanted.strength / 4, wanted.strength
    print(f"{wanted.out}: {changed} channels scaled by factors from {low:g} to {high:g}")
    report(original, made)


if __name__ == "__main__":
    main()
