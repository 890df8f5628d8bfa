"""Accuracy of `tfdet locate --device vgpu` in naming the op that would differ on a GPU, on a machine without one.

    python benchmarks/trace_vgpu.py ENV [PROGRAM...]

The programs: an embedding summed by unsorted_segment_sum, crops by crop_and_resize, and a small CNN with such crops,
whose convolutions are computed by CPU fallbacks. Promised: only that op and its line are named, with the kernel, its
atomics, and the fallbacks. Exit code 1 otherwise. The GPU environment is created at first use: minutes, and 3 GB.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "trace_vgpu_programs"
# program: (op, a part of its kernel's name, calls that CPU fallbacks must compute)
EXPECTED = {"embedding": ("UnsortedSegmentSum", "UnsortedSegment", ()),
            "crop": ("CropAndResizeGradImage", "CropAndResizeBackprop", ()),
            "crop_cnn": ("CropAndResizeGradImage", "CropAndResizeBackprop", ("cudnnConvolution",))}  # fmt: skip


def main() -> int:
    environment, *names = sys.argv[1:]
    failed = 0
    for name in names or EXPECTED:
        path, start = FOLDER / f"{name}.py", time.perf_counter()
        command = ["locate", environment, "--device", "vgpu", "--cpu-fallbacks", "--json", "--", str(path)]
        process = subprocess.run([sys.executable, "-m", "tfdet", *command], stdout=subprocess.PIPE, text=True)
        program_faults = (
            faults(path, json.loads(process.stdout)) if process.returncode == 1 else [f"exit code {process.returncode}"]
        )
        failed += bool(program_faults)
        print(
            f"{environment} {name}: {'; '.join(program_faults) or 'right'} ({time.perf_counter() - start:.0f} s)",
            flush=True,
        )
    return int(bool(failed))


def faults(path: Path, result: dict) -> list[str]:
    op, kernel, fallbacks = EXPECTED[path.stem]
    line = next(
        number
        for number, line_text in enumerate(path.read_text("utf-8").splitlines(), 1)
        if line_text.endswith("# <- culprit")
    )
    findings = " ".join(result["findings"])
    messages = [f"{culprit['op_type']} at line {culprit['line']}: {culprit['class']}" for culprit in result["culprits"]
             if culprit["line"] != line or culprit["class"] != "kernel race"]  # fmt: skip
    messages += [] if result["culprits"] and result["culprits"][0]["op_type"] == op else [f"{op} is not the first"]
    expected = (kernel, "atomics at PTX line", *fallbacks)
    return messages + [f"nothing said of {text}" for text in expected if text not in findings]


if __name__ == "__main__":
    sys.exit(main())
