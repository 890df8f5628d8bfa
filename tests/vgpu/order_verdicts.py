"""The verdicts of VGPU_CHECK=order on kernels that run one after the other in a new process."""

import json
import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from virtual_device import Device, build

WORDS = 256  # of the array that each kernel gets; all are zero


def verdicts(kernels, schedule="serial"):
    """Run kernels {name: (text, grid, block)}; return {name: the entry "order" of its launch in the report}."""
    environment = {**os.environ, "VGPU_CHECK": "order", "VGPU_SCHEDULE": schedule, "VGPU_MAX_INSTRUCTIONS": "1000000"}
    request = pickle.dumps((build(), kernels))
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.jsonl"
        environment["VGPU_REPORT"] = str(report)
        process = subprocess.run(
            [sys.executable, __file__], input=request, env=environment, timeout=120, check=True, capture_output=True
        )
        lines = [json.loads(line) for line in report.read_text().splitlines()]
    launches = [line["order"] for line in lines if "kernel" in line]
    assert len(launches) == len(kernels), process.stderr
    return dict(zip(kernels, launches, strict=True))


def main():
    library, kernels = pickle.load(sys.stdin.buffer)
    device = Device(library)
    for name, (text, grid, block) in kernels.items():
        code, _ = device.run(text, [np.zeros(WORDS, np.uint32)], grid, block)
        if code:
            print(f"{name}: CUDA's error {code}", file=sys.stderr)


if __name__ == "__main__":
    main()
