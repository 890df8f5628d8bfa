"""tfdet status on generated records: seconds and memory (promise: 1,000,000 in <= 10 s and <= 1 GiB).

Usage: python benchmarks/status.py [RECORDS ...]     default: 100000 1000000
Baseline, measured in the same run: reading the same lines with json.loads alone.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tfdet.base.paths import find_project
from tfdet.matrix.load import load_matrix
from tfdet.store.cases import current_hashes
from tfdet_common import journal
from tfdet_probe.core import record as probe_record

CPU = {"kind": "cpu", "model": "cpu"}
REPORT = {"reference": "a" * 64, "digests": ["a" * 64] * 10, "differed": [], "seconds": [0.25] * 10, "ulp": 0,
          "absolute": 0.0, "devices": ["CPU:0"]}  # fmt: skip
STACK = dict.fromkeys(["keras", "cuda", "cudnn", "driver", "image", "image_digest", "gpu", "compute_capability",
                       "gpu_uuid_hash"])  # fmt: skip
STACK |= {"python": "3.7.16", "numpy": "1.18.5", "engine": "venv", "os": "Linux", "cpu": "x",
          "cores": 2}  # fmt: skip
PROVENANCE = {"framework": {"name": "tensorflow", "version": "2.0.0"}, "stack": STACK, "machine": "0" * 12,
              "threads": 0, "determinism_environment": {}, "repeats": 10, "relaunches": 1,
              "started": "2026-01-01T00:00:00Z", "duration_seconds": 1.5}  # fmt: skip


def generate(root: Path, count: int) -> int:
    """A project at `root` with `count` records over all its environments; the bytes written."""
    here = find_project()
    data = [f"matrix/{name}" for name in ("frameworks", "devices", "environments", "sources", "solutions")]
    for name in (*data, "tests"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).symlink_to(here.root / name)
    matrix = load_matrix(here.matrix)
    hashes = current_hashes(here)
    environments = list(matrix.environments)
    places = [(s, k) for s in hashes if s in matrix.sources for k in ("none", "TDO", "TEOD")]
    folder = root / "matrix" / "evidence" / "cpu"
    folder.mkdir(parents=True)
    share = -(-count // len(environments))
    written = 0
    for environment in environments:
        amount = min(share, count)
        count -= amount
        with (folder / f"{environment}.jsonl").open("w") as out:
            for number in range(amount):
                source, solution = places[number % len(places)]
                key = {"environment": environment, "device": CPU, "source": source, "solution": solution,
                       "case": f"case-{number // len(places)}-eager", "mode": "eager",
                       "case_hash": min(hashes[source])}  # fmt: skip
                written += out.write(journal.dump(probe_record.build(key, [REPORT], PROVENANCE)) + "\n")
    return written


def measure(command: list[str], root: Path) -> tuple[float, float, float]:
    """(seconds, CPU seconds, GiB of peak resident memory) of a command in the project `root`."""
    start = time.perf_counter()
    with subprocess.Popen(command, cwd=root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        _, status, usage = _wait(process.pid)
        process.returncode = status
    if status not in (0, 256):  # made-up records may well contradict a claim
        sys.exit(f"{command} ended with {status}")
    return time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 2**20


def _wait(pid: int) -> tuple[int, int, resource.struct_rusage]:
    import os

    return os.wait4(pid, 0)


def baseline(root: Path) -> float:
    start = time.process_time()
    for path in sorted(root.glob("matrix/evidence/cpu/*.jsonl")):
        with path.open("rb") as source:
            for line in source:
                json.loads(line)
    return time.process_time() - start


def main() -> None:
    for count in [int(text) for text in sys.argv[1:]] or [100_000, 1_000_000]:
        with tempfile.TemporaryDirectory() as folder:
            size = generate(Path(folder), count)
            seconds, cpu, gib = measure([sys.executable, "-m", "tfdet", "status"], Path(folder))
            reading = baseline(Path(folder))
        print(f"{count:>9,} records ({size / 2**20:,.0f} MiB): {seconds:.2f} s ({cpu:.2f} s of CPU), {gib:.2f} GiB; "
              f"json.loads alone {reading:.2f} s of CPU (ratio {cpu / reading:.2f})")  # fmt: skip


if __name__ == "__main__":
    main()
