"""Time and memory of `tfdet status` on generated records (promise: 1,000,000 in <= 10 s and <= 1 GiB).

Usage: python benchmarks/status.py [RECORDS ...]     default: 100000 1000000
Baseline, measured in the same run: reading the same lines with json.loads only.  A second run uses the cells that the
first one has cached.
"""

from __future__ import annotations

import itertools
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tfdet.base.paths import find_project
from tfdet.matrix.load import Matrix, load_matrix
from tfdet.matrix.plan import impossibility
from tfdet.matrix.ranges import leading_version
from tfdet.store.cases import Cases, current_cases
from tfdet_common import journal
from tfdet_common.machine import short_hash
from tfdet_probe.core import record as probe_record

CPU = {"kind": "cpu", "model": "cpu"}
REPORT = {"reference": "a" * 64, "digests": ["a" * 64] * 10, "differed": [], "seconds": [0.25] * 10, "ulp": 0,
          "absolute": 0.0, "devices": ["CPU:0"]}  # fmt: skip
STACK = dict.fromkeys(["keras", "cuda", "cudnn", "driver", "image", "image_digest", "gpu", "compute_capability",
                       "gpu_uuid_hash"])  # fmt: skip
STACK |= {"python": "3.7.16", "numpy": "1.18.5", "engine": "venv", "os": "Linux", "cpu": "x",
          "cores": 2}  # fmt: skip
PROVENANCE = {"stack": STACK, "repeats": 10, "relaunches": 1, "started": "2026-02-01T00:00:00Z",
              "duration_seconds": 1.5}  # fmt: skip
MAX_CELLS = 3_000  # of an environment; further records are from additional machines


def generate(root: Path, count: int, names: Sequence[str] = ()) -> int:
    """Create a project at `root` with `count` records over all or the named environments; return the bytes written."""
    source_project = find_project()
    data = [f"matrix/{name}" for name in ("frameworks", "devices", "environments", "sources", "solutions", "ops")]
    for name in (*data, "tests", "docker"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).symlink_to(source_project.root / name)
    matrix, cases = load_matrix(source_project.matrix), current_cases(source_project)
    selected = [
        name for name in names or matrix.environments if next(records(matrix, cases, name, 1), None)
    ]  # an environment for another device has no cell on a CPU
    folder = root / "matrix" / "evidence" / "cpu"
    folder.mkdir(parents=True)
    share = -(-count // len(selected))
    written = 0
    for environment in selected:
        record_count = min(share, count)
        count -= record_count
        with (folder / f"{environment}.jsonl").open("w") as out:
            for record in records(matrix, cases, environment, record_count):
                written += out.write(journal.dump(record) + "\n")
    return written


def records(matrix: Matrix, cases: Cases, key: str, count: int) -> Iterator[dict[str, Any]]:
    """Yield records of existing cases, in the order of a store."""
    environment = matrix.environments[key]
    own_frameworks = ("", environment.framework)
    framework = {"name": environment.framework, "version": leading_version(environment.framework_version) or "2.0"}
    solutions = {
        name: solution.apply
        for name, solution in matrix.solutions.items()
        if solution.apply and solution.framework in own_frameworks
    }
    sources = {name: source for name, source in matrix.sources.items() if source.framework in own_frameworks}
    keys = [(source, case, mode, code) for (source, code), cases_of_hash in cases.by_hash.items() if source in sources
            for case, mode in cases_of_hash or ()]  # fmt: skip
    current: dict[tuple[str, str], tuple[str, str]] = {}
    for source, case, mode, code in keys:
        current.setdefault((source, case), (mode, code))
    cells = [
        (*place, solution)
        for place in sorted(current)
        for solution in sorted(solutions)
        if not impossibility(sources[place[0]], environment, "cpu", solution, matrix.solutions[solution])
    ][:MAX_CELLS]
    if not cells:
        return
    machines = sorted(short_hash(str(number)) for number in range(-(-count // len(cells))))
    for number, ((source, case, solution), machine) in enumerate(itertools.product(cells, machines)):
        if number == count:
            return
        mode, code = current[source, case]
        apply = solutions[solution]
        identity = {"environment": key, "device": CPU, "source": source, "solution": solution, "case": case,
                    "mode": mode,
                 "case_hash": code}  # fmt: skip
        provenance = {"framework": framework, "machine": machine, "threads": apply.threads or 0,
                "determinism_environment": dict(apply.env)}  # fmt: skip
        yield probe_record.build_record(identity, [REPORT], {**PROVENANCE, **provenance})


def measure(command: list[str], root: Path, cache: Path) -> tuple[float, float, float]:
    """Run a command in the project `root`; return (seconds, CPU seconds, GiB of peak resident memory).

    cache: the folder for what the command keeps for later runs.
    """
    start = time.perf_counter()
    environ = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    with subprocess.Popen(
        command, cwd=root, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        _, status, usage = _wait(process.pid)
        process.returncode = status
    if status not in (0, 256):  # generated records may contradict a claim
        sys.exit(f"{command} ended with {status}")
    return time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 2**20


def _wait(pid: int) -> tuple[int, int, resource.struct_rusage]:
    return os.wait4(pid, 0)


def baseline(root: Path) -> float:
    start = time.process_time()
    for path in sorted(root.glob("matrix/evidence/cpu/*.jsonl")):
        with path.open("rb") as file:
            for line in file:
                json.loads(line)
    return time.process_time() - start


def main() -> None:
    for count in [int(text) for text in sys.argv[1:]] or [100_000, 1_000_000]:
        with tempfile.TemporaryDirectory() as folder:
            size = generate(Path(folder), count)
            root, command = Path(folder), [sys.executable, "-m", "tfdet", "status"]
            seconds, cpu, gib = measure(command, root, root / "cache")
            baseline_seconds = baseline(root)
            cached_seconds, *_ = measure(command, root, root / "cache")
        print(f"{count:>9,} records ({size / 2**20:,.0f} MiB): {seconds:.2f} s ({cpu:.2f} s of CPU), {gib:.2f} GiB; "
              f"json.loads alone {baseline_seconds:.2f} s of CPU (ratio {cpu / baseline_seconds:.2f}); "
              f"again {cached_seconds:.2f} s")  # fmt: skip


if __name__ == "__main__":
    main()
