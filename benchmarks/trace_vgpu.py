"""Does `tfdet locate --device vgpu` name the op that would differ on a GPU, on a machine without one?

    python benchmarks/trace_vgpu.py ENV [PROGRAM...]

An embedding summed by unsorted_segment_sum, crops by crop_and_resize, and a small CNN with such, whose convolutions
are computed by CPU fallbacks. Promised: the op and its line, no other, the kernel with its atomics, and the fallbacks
by name. Exit code 1 if not. A GPU environment is made on first use: minutes, and 3 GB.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "trace_vgpu_programs"
# program: (op, what a word of its kernel is, which calls CPU fallbacks must compute)
EXPECTED = {"embedding": ("UnsortedSegmentSum", "UnsortedSegment", ()),
            "crop": ("CropAndResizeGradImage", "CropAndResizeBackprop", ()),
            "crop_cnn": ("CropAndResizeGradImage", "CropAndResizeBackprop", ("cudnnConvolution",))}  # fmt: skip


def main() -> int:
    environment, *only = sys.argv[1:]
    wrong = 0
    for name in only or EXPECTED:
        path, started = FOLDER / f"{name}.py", time.perf_counter()
        command = ["locate", environment, "--device", "vgpu", "--cpu-fallbacks", "--json", "--", str(path)]
        ran = subprocess.run([sys.executable, "-m", "tfdet", *command], stdout=subprocess.PIPE, text=True)
        said = faults(path, json.loads(ran.stdout)) if ran.returncode == 1 else [f"exit code {ran.returncode}"]
        wrong += bool(said)
        print(f"{environment} {name}: {'; '.join(said) or 'right'} ({time.perf_counter() - started:.0f} s)", flush=True)
    return int(bool(wrong))


def faults(path: Path, found: dict) -> list[str]:
    op, kernel, closed = EXPECTED[path.stem]
    line = next(n for n, text in enumerate(path.read_text("utf-8").splitlines(), 1) if text.endswith("# <- culprit"))
    said = " ".join(found["findings"])
    wrong = [f"{one['op_type']} at line {one['line']}: {one['class']}" for one in found["culprits"]
             if one["line"] != line or one["class"] != "kernel race"]  # fmt: skip
    wrong += [] if found["culprits"] and found["culprits"][0]["op_type"] == op else [f"{op} is not the first"]
    return wrong + [f"nothing said of {word}" for word in (kernel, "atomics at PTX line", *closed) if word not in said]


if __name__ == "__main__":
    sys.exit(main())
