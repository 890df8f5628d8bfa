"""What recording every op costs: process CPU time of a traced step over that of the same step untraced.

    python benchmarks/trace_overhead.py PYTHON

PYTHON: an interpreter with TensorFlow 2. Two models, steps of about 5 ms and 190 ms of wall time
on two cores; each is timed in turn untraced and traced, three times, and the medians are compared. Promised:
at most 2.5 times and 1.3 times, at most 150 bytes a record, weights bit-identical. Exit code 1 if broken.
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
# name: (width, batch, layers, steps, the largest ratio promised)
MODELS = {"5 ms": (64, 64, 8, 200, 2.5), "190 ms": (1024, 256, 8, 15, 1.3)}
ROUNDS = 3
PROGRAM = """
import json, sys, time
import numpy as np
import tensorflow as tf
width, batch, layers, steps = map(int, sys.argv[1:])
random = np.random.RandomState(0)
weights = [tf.Variable((random.rand(width, width).astype("float32") - 0.5) / width ** 0.5) for _ in range(layers)]
optimizer = tf.keras.optimizers.Adam(1e-3)
x = tf.constant(random.rand(batch, width).astype("float32"))

@tf.function
def step(x):
    with tf.GradientTape() as tape:
        h = x
        for w in weights:
            h = tf.nn.relu(tf.matmul(h, w)) + 0.1 * tf.tanh(h)
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


def main() -> int:
    broken = False
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "program.py"
        program.write_text(PROGRAM)
        for name, (*sizes, steps, promised) in MODELS.items():
            figures = measure(sys.argv[1], program, [*sizes, steps], Path(folder) / name.replace(" ", ""))
            print(f"step of {name}: {json.dumps(figures)}")
            broken |= figures["ratio"] > promised or figures["bytes_a_record"] > 150 or not figures["weights_identical"]
    print("a promise is broken" if broken else "as promised")
    return int(broken)


def measure(python: str, program: Path, sizes: list[int], out: Path) -> dict:
    """The medians of alternating runs."""
    plain, traced, weights = [], [], set()
    for number in range(ROUNDS):
        none, ops = Path(f"{out}-none-{number}"), Path(f"{out}-ops-{number}")
        plain.append(run(python, "none", none, program, sizes))
        traced.append(run(python, "ops", ops, program, sizes))
        ends = [loaded(one) for one in (none, ops)]
        weights.update(one.end["weights"] for one in ends)
    size = (ops / "trace-0.tfdt").stat().st_size
    before, after = (statistics.median(one["cpu"] for one in runs) for runs in (plain, traced))
    return {
        "cpu_ms_untraced": round(before * 1e3, 2),
        "cpu_ms_traced": round(after * 1e3, 2),
        "ratio": round(after / before, 2),
        "wall_ms_untraced": round(statistics.median(one["wall"] for one in plain) * 1e3, 2),
        "records_a_step": round(len(ends[1].records) / ends[1].end["steps"]),
        "bytes_a_record": round(size / len(ends[1].records), 1),
        "weights_identical": len(weights) == 1 and None not in weights,
    }


def run(python: str, level: str, out: Path, program: Path, sizes: list[int]) -> dict:
    command = [python, "-m", "tfdeterminism.trace", "run", "--level", level, "--no-xla", "--out", str(out), "--"]
    variables = {**os.environ, "PYTHONPATH": str(RUNTIME), "TF_CPP_MIN_LOG_LEVEL": "3"}
    arguments = [str(size) for size in sizes]
    done = subprocess.run([*command, str(program), *arguments], env=variables, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def loaded(out: Path):
    sys.path.insert(0, str(RUNTIME))
    from tfdeterminism.trace.analyse.reader import load

    return load(str(out / "trace-0.tfdt"))


if __name__ == "__main__":
    sys.exit(main())
