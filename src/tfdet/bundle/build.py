"""tfdet bundle: pack an environment's packages, the runtime, the suite and its plan into parts for an offline host."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from tfdet.base.errors import DataError, UsageError
from tfdet.base.files import add_path_to_errors, require_writable
from tfdet.base.folders import is_there
from tfdet.base.paths import Project, cache_dir
from tfdet.bundle import pack, script
from tfdet.bundle.contents import Contents, Entry, TrimOptions, folder_contents, glibc, site_contents
from tfdet.engines.locks import check_lock, framework_of, parse_pins, read_lock, restrict_to
from tfdet.engines.venv import exclusive_lock, run_uv
from tfdet.matrix.devices import GPU
from tfdet.matrix.field_types import Device
from tfdet.matrix.load import Matrix
from tfdet.matrix.models import UNKNOWN, Environment, PipRequirements
from tfdet.matrix.plan import make_plan
from tfdet_common import bundle_format

PLATFORM = "x86_64-manylinux_2_28"
_HOLE_BYTES = 1 << 16  # a run of zeros of this size becomes a hole of a sparse file when unpacked


@dataclass(frozen=True)
class BundleSpec:
    """What to bundle, and for which host.

    python: CPython minor of the host, by default the environment's own.  part_size: bytes.  preset: of xz, 0 to 9.
    """

    key: str
    device: Device = GPU
    python: str | None = None
    part_size: int = 60 << 20
    preset: int = pack.PRESET
    trim: TrimOptions = field(default_factory=TrimOptions)


@dataclass(frozen=True)
class BuiltBundle:
    """What was written.  parts: their sizes in bytes."""

    folder: Path
    parts: list[int]
    manifest: dict[str, Any]


def make_bundle(
    project: Project, matrix: Matrix, spec: BundleSpec, out: Path, report_progress: Callable[[str], None]
) -> BuiltBundle:
    """Download the packages, trim, compress and split them. Running again resumes after the last finished step."""
    environment = matrix.environment(spec.key)
    _check(matrix, environment, spec)
    _check_folder(out)
    site = install(project, environment, spec, report_progress)
    report_progress("searching for what the host does not need")
    contents = site_contents(site, spec.trim)
    if spec.trim.host_packages:
        contents.left_out.append("packages that the host has itself")
    elif matrix.devices.find_by_cli_name(spec.device).needs_driver and not _brings_cuda(contents):
        contents.from_host.append(f"CUDA {environment.cuda}, cuDNN {environment.cudnn}")
    contents.entries += _bundled_tool_files(project, matrix, spec)
    total = sum(entry.size for entry in contents.entries)
    report_progress(f"compressing {total >> 20} MiB in {len(contents.entries)} files")
    packed = pack.compress(
        contents.entries, members_cache(), pack.ProgressEstimator(total, report_progress), spec.preset
    )
    out.mkdir(parents=True, exist_ok=True)
    (out / "manifest.json").unlink(missing_ok=True)  # it must never stand beside parts that it does not fit
    parts = pack.write_parts(packed, out, _file_stem(spec), spec.part_size)
    content = pack.manifest(
        contents.entries, packed, parts, _manifest_facts(project, environment, spec, contents, glibc(site))
    )
    with add_path_to_errors(out):
        (out / script.NAME).write_text(script.build(project.runtime), "utf-8")
    _write(out, content, {part["name"] for part in parts})
    return BuiltBundle(out, [part["size"] for part in parts], content)


def members_cache() -> Path:
    return cache_dir() / "bundles" / "members"


def install(
    project: Project, environment: Environment, spec: BundleSpec, report_progress: Callable[[str], None]
) -> Path:
    """The environment's packages for the host's Python, in the cache: exactly what the lock file names, by hash."""
    lock = project.lock(spec.key, spec.device)
    if not lock.exists():
        raise DataError(f"{lock} not found", f"Create it: scripts/update-locks {spec.key}")
    check_lock(lock, framework=framework_of(project, environment))
    python = spec.python or _pip(environment).python
    pinned = read_lock(project, spec.key, spec.device)
    if spec.trim.host_packages:
        pinned = restrict_to(pinned, _suite_requirements(environment))
    digest = hashlib.sha256(pinned.encode()).hexdigest()[:10]
    folder = cache_dir() / "bundles" / f"{spec.key}-{spec.device}-py{python}-{digest}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with exclusive_lock(folder):
        if not (folder / "complete").exists():
            report_progress(
                f"downloading the packages of {lock.name} for CPython {python} (once; a GPU build has up to 2.5 GiB)"
            )
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            (folder / "requirements.txt").write_text(pinned, "utf-8")
            command = ["pip", "install", "--no-config", "--no-deps", "--require-hashes"]
            command += ["--target", str(folder / "site"), "--requirement", str(folder / "requirements.txt")]
            command += ["--python", sys.executable, "--python-version", python, "--python-platform", PLATFORM]
            run_uv(command, python)
            (folder / "complete").touch()
    return folder / "site"


def _pip(environment: Environment) -> PipRequirements:
    assert environment.pip is not None  # _check refuses the others
    return environment.pip


def _suite_requirements(environment: Environment) -> tuple[str, ...]:
    """Return the packages to bundle for a host that has the framework: the runner's and those the suite imports."""
    return (
        "pytest",
        "pluggy",
        "iniconfig",
        "packaging",
        "pygments",
        "nvidia-ml-py",
        *_pip(environment).extra_requirements,
    )


def _check(matrix: Matrix, environment: Environment, spec: BundleSpec) -> None:
    if environment.pip is None:
        raise UsageError(
            f"{spec.key} is an image, not built from packages",
            "Copy the image itself: docker save, docker load; then docker run.",
        )
    if compiled := environment.pip.compiled:
        raise UsageError(
            f"{', '.join(compiled.packages)} is compiled on the machine where it runs: no bundle can carry it",
            "Run it on a host with a network: tfdet run.",
        )
    if spec.python is not None and not re.fullmatch(r"3\.\d{1,2}", spec.python):
        raise UsageError(
            f"--python {spec.python}: not a version", "Pass the host's CPython as MAJOR.MINOR, such as 3.12."
        )
    if spec.part_size < 1 << 20:
        raise UsageError("--part-size: less than 1 MiB", "Pass a larger size, such as 60MiB.")
    of_gpu = spec.trim.host_libraries or spec.trim.stubs or spec.trim.capability
    if of_gpu and not matrix.devices.find_by_cli_name(spec.device).needs_driver:
        raise UsageError(
            "a bundle for the CPU holds no GPU code and no CUDA library",
            "Leave out --compute-capability, --use-host-libraries and --stub-libraries, or ask for --device gpu.",
        )


def _check_folder(out: Path) -> None:
    """Refuse a folder with other files: they would be copied along with the bundle.

    It is created now: an error shows before gigabytes are downloaded and compressed.
    """
    if is_there(out) and not out.is_dir():
        raise UsageError(f"--out {out} is not a folder", "Pass a new folder.")
    if out.is_dir():
        strange = sorted(p.name for p in out.iterdir() if not _is_bundle_file(p.name))
        if strange:
            raise UsageError(
                f"--out {out} contains other files ({strange[0]})", "Pass a new folder, or that of an older bundle."
            )
    require_writable(out / "manifest.json", "--out")


def _is_bundle_file(name: str) -> bool:
    files = ("manifest.json", "manifest.json.part", script.NAME)
    return name in files or re.search(r"\.part-\d+(\.part)?$", name) is not None


def _bundled_tool_files(project: Project, matrix: Matrix, spec: BundleSpec) -> list[Entry]:
    """Return the files that are not packages: the runtime, the suite, the plan."""
    plan = json.dumps(make_plan(matrix, spec.key, by_priority=True), indent=1, sort_keys=True) + "\n"
    runtime = folder_contents(project.runtime, "runtime", "*/*.py", "*/*.json")
    return [
        Entry("plan.json", plan.encode("utf-8")),
        *(entry for entry in runtime if not entry.path.startswith("runtime/unbundle/")),  # it lies beside the parts
        *folder_contents(project.suite(matrix.environment(spec.key).framework), "suite", "test_*.py", "batches.py"),
    ]


def _brings_cuda(contents: Contents) -> bool:
    return any(entry.path.startswith("site/nvidia/") for entry in contents.entries)


def _file_stem(spec: BundleSpec) -> str:
    capability = spec.trim.capability
    return f"{spec.key}-{spec.device}" + ("-sm{}{}".format(*capability) if capability else "")


def _manifest_facts(
    project: Project, environment: Environment, spec: BundleSpec, contents: Contents, least_glibc: str
) -> dict[str, Any]:
    capability = spec.trim.capability
    leading = re.match(r"\d+(\.\d+)*", environment.min_driver)
    brings = _brings_cuda(contents)
    return {
        "schema": bundle_format.SCHEMA,
        "environment": spec.key,
        "device": spec.device,
        "python": spec.python or _pip(environment).python,
        "glibc": least_glibc,
        "min_driver": leading.group() if leading and environment.min_driver != UNKNOWN else None,
        "compute_capability": "{}.{}".format(*capability) if capability else None,
        "brings_cuda": brings,
        "host_libraries": sorted(contents.from_host) if brings else [],
        "host_packages": _locked_host_packages(project, environment, spec) if spec.trim.host_packages else [],
        "trimmed": contents.trimmed,
        "stubbed": contents.stubbed,
        "left_out": contents.left_out,
        "from_host": contents.from_host,
        "disk": sum(map(_unpacked_bytes, contents.entries)),
    }


def _locked_host_packages(project: Project, environment: Environment, spec: BundleSpec) -> list[str]:
    """NAME==VERSION, without a build's label, of each package that the host is to have itself, the framework first."""
    requirement = _pip(environment).gpu if spec.device == GPU else _pip(environment).cpu
    framework = Requirement(requirement).name
    pinned = parse_pins(project.lock(spec.key, spec.device).read_text("utf-8"))
    wanted = sorted(pinned.keys() - set(_suite_requirements(environment)), key=lambda name: (name != framework, name))
    return [f"{name}=={pinned[name].partition('+')[0]}" for name in wanted]


def _unpacked_bytes(entry: Entry) -> int:
    """Return the bytes that the unpacked file takes: blanked spans become holes."""
    holes = sum(end - start - _HOLE_BYTES for start, end in entry.spans if end - start > 2 * _HOLE_BYTES)
    return -(-(entry.size - holes) // 4096) * 4096


def _write(out: Path, content: dict[str, Any], parts: set[str]) -> None:
    """Write the manifest last, and remove the parts of an earlier bundle in this folder."""
    for path in out.iterdir():
        if _is_bundle_file(path.name) and path.name not in {*parts, script.NAME}:
            path.unlink()
    unfinished = out / "manifest.json.part"
    with add_path_to_errors(unfinished):
        unfinished.write_text(json.dumps(content, sort_keys=True, separators=(",", ":")) + "\n", "ascii")
    unfinished.replace(out / "manifest.json")


def parse_size(text: str) -> int:
    """Parse 60MiB, 100MB, 1GiB or plain bytes; UsageError if it is not a size."""
    found = re.fullmatch(r"(\d+)\s*(KiB|MiB|GiB|kB|MB|GB|B)?", text.strip())
    if found is None:
        raise UsageError(f"{text!r} is not a size", "Pass one such as 60MiB.")
    units = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "kB": 10**3, "MB": 10**6, "GB": 10**9}
    return int(found[1]) * units.get(found[2], 1)


def parse_capability(text: str) -> tuple[int, int]:
    """Parse 9.0 as (9, 0); UsageError if it is not a compute capability."""
    found = re.fullmatch(r"(\d{1,2})\.(\d)", text)
    if found is None:
        raise UsageError(f"{text!r} is not a compute capability", "Pass it as nvidia-smi prints it, such as 9.0.")
    return int(found[1]), int(found[2])
