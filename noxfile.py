"""Each kind of check is a session: `nox --list` tells them, `nox` runs all that has to pass, as ./scripts/test does.

Sessions run in .venv, which scripts/bootstrap makes of the pinned tools: none needs an environment of its own.
Words after `--` go to the tool: `nox --session host -- -k evidence`.
"""

from __future__ import annotations

import os
from datetime import date
from pathlib import Path

import nox

nox.needs_version = ">=2025.2"
nox.options.default_venv_backend = "none"
ROOT = Path(__file__).parent
os.environ["PATH"] = f"{ROOT / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"

# What runs inside old environments: Python 3.5 has to read it.
OLD = ["runtime", "tests/suite", "tests/runtime/programs", "tests/runtime/recorded", "tests/runtime/forking.py"]
FLEET = "tests/e2e/test_fleet_daemons.py"
LONGEST = ["docs", "locate", "fix", "collection", "torch", "interventions", "processes", "culprits"]  # begin first
TRACE = [f"tests/runtime/test_trace_{name}.py" for name in LONGEST]
TRACE += sorted({path.relative_to(ROOT).as_posix() for path in ROOT.glob("tests/runtime/test_trace_*.py")} - {*TRACE})
WEEKLY = os.environ.get("TFDET_TESTS") == "all"
DAY = int(os.environ.get("TFDET_DAY") or date.today().toordinal())  # as tests/weekly.py has it
SIDE_BY_SIDE = ["-n", "4", "--dist", "worksteal"]  # more than CI has cores: many wait for an index or a process
SANITIZED = ["handles", "arrays", "link", "heap", "virtual_memory", "streams"]  # what programs pass to the driver
SANITIZED += ["malformed", "contexts", "races", "text"] if WEEKLY else []


def pytest(session: nox.Session, *arguments: str) -> None:
    session.run("pytest", "-q", "-ra", "--durations=15", *arguments, *session.posargs)


@nox.session(tags=["static"])
def style(session: nox.Session) -> None:
    """Ruff: faults and layout."""
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", "src", "tests", "benchmarks", "vgpu", "noxfile.py", "toxfile.py")


@nox.session(tags=["static"])
def types(session: nox.Session) -> None:
    """Mypy: strict on the host, type comments in what runs in environments; of tests of the host, that names exist."""
    session.run("mypy")
    for config in ("runtime/pyproject.toml", "tests/mypy.ini"):
        session.run("mypy", "--config-file", config)


@nox.session(tags=["static"])
def layers(session: nox.Session) -> None:
    """Import-linter: no layer of src/tfdet imports one above it."""
    session.run("lint-imports")


@nox.session(tags=["static"])
def old_pythons(session: nox.Session) -> None:
    """Vermin: what runs in environments is read by Python 3.5."""
    checks = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("tests/runtime/*_checks.py"))
    session.run("vermin", "--no-tips", "--target=3.5-", "--violations", *OLD, *checks)


@nox.session(tags=["static"])
def shell(session: nox.Session) -> None:
    """Shellcheck: the scripts, and what runs in images."""
    scripts = [path for path in ROOT.glob("scripts/*") if path.read_bytes().startswith(b"#!/usr/bin/env bash")]
    session.run("shellcheck", ".ci/run", "docker/entrypoint", "docker/install", *sorted(map(str, scripts)))


@nox.session(tags=["tests"])
def cpp(session: nox.Session) -> None:
    """Clang-format of the virtual GPU's sources; clang-tidy of `-- FILE...`, once a week (TFDET_TESTS=all) of all."""
    sources = session.posargs or sorted(
        str(path) for pattern in ("*.cpp", "*.h") for path in ROOT.glob(f"vgpu/src/**/{pattern}")
    )
    session.run("clang-format", "--dry-run", "-Werror", *sources)
    if not session.posargs and not WEEKLY:
        return  # all of it takes ten minutes
    session.run("python", "vgpu/build.py", "--compile-commands", silent=True, env={"VGPU_COMPILER": ""})
    if compiled := [one for one in sources if one.endswith(".cpp") and "soname_shims" not in one]:
        session.run("run-clang-tidy.py", "-quiet", "-config-file", "vgpu/.clang-tidy", "-p", "vgpu", *compiled)


@nox.session(default=False)
def workflows(session: nox.Session) -> None:
    """Actionlint, which pre-commit brings: it needs a network."""
    session.run("pre-commit", "run", "actionlint", "--all-files")


@nox.session(tags=["static"])
def tables(session: nox.Session) -> None:
    """The tables are what the evidence gives."""
    session.run("tfdet", "status", "--check")


@nox.session(tags=["tests"])
def host(session: nox.Session) -> None:
    """The host's own tests."""
    pytest(session, *SIDE_BY_SIDE, *(measure_coverage(session) if WEEKLY else []), "tests/host")


@nox.session(tags=["tests"] if WEEKLY else [], default=WEEKLY, requires=["host"])
def coverage(session: nox.Session) -> None:
    """How much of src/tfdet the tests of `host` reach: not less than it was.  Once a week (TFDET_TESTS=all)."""
    if WEEKLY:
        session.run("coverage", "report")  # measuring takes a fifth more of the time


def measure_coverage(session: nox.Session) -> list[str]:
    session.run("coverage", "erase")
    return ["--cov", "--cov-report=", "--cov-fail-under=0"]  # the session `coverage` compares


@nox.session(tags=["tests"])
def runtime(session: nox.Session) -> None:
    """tfdeterminism and both wheels, in real old TensorFlows; beside them a real Slurm, which mostly waits."""
    pytest(session, *SIDE_BY_SIDE, "tests/runtime", FLEET, "--ignore-glob=*/test_trace_*")


@nox.session(tags=["tests"])
def vgpu(session: nox.Session) -> None:
    """The virtual GPU: each instruction against an independent reference.  Needs a C++ compiler."""
    pytest(session, *SIDE_BY_SIDE, "tests/vgpu")


@nox.session(tags=["tests"])
def vgpu_sanitized(session: nox.Session) -> None:
    """Every second day a part of the virtual GPU's tests with the address and undefined-behavior sanitizers (g++)."""
    if DAY % 2 and not (WEEKLY or session.posargs):
        session.skip(f"every second day: TFDET_DAY={DAY + 1}, or TFDET_TESTS=all")
    built = session.run("python", "vgpu/build.py", "--sanitize", silent=True, env={"VGPU_COMPILER": ""})
    libraries = [
        session.run("g++", f"-print-file-name={name}", silent=True, external=True)
        for name in ("libasan.so", "libstdc++.so")
    ]
    environment = {
        "VGPU_LIBRARY": f"{str(built).strip()}/libvgpu.so",
        "VGPU_SANITIZED": "1",
        "LD_PRELOAD": " ".join(str(library).strip() for library in libraries),
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",  # Python itself leaks
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }
    tests = session.posargs or [f"tests/vgpu/test_{name}.py" for name in SANITIZED]
    session.run("pytest", "-q", "-n", "2", *tests, env=environment)


@nox.session(tags=["tests"])
def trace(session: nox.Session) -> None:
    """The debug tool, in real TensorFlows; what a file's tests record is recorded once."""
    pytest(session, "-n", "3", "--dist", "loadfile", "--no-loadscope-reorder", *TRACE)


@nox.session(tags=["tests"])
def meta(session: nox.Session) -> None:
    """Planted faults that the suite must catch; there are deadlines, so no more beside each other than CI has cores."""
    pytest(session, "-n", "2", "--dist", "loadfile", "tests/meta")


# Docker gets the machine to itself.
@nox.session(tags=["tests"])
def e2e(session: nox.Session) -> None:
    """Real Docker; without root or Docker they are skipped, and pytest names the reason."""
    pytest(session, "tests/e2e", f"--ignore={FLEET}")


@nox.session(default=False)
def docs(session: nox.Session) -> None:
    """Execute what the documents show (part of `host`, `runtime`, `trace` and `vgpu`)."""
    documents = ["tests/host/repository/test_guide.py", "tests/host/fleet/test_cluster_guide.py"]
    documents += ["tests/host/cli/test_pytest_plugin.py", "tests/host/repository/test_tutorials.py"]
    documents += ["tests/host/bundle/test_bundle_run.py", "tests/host/store/test_trust_guide.py"]
    documents += ["tests/vgpu/test_vgpu_docs.py"]
    documents += ["tests/runtime/test_docs.py", "tests/runtime/test_trace_docs.py"]
    pytest(session, *documents)


@nox.session(default=False)
def benchmarks(session: nox.Session) -> None:
    """What benchmarks/README.md promises: `-- status`, `-- patches tf2.0`."""
    if not session.posargs:
        session.error(f"name one of {' '.join(sorted(path.stem for path in ROOT.glob('benchmarks/*.py')))}")
    name, *arguments = session.posargs
    session.run("python", f"benchmarks/{name}.py", *arguments)
