"""Published times of networks that bench.networks builds, in ms, with where they are from."""

from __future__ import annotations

from dataclasses import dataclass

from splitter.plan import Device


@dataclass(frozen=True, slots=True)
class Published:
    """A time in ms. `tail`: the series it is from, whose decoding on the CPU is fitted too."""

    target: str
    network: str
    ms: float
    source: str
    tail: str = ""


PAPER = "arXiv 2509.14388, table III"
BOARD = "kylefoxaustin, SDK 3.1.3"

IMX95 = (
    Published("imx95", "MobileNetV1", 1.0, PAPER),
    Published("imx95", "MobileNetV2", 0.9, PAPER),
    Published("imx95", "MobileNetV3 minimalistic", 0.8, PAPER),
    Published("imx95", "EfficientNet-Lite0", 1.3, PAPER),
    Published("imx95", "ResNet50 v1", 7.0, PAPER),
    Published("imx95", "YOLOv8n-pose", 13.1, "IMX95_benchmark, NPU part, SDK 3.2.2"),
    Published("imx95", "YOLOv8n", 24.6, PAPER, "paper"),
    Published("imx95", "YOLOv8s", 42.5, PAPER, "paper"),
    Published("imx95", "YOLOv8n", 32.1, BOARD, "board"),
    Published("imx95", "YOLOv8s", 52.3, BOARD, "board"),
    Published("imx95", "YOLOv8m", 101.5, BOARD, "board"),
    Published("imx95", "YOLOv8l", 182.5, BOARD, "board"),
    Published("imx95", "YOLOv8x", 305.8, BOARD, "board"),
)

ZOO = "airockchip/rknn_model_zoo v2.3.2 README, INT8, batch 1, one core"
FRAMES = {
    # network: frames a second on RK3566, RK3588 (one core), RK3576 (one core)
    "MobileNetV2": (180.7, 450.7, 467.0),
    "ResNet50 v1": (37.9, 110.1, 99.0),
    "YOLOv5n": (39.7, 82.5, 112.7),
    "YOLOv5s": (19.3, 48.4, 57.5),
    "YOLOv5m": (8.6, 20.9, 23.7),
    "YOLOv8n": (34.0, 73.5, 90.2),
    "YOLOv8s": (15.1, 38.0, 40.8),
    "YOLOv8m": (6.5, 16.2, 16.7),
    "YOLOv8n-pose": (22.6, 55.9, 66.8),
}
"""ResNet50 there is v2, whose convolutions are those of v1."""

ROCKCHIP = tuple(
    Published(target, network, round(1000 / frames[i], 2), ZOO)
    for i, target in enumerate(("rk3566", "rk3588", "rk3576"))
    for network, frames in FRAMES.items()
)

PUBLISHED = (*IMX95, *ROCKCHIP)


@dataclass(frozen=True, slots=True)
class Check:
    """A published time that nothing is fitted to."""

    target: str
    device: Device
    network: str
    ms: float
    source: str


CHECKS = (
    Check("imx93", "npu", "MobileNetV1", 3.92, "measured on the board; figures are fitted to Vela"),
    Check("imx95", "cpu", "MobileNetV2", 37.2, "eIQ 1.16, threads not said"),
)
