"""Overhead of recording every op: process CPU time of a traced step relative to that of the same step untraced.

    python benchmarks/trace_overhead.py PYTHON [MODEL...]

PYTHON: an interpreter with TensorFlow 2, or with PyTorch for the models whose names begin with "torch". The untraced
steps of two models take about 5 ms and 190 ms of process CPU time; each is timed alternately untraced and traced, three
times, and the medians are compared. Promised: at most 2.0 times and 1.3 times, at most 150 bytes per record,
bit-identical weights. Exit code 1 otherwise. Also measured, without a promise: residual blocks of 48 convolutions, and
a transformer of six layers. The models of PyTorch are measured only if they are named: "torch 20 ms" has eight dense
layers with Adam, and a step of about 20 ms in one thread; "torch" is the same with a smaller batch, whose step takes 11
to 20 ms by machine (at most 2.0 times for both; the second does not reach it); "torch conv" has eight convolutions with
batch normalization, without a promise.

The sizes were chosen by measuring the untraced step of TensorFlow 2.21 on two cores: the equal width and batch of the
first model were raised until it took 5 ms of CPU time (176: 5.2 ms; 192: 6.6 ms); the second took 179 ms. The batch of
"torch 20 ms" was raised from that of "torch" until PyTorch 2.13 took 20 ms (256: 15.6 ms). CPU time is compared because
wall time depends on other load. Both times of the untraced step are printed, as a model's name is only right if they
are.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

RUNTIME = Path(__file__).resolve().parent.parent / "runtime"
# name: (kind, width, batch, layers, steps, the largest ratio promised)
MODELS = {"5 ms": ("dense", 176, 176, 8, 200, 2.0), "190 ms": ("dense", 1024, 256, 8, 15, 1.3),
          "resnet": ("resnet", 32, 16, 16, 5, None), "transformer": ("transformer", 128, 8, 6, 10, None)}  # fmt: skip
TORCH_MODELS = {"torch 20 ms": ("torch", 256, 352, 8, 40, 2.0), "torch": ("torch", 256, 256, 8, 40, 2.0),
                "torch conv": ("conv", 32, 16, 8, 20, None)}  # fmt: skip
ROUNDS = 3
PROGRAM = """
import json, sys, time
import numpy as np
import tensorflow as tf
kind, (width, batch, layers, steps) = sys.argv[1], map(int, sys.argv[2:])
random = np.random.RandomState(0)

def made(*shape):
    return tf.Variable((random.rand(*shape).astype("float32") - 0.5) / float(np.prod(shape[:-1])) ** 0.5)

def dense(h):
    for w in weights:
        h = tf.nn.relu(tf.matmul(h, w)) + 0.1 * tf.tanh(h)
    return h

def normal(h):
    mean, variance = tf.nn.moments(h, [-1], keepdims=True)
    return (h - mean) * tf.math.rsqrt(variance + 1e-5)

def resnet(h):
    for first, second, third in zip(weights[::3], weights[1::3], weights[2::3]):
        inner = tf.nn.relu(normal(tf.nn.conv2d(h, first, 1, "SAME")))
        inner = tf.nn.relu(normal(tf.nn.conv2d(inner, second, 1, "SAME")))
        h = tf.nn.relu(h + normal(tf.nn.conv2d(inner, third, 1, "SAME")))
    return h

def transformer(h):
    for w in zip(*[iter(weights)] * 6):
        query, key, value = (tf.reshape(tf.matmul(normal(h), one), [batch, 32, 4, width // 4]) for one in w[:3])
        scores = tf.nn.softmax(tf.einsum("bqhd,bkhd->bhqk", query, key) / (width // 4) ** 0.5)
        h += tf.matmul(tf.reshape(tf.einsum("bhqk,bkhd->bqhd", scores, value), [batch, 32, width]), w[3])
        h += tf.matmul(tf.nn.relu(tf.matmul(normal(h), w[4])), w[5])
    return h

shapes = {"dense": [(width, width)],
          "resnet": [(1, 1, 4 * width, width), (3, 3, width, width), (1, 1, width, 4 * width)],
          "transformer": [(width, width)] * 4 + [(width, 4 * width), (4 * width, width)]}[kind]
weights = [made(*shape) for _ in range(layers) for shape in shapes]
optimizer = tf.keras.optimizers.Adam(1e-3)
inside = {"dense": [width], "resnet": [14, 14, 4 * width], "transformer": [32, width]}[kind]
x = tf.constant(random.rand(batch, *inside).astype("float32"))

@tf.function
def step(x):
    with tf.GradientTape() as tape:
        h = globals()[kind](x)
        loss = tf.reduce_mean(h * h)
    optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
    return loss

step(x), step(x)
cpu, wall = time.process_time(), time.time()
for _ in range(steps):
    loss = step(x)
float(loss)
print(json.dumps({"cpu": (time.process_time() - cpu) / steps, "wall": (time.time() - wall) / steps}))
"""

TORCH_PROGRAM = """
import json, sys, time
import torch
kind, (width, batch, layers, steps) = sys.argv[1], map(int, sys.argv[2:])
torch.manual_seed(0)
torch.set_num_threads(1)  # those that wait for each other spin, and that is no time of the step's

class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(width, width)

    def forward(self, h):
        return torch.relu(self.inner(h)) + 0.1 * torch.tanh(h)

def convolution():
    return (torch.nn.Conv2d(width, width, 3, padding=1), torch.nn.BatchNorm2d(width), torch.nn.ReLU())

made = [Block() for _ in range(layers)] if kind == "torch" else [part for _ in range(layers) for part in convolution()]
model = torch.nn.Sequential(*made)
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
x = torch.rand(batch, width) if kind == "torch" else torch.rand(batch, width, 14, 14)

def step():
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss

step(), step()
cpu, wall = time.process_time(), time.time()
for _ in range(steps):
    loss = step()
loss.item()
print(json.dumps({"cpu": (time.process_time() - cpu) / steps, "wall": (time.time() - wall) / steps}))
"""


def main() -> int:
    broken = False
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "program.py"
        for name in sys.argv[2:] or MODELS:
            program.write_text(PROGRAM if name in MODELS else TORCH_PROGRAM)
            *sizes, promised = {**MODELS, **TORCH_MODELS}[name]
            figures = measure(sys.argv[1], program, sizes, Path(folder) / name.replace(" ", ""))
            print(f"step of {name}: {json.dumps(figures)}")
            broken |= (
                figures["ratio"] > (promised or 99)
                or figures["bytes_a_record"] > 150
                or not figures["weights_identical"]
            )
    print("a promise is broken" if broken else "as promised")
    return int(broken)


def measure(python: str, program: Path, sizes: list[object], out: Path) -> dict:
    """Return the medians of alternating runs, and the ratios."""
    untraced, traced, weights = [], [], set()
    for number in range(ROUNDS):
        untraced_folder, traced_folder = Path(f"{out}-none-{number}"), Path(f"{out}-ops-{number}")
        untraced.append(run(python, "none", untraced_folder, program, sizes))
        traced.append(run(python, "ops", traced_folder, program, sizes))
        traces = [load_trace(folder) for folder in (untraced_folder, traced_folder)]
        weights.update(trace.end["weights"] for trace in traces)
    size = (traced_folder / "trace-0.tfdt").stat().st_size
    untraced_cpu, traced_cpu = (statistics.median(times["cpu"] for times in runs) for runs in (untraced, traced))
    pairs = zip(untraced, traced, strict=True)
    walls = (statistics.median(times["wall"] for times in runs) for runs in (untraced, traced))
    return {
        "cpu_ms_untraced": round(untraced_cpu * 1e3, 2),
        "cpu_ms_traced": round(traced_cpu * 1e3, 2),
        "ratio": round(traced_cpu / untraced_cpu, 2),
        "ratio_of_each_round": [
            round(traced_times["cpu"] / untraced_times["cpu"], 2) for untraced_times, traced_times in pairs
        ],
        **dict(zip(("wall_ms_untraced", "wall_ms_traced"), (round(wall * 1e3, 2) for wall in walls), strict=True)),
        "load": round(os.getloadavg()[0], 1),
        "records_a_step": round(len(traces[1].records) / traces[1].end["steps"]),
        "bytes_a_record": round(size / len(traces[1].records), 1),
        "weights_identical": len(weights) == 1 and None not in weights,
    }


def run(python: str, level: str, out: Path, program: Path, sizes: list[object]) -> dict:
    command = [python, "-m", "tfdeterminism.trace", "run", "--level", level, "--no-xla", "--out", str(out), "--"]
    variables = {**os.environ, "PYTHONPATH": str(RUNTIME), "TF_CPP_MIN_LOG_LEVEL": "3"}
    arguments = [str(size) for size in sizes]
    process = subprocess.run([*command, str(program), *arguments], env=variables, stdout=subprocess.PIPE, check=True)
    return json.loads(process.stdout)


def load_trace(out: Path):
    sys.path.insert(0, str(RUNTIME))
    from tfdeterminism.trace.schema.reader import load

    return load(str(out / "trace-0.tfdt"))


if __name__ == "__main__":
    sys.exit(main())
