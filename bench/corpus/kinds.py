"""More inputs of the kinds that the trained models take.

Text lines are drawn, tones are made, speech and photographs are recorded ones in other mixtures,
bytes are files of the Python installation. Decides nothing about what the models answer.
"""

from __future__ import annotations

import sysconfig
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from bench.corpus.cases import Arrays, Case, Record, records
from bench.corpus.samples import variants
from splitter.graph import Array
from splitter.reference import OnnxRunner

Maker = Callable[[Case, Sequence[Record], int], list[Arrays]]

WORDS = (
    "Invoice total amount due 2024 Hello World split the model for NPU street station open closed "
    "Temperature 23.5 C speed 80 km/h Berlin Paris London order number serial date signature "
    "quantized integer boundary tensor calibration sample gate fresh coffee daily from 7 to 18"
).split()


def more(case: Case, stored: Sequence[Record], count: int) -> list[Arrays]:
    """Inputs that are not among the recorded ones; the same ones every time."""
    for part, maker in MAKERS.items():
        if part in case.name:
            return maker(case, stored, count)
    return variants(stored, count)


def text_lines(case: Case, stored: Sequence[Record], count: int) -> list[Arrays]:
    """Drawn lines of text, BGR in -1..1; for the orientation classifier every second one upside
    down."""
    random = np.random.default_rng(2)
    name, recorded = next(iter(stored[0].inputs.items()))
    height, width = recorded.shape[-2:]
    made = []
    for index in range(count):
        image = _line(random, width, height)
        if "cls" in case.name and index % 2:
            image = image.rotate(180)
        pixels = np.asarray(image, np.float32)[..., ::-1].transpose(2, 0, 1)
        made.append({name: ((pixels / 255 - 0.5) / 0.5)[None].astype(np.float32)})
    return made


def _line(random: np.random.Generator, width: int, height: int) -> Image.Image:
    """One line, scaled to the height, the rest of the width gray as the preprocessing pads it."""
    text = " ".join(random.choice(WORDS, random.integers(1, 4)))
    font = ImageFont.load_default(int(random.integers(22, 40)))
    left, top, right, bottom = font.getbbox(text)
    paper = tuple(int(c) for c in random.integers(150, 256, 3))
    ink = tuple(int(c) for c in random.integers(0, 90, 3))
    size = (int(right - left) + 12, int(bottom - top) + 10)
    image = Image.new("RGB", size, paper)
    ImageDraw.Draw(image).text((6 - left, 5 - top), text, fill=ink, font=font)
    scaled = image.resize((max(8, min(width, size[0] * height // size[1])), height))
    grain = random.normal(0, random.uniform(0, 8), (height, scaled.width, 3))
    noisy = np.clip(np.asarray(scaled) + grain, 0, 255).astype(np.uint8)
    canvas = np.full((height, width, 3), 128, np.uint8)
    canvas[:, : scaled.width] = noisy
    return Image.fromarray(canvas)


def speech(case: Case) -> list[Array]:
    """Recorded speech at 16 kHz, -1..1, out of the folder's own records."""
    clips = []
    for name, value, scale in (
        ("trained-swift_f0", "audio", 1.0),
        ("trained-oww-melspectrogram", "input", 32768.0),
    ):
        source = Case(name, "trained", case.path.with_name(f"{name}.onnx"))
        clips += [record.inputs[value].reshape(-1) / scale for record in records(source)]
    return clips


def clip(case: Case, random: np.random.Generator, length: int) -> Array:
    """Speech of any length: clips end to end with pauses, some backwards, in some noise; a tone
    where none is recorded."""
    clips = speech(case) or [tone(random, length, 16000)]
    parts: list[Array] = []
    while sum(part.size for part in parts) < length:
        voice = clips[random.integers(len(clips))]
        if random.random() < 0.3:
            voice = voice[::-1]
        parts += [voice * random.uniform(0.2, 1.2), np.zeros(random.integers(0, 6000))]
    wave = np.concatenate(parts)[:length]
    return np.asarray(wave + random.normal(0, 10 ** random.uniform(-5, -2.5), length), np.float32)


def tone(random: np.random.Generator, length: int, rate: int) -> Array:
    """A voice-like tone: harmonics over a gliding fundamental, in a little noise."""
    start = 2 ** random.uniform(np.log2(80), np.log2(700))
    pitch = start * 2 ** (np.linspace(0, random.uniform(-0.5, 0.5), length))
    phase = 2 * np.pi * np.cumsum(pitch) / rate
    wave = sum(np.sin(k * phase) / k ** random.uniform(0.7, 2) for k in range(1, 9))
    noise = random.normal(0, 10 ** random.uniform(-4, -1.5), length)
    return np.asarray(0.2 * wave * random.uniform(0.2, 1) + noise, np.float32)


def pitch_audio(case: Case, stored: Sequence[Record], count: int) -> list[Arrays]:
    random = np.random.default_rng(3)
    length = stored[0].inputs["audio"].shape[1]
    waves = [
        tone(random, length, 16000) if i % 2 else clip(case, random, length) for i in range(count)
    ]
    return [{**stored[0].inputs, "audio": wave[None]} for wave in waves]


def pitch_frames(case: Case, stored: Sequence[Record], count: int) -> list[Arrays]:
    random = np.random.default_rng(4)
    rows, length = stored[0].inputs["frames"].shape
    made = []
    for index in range(count):
        wave = tone(random, 20000, 16000) if index % 2 else clip(case, random, 20000)
        starts = random.integers(0, wave.size - length, rows)
        frames = np.stack([wave[s : s + length] for s in starts])
        frames = frames - frames.mean(1, keepdims=True)
        made.append({"frames": (frames / (frames.std(1, keepdims=True) + 1e-8)).astype(np.float32)})
    return made


def mel_audio(case: Case, stored: Sequence[Record], count: int) -> list[Arrays]:
    random = np.random.default_rng(5)
    length = stored[0].inputs["input"].shape[1]
    return [{"input": (clip(case, random, length) * 32768)[None]} for _ in range(count)]


def mel_frames(case: Case, stored: Sequence[Record], count: int) -> list[Arrays]:
    """What the mel front end beside the model makes of speech."""
    front = case.path.with_name("trained-oww-melspectrogram.onnx")
    if not front.is_file():
        return variants(stored, count)
    runner = OnnxRunner(front, threads=1)
    waves = mel_audio(case, [Record({"input": np.zeros((1, 12640))})], count)
    mels = [next(iter(runner.run(wave).values())) for wave in waves]
    return [{"input_1": (mel[0, 0] / 10 + 2)[None, :, :, None]} for mel in mels]


def notes(case: Case, stored: Sequence[Record], count: int) -> list[Arrays]:
    """Chords of decaying harmonic notes at 22.05 kHz."""
    random = np.random.default_rng(6)
    name, recorded = next(iter(stored[0].inputs.items()))
    length = recorded.size
    made = []
    for _ in range(count):
        wave = np.zeros(length)
        for _ in range(random.integers(4, 12)):
            start = int(random.integers(0, length - 4000))
            seconds = np.arange(length - start) / 22050
            pitch = 440 * 2 ** ((random.integers(40, 80) - 69) / 12)
            sound = sum(np.sin(2 * np.pi * k * pitch * seconds) / k for k in range(1, 7))
            wave[start:] += sound * np.exp(-seconds * random.uniform(1, 5)) * random.uniform(0.1, 1)
        wave = 0.8 * wave / np.abs(wave).max() + random.normal(0, 1e-3, length)
        made.append({name: wave.reshape(recorded.shape).astype(np.float32)})
    return made


def chunks(case: Case, stored: Sequence[Record], count: int) -> list[Arrays]:
    """Speech and pauses through the model chunk by chunk, with the states it gave itself."""
    random = np.random.default_rng(7)
    runner = OnnxRunner(case.path, threads=1, optimize=False)
    first = stored[0].inputs
    length = first["input"].shape[1]
    step = 512 if length == 576 else length
    states = [name for name in first if name not in ("input", "sr")]
    results = [name for name in stored[0].outputs if name != "output"]
    state = {name: np.zeros_like(first[name]) for name in states}
    made = []
    wave = clip(case, random, step * count * 2 + length)
    for index in range(count * 2):
        inputs = {"input": wave[None, index * step : index * step + length], "sr": first["sr"]}
        inputs |= state
        out = runner.run(inputs)
        state = dict(zip(states, (out[name] for name in results), strict=True))
        if index % 2:
            made.append(inputs)
    return made


def photographs(case: Case, stored: Sequence[Record], count: int) -> list[Arrays]:
    """The recorded pictures mirrored, moved, darker and lighter."""
    random = np.random.default_rng(8)
    pictures = [record.inputs["x"] for record in stored]
    return [{"x": _shot(pictures[i % len(pictures)], random)} for i in range(count)]


def _shot(picture: Array, random: np.random.Generator) -> Array:
    moved = np.roll(picture, random.integers(-20, 21, 2), (2, 3))
    if random.random() < 0.5:
        moved = moved[..., ::-1]
    light = (moved + 1) * random.uniform(0.6, 1.1) - 1
    return np.ascontiguousarray(np.clip(light, -1, 1), np.float32)


def crops(case: Case, stored: Sequence[Record], count: int) -> list[Arrays]:
    """24 x 24 pieces of the photographs recorded for the first stage, where it sees faces and
    elsewhere."""
    first = Case("trained-mtcnn-pnet", "trained", case.path.with_name("trained-mtcnn-pnet.onnx"))
    sources = records(first)
    if not sources:
        return variants(stored, count)
    random = np.random.default_rng(9)
    made = []
    for index in range(count):
        source = sources[index % len(sources)]
        seen = np.argwhere(source.outputs["prob"][0, 1] > 0.7) * 2
        y, x = seen[random.integers(len(seen))] if index % 2 else random.integers(0, 130, 2)
        size = int(random.integers(12, 30))
        picture = source.inputs["x"][0].transpose(1, 2, 0)[y : y + size, x : x + size]
        image = Image.fromarray(np.uint8(np.clip(picture * 128 + 127.5, 0, 255))).resize((24, 24))
        pixels = (np.asarray(image, np.float32) - 127.5) / 128
        made.append({"x": np.ascontiguousarray(pixels.transpose(2, 0, 1)[None], np.float32)})
    return made


def files(case: Case, stored: Sequence[Record], count: int) -> list[Arrays]:
    """The first and last 1024 bytes of files of the Python installation, of every kind there."""
    root = Path(sysconfig.get_paths()["stdlib"])
    by_kind: dict[str, list[Path]] = {}
    for path in sorted(root.rglob("*")):
        if path.is_file() and path.stat().st_size > 64 and len(by_kind.get(path.suffix, ())) < 12:
            by_kind.setdefault(path.suffix, []).append(path)
    kinds = sorted(by_kind)
    made = []
    for index in range(count):
        group = by_kind[kinds[index % len(kinds)]]
        data = group[index // len(kinds) % len(group)].read_bytes().strip()
        head, tail = np.full(1024, 256), np.full(1024, 256)
        head[: len(data[:1024])] = list(data[:1024])
        tail[1024 - len(data[-1024:]) :] = list(data[-1024:])
        made.append({"bytes": np.concatenate([head, tail]).astype(np.int32)[None]})
    return made


def voices(case: Case, stored: Sequence[Record], count: int) -> list[Arrays]:
    """Mel frames of the recorded speakers, moved in time, louder and quieter."""
    random = np.random.default_rng(10)
    made = []
    for index in range(count):
        mels = stored[index % len(stored)].inputs["mels"]
        moved = np.roll(mels, int(random.integers(1, 160)), 1)
        made.append({"mels": (moved * random.uniform(0.5, 1.5)).astype(np.float32)})
    return made


MAKERS: dict[str, Maker] = {
    "ppocr": text_lines, "magika": files, "mtcnn-pnet": photographs, "mtcnn-rnet": crops,
    "silero": chunks, "crepe": pitch_frames, "swift_f0": pitch_audio, "basic_pitch": notes,
    "oww-mel": mel_audio, "oww-embedding": mel_frames, "resemblyzer": voices,
}  # fmt: skip
