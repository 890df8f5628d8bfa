"""Programs with a known culprit each, and clean ones, recorded in real TensorFlows: the right op, the right line.

A program says what is expected in its docstring: `expect: OP | CLASS | ROW OF THE MATRIX | NAME=VALUE`, or
`expect: same`; the line is marked `# <- culprit`.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tfdeterminism.trace import diff

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PROGRAMS = HERE / "programs"
OWN_PROCESS = "set_order"  # forks share the seed of Python's hashes
# Where the construct exists; each construct in one old version at least.
IN_OLD = {
    "tf2.0": ["at_step_seven", "branch", "clean_cnn", "clean_data", "clean_unet", "crop_race", "in_cond", "in_map_fn",
              "parallel_map", "python_feed", "two_at_once", "unseeded"],
    "tf1.14": ["after_retrace", "clean_bert_block", "clean_lstm", "clean_session", "crop_race", "in_while",
               "many_dtypes", "nan_payload", "numpy_noise", "permuted_rows", "session_loop", "timestamp"],
}  # fmt: skip
ENVIRONMENTS = ["tf2.21", *IN_OLD]


@dataclass
class Expected:
    op: str
    kind: str
    source: str | None
    line: int | None
    more: dict[str, str] = field(default_factory=dict)


def names(environment: str) -> list[str]:
    every = sorted(path.stem for path in PROGRAMS.glob("*.py"))
    return [name for name in IN_OLD.get(environment, every) if name != OWN_PROCESS]


def expected(name: str) -> list[Expected]:
    """What is expected of a program's trace, the root first; [] of a clean one."""
    text = (PROGRAMS / f"{name}.py").read_text("utf-8")
    marked = iter(n for n, line in enumerate(text.splitlines(), 1) if line.endswith("# <- culprit"))
    found = []
    for spec in re.findall(r"^expect: (.*)", text, re.M):
        if spec != "same":
            parts = spec.split(" | ")
            more = dict(part.split("=") for part in parts if "=" in part)
            plain = [*(part for part in parts if "=" not in part), None]
            found.append(Expected(parts[0], parts[1], plain[2], next(marked, None), more))
    return found


def test_every_program_says_what_is_expected() -> None:
    clean = [name for name in names("tf2.21") if not expected(name)]
    assert len(clean) >= 6
    assert all(name.startswith("clean_") for name in clean)
    assert len(names("tf2.21")) - len(clean) >= 18


@pytest.fixture(scope="module", params=ENVIRONMENTS)
def recorded(
    request: pytest.FixtureRequest, tf_python: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Path]]:
    """(environment, folder): each program of it recorded twice, in folder/PROGRAM/a/trace and b/trace."""
    folder = tmp_path_factory.mktemp(request.param)
    jobs = [[str(folder / name / run), ["--", str(PROGRAMS / f"{name}.py")]] for name in names(request.param)
            for run in "ab"]  # fmt: skip
    (folder / "jobs.json").write_text(json.dumps(jobs), "utf-8")
    command = [str(tf_python(request.param)), str(HERE / "record_programs.py"), str(folder / "jobs.json")]
    ran = subprocess.run(command, env=environ(), capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-2000:]
    codes = dict(zip((job[0] for job in jobs), json.loads(ran.stdout.splitlines()[-1]), strict=True))
    failed = [Path(job, "output.txt").read_text("utf-8", "replace")[-1500:] for job, code in codes.items() if code]
    assert not failed, "\n\n".join(failed)
    yield request.param, folder


def environ(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT / "runtime"), "TF_CPP_MIN_LOG_LEVEL": "3", **more}


@pytest.mark.tensorflow
@pytest.mark.trace
def test_each_culprit_is_named(recorded: tuple[str, Path]) -> None:
    """One pass over all programs: recording them is what takes time."""
    environment, folder = recorded
    wrong = [f"{name}: {text}" for name in names(environment) for text in faults(name, folder / name)]
    assert not wrong, "\n".join(wrong)


def faults(name: str, folder: Path) -> list[str]:
    """What is not as expected of a program that was recorded twice."""
    found = diff.compare([str(folder / "a" / "trace"), str(folder / "b" / "trace")])
    wanted = expected(name)
    results = {"structure"} if any(one.kind == "structure" for one in wanted) else {"diverged"} if wanted else {"same"}
    wrong = [] if found.result in results else [f"{found.result}, not {results}"]
    if len(found.culprits) != len(wanted):
        wrong.append(f"{len(found.culprits)} culprits, not {len(wanted)}: {found.culprits}")
    for want, got in zip(wanted, found.culprits, strict=False):
        for what, one, other in (
            ("op", want.op, got["op_type"].replace("IteratorGetNextSync", "IteratorGetNext")),
            ("class", want.kind, got["class"]),
            ("row", want.source, got["source"]),
            ("line", want.line, got["line"]),
            ("file", name, Path(got["file"] or "").stem),
            ("forward op", want.more.get("forward"), got["forward_op"]),
            ("step", want.more.get("step"), str(got["step"]) if "step" in want.more else None),
        ):
            if one not in (None, "*", other) and not (what == "forward op" and one is None):
                wrong.append(f"{what} {other!r}, not {one!r}")
    return wrong


@pytest.mark.tensorflow
@pytest.mark.trace
def test_the_order_of_a_set(tf_python: Callable[[str], Path], tmp_path: Path) -> None:
    """Two processes whose hashes have other seeds; the diff runs in the environment, as its user's would."""
    python = str(tf_python("tf2.21"))
    for run in "12":
        command = [python, "-m", "tfdeterminism.trace", "run", "--out", str(tmp_path / run), "--"]
        subprocess.run([*command, str(PROGRAMS / "set_order.py")], env=environ(PYTHONHASHSEED=run), check=True,
                       stdout=subprocess.DEVNULL)  # fmt: skip
    command = [python, "-m", "tfdeterminism.trace", "diff", str(tmp_path / "1"), str(tmp_path / "2"), "--json"]
    ran = subprocess.run(command, env=environ(), capture_output=True, text=True)
    assert ran.returncode == 1, ran.stderr
    (culprit,) = json.loads(ran.stdout)["culprits"]
    (want,) = expected("set_order")
    assert (culprit["class"], culprit["line"]) == (want.kind, want.line)
    assert any("PYTHONHASHSEED" in line for line in culprit["lines"])
