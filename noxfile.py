"""Each kind of check is a session. `nox` runs all sessions that have to pass, as ./scripts/test does.

Sessions run in .venv, which scripts/bootstrap fills with the pinned tools; none needs an environment of its own.
Arguments after `--` are passed to the tool: `nox --session host -- -k evidence`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import nox

ROOT = Path(__file__).parent
sys.path.insert(0, str(ROOT))
from tests import weekly  # noqa: E402

nox.needs_version = ">=2025.2"
nox.options.default_venv_backend = "none"
os.environ["PATH"] = f"{ROOT / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"

# What runs inside old environments: Python 3.5 has to read it.
OLD = ["runtime", "tests/suite", "tests/runtime/programs", "tests/runtime/recorded", "tests/runtime/forking.py"]
FLEET = "tests/e2e/test_fleet_daemons.py"
LONGEST = ["torch", "collection", "pins", "interventions", "culprits", "processes"]  # begin first
LONGEST += ["values", "fix", "record", "locate"]
TRACE = [f"tests/runtime/test_trace_{name}.py" for name in LONGEST]
TRACE += sorted({path.relative_to(ROOT).as_posix() for path in ROOT.glob("tests/runtime/test_trace_*.py")} - {*TRACE})
PARALLEL = ["-n", "4", "--dist", "worksteal"]  # more than CI has cores: many wait for an index or a process
SANITIZED = ["handles", "arrays", "link", "heap", "virtual_memory", "streams"]  # what programs pass to the driver
SANITIZED += ["malformed", "contexts", "races", "text"] if weekly.ALL else []


def pytest(session: nox.Session, *arguments: str) -> None:
    session.run("pytest", "-q", "-ra", "--durations=15", "--long-tests-of-today", *arguments, *session.posargs)


@nox.session(tags=["static"])
def style(session: nox.Session) -> None:
    """Lint and format with ruff."""
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", "src", "tests", "benchmarks", "vgpu", "noxfile.py", "toxfile.py")


@nox.session(tags=["static"])
def types(session: nox.Session) -> None:
    """Check types with mypy: strictly in src/tfdet, loosely in runtime/ and in the tests."""
    session.run("mypy")
    for config in ("runtime/pyproject.toml", "tests/mypy.ini"):
        session.run("mypy", "--config-file", config)


@nox.session(tags=["static"])
def layers(session: nox.Session) -> None:
    """Check with import-linter that no layer of src/tfdet imports a higher one."""
    session.run("lint-imports")


@nox.session(tags=["static"])
def old_pythons(session: nox.Session) -> None:
    """Check with vermin that Python 3.5 can read the code that runs in old environments."""
    checks = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("tests/runtime/*_checks.py"))
    session.run("vermin", "--no-tips", "--target=3.5-", "--violations", *OLD, *checks)


@nox.session(tags=["static"])
def shell(session: nox.Session) -> None:
    """Check the shell scripts with shellcheck."""
    first_lines = (b"#!/usr/bin/env bash", b"# shellcheck shell=bash")
    scripts = [path for path in ROOT.glob("scripts/*") if path.read_bytes().startswith(first_lines)]
    session.run(
        "shellcheck", "--external-sources", ".ci/run", "docker/entrypoint", "docker/install", *sorted(map(str, scripts))
    )


@nox.session(tags=["tests"])
def cpp(session: nox.Session) -> None:
    """Check the C++ format with clang-format; clang-tidy checks `-- FILE...`, with TFDET_TESTS=all every file."""
    sources = session.posargs or sorted(
        str(path) for pattern in ("*.cpp", "*.h") for path in ROOT.glob(f"vgpu/src/**/{pattern}")
    )
    session.run("clang-format", "--dry-run", "-Werror", *sources)
    if not session.posargs and not weekly.ALL:
        return  # all of it takes ten minutes
    session.run("python", "vgpu/build.py", "--compile-commands", silent=True, env={"VGPU_COMPILER": ""})
    if compiled := [source for source in sources if source.endswith(".cpp") and "soname_shims" not in source]:
        session.run("run-clang-tidy.py", "-quiet", "-config-file", "vgpu/.clang-tidy", "-p", "vgpu", *compiled)


@nox.session(default=False)
def workflows(session: nox.Session) -> None:
    """Check the CI workflows with actionlint.  Needs a network."""
    session.run("pre-commit", "run", "actionlint", "--all-files")


@nox.session(tags=["static"])
def tables(session: nox.Session) -> None:
    """Check that the generated tables match the evidence."""
    session.run("tfdet", "status", "--check")


@nox.session(tags=["tests"])
def host(session: nox.Session) -> None:
    """Test src/tfdet."""
    pytest(session, *PARALLEL, *(measure_coverage(session) if weekly.ALL else []), "tests/host")


@nox.session(tags=["tests"] if weekly.ALL else [], default=weekly.ALL, requires=["host"])
def coverage(session: nox.Session) -> None:
    """Check that the coverage of src/tfdet has not fallen.  Runs after `host`, with TFDET_TESTS=all only."""
    if weekly.ALL:
        session.run("coverage", "report")  # measuring takes a fifth more of the time


def measure_coverage(session: nox.Session) -> list[str]:
    session.run("coverage", "erase")
    return ["--cov", "--cov-report=", "--cov-fail-under=0"]  # the session `coverage` compares


@nox.session(tags=["tests"])
def runtime(session: nox.Session) -> None:
    """Test tfdeterminism and both wheels in real old TensorFlows, and the fleet on a real Slurm."""
    pytest(session, *PARALLEL, "tests/runtime", FLEET, "--ignore-glob=*/test_trace_*")


@nox.session(tags=["tests"])
def vgpu(session: nox.Session) -> None:
    """Test the virtual GPU: each instruction against an independent reference.  Needs a C++ compiler."""
    pytest(session, *PARALLEL, "tests/vgpu")


@nox.session(tags=["tests"])
def vgpu_sanitized(session: nox.Session) -> None:
    """Test a part of the virtual GPU with address and undefined-behavior sanitizers (g++), every third day."""
    wait = -(weekly.DAY + 1) % weekly.LONG_DAYS  # days until it runs
    if wait and not (weekly.ALL or session.posargs):
        session.skip(f"every third day: TFDET_DAY={weekly.DAY + wait}, or TFDET_TESTS=all")
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
    """Test `tfdet locate` and the other trace commands in real TensorFlows."""
    # loadfile: tests of one file share the traces that they record.
    pytest(session, "-n", "4", "--dist", "loadfile", "--no-loadscope-reorder", *TRACE)


@nox.session(tags=["tests"])
def meta(session: nox.Session) -> None:
    """Test that the suite catches planted faults."""
    # The tests have deadlines, so no more run in parallel than CI has cores.
    pytest(session, "-n", "2", "--dist", "loadfile", "tests/meta")


# Docker gets the machine to itself.
@nox.session(tags=["tests"])
def e2e(session: nox.Session) -> None:
    """Test images in a real Docker; skipped without root or Docker."""
    pytest(session, "tests/e2e", f"--ignore={FLEET}")


@nox.session(default=False)
def docs(session: nox.Session) -> None:
    """Execute the examples of the documents (part of `host`, `runtime`, `trace` and `vgpu`)."""
    documents = ["tests/host/repository/test_guide.py", "tests/host/fleet/test_cluster_guide.py"]
    documents += ["tests/host/cli/test_pytest_plugin.py", "tests/host/repository/test_tutorials.py"]
    documents += ["tests/host/bundle/test_bundle_run.py", "tests/host/store/test_trust_guide.py"]
    documents += ["tests/vgpu/test_vgpu_docs.py"]
    documents += ["tests/runtime/test_docs.py", "tests/runtime/test_trace_docs.py"]
    pytest(session, *documents)


@nox.session(default=False)
def benchmarks(session: nox.Session) -> None:
    """Measure a promise of benchmarks/README.md: `-- status`, `-- patches tf2.0`."""
    if not session.posargs:
        session.error(f"name one of {' '.join(sorted(path.stem for path in ROOT.glob('benchmarks/*.py')))}")
    name, *arguments = session.posargs
    session.run("python", f"benchmarks/{name}.py", *arguments)
