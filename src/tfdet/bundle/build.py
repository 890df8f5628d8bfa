"""The implementation of `tfdet bundle`: packs an environment's packages, the runtime, the suite and its plan.

The runtime is the packages of runtime/, which run the suite: the tests of tests/suite.  The plan lists what the suite
runs, and the results that documents claim.  The command writes a folder of files (parts) of limited size, for a host
without a network.
"""

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
from tfdet.bundle.contents import Contents, Entry, TrimOptions, folder_contents, minimum_glibc, site_contents
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
    """The environment to bundle, and the host for which it is bundled.

    key: of the environment.  python: the host's CPython, such as 3.12, by default the environment's.  part_size: in
    bytes.  preset: of xz, 0 to 9.
    """

    key: str
    device: Device = GPU
    python: str | None = None
    part_size: int = 60 << 20
    preset: int = pack.PRESET
    trim: TrimOptions = field(default_factory=TrimOptions)


@dataclass(frozen=True)
class BuiltBundle:
    """The bundle that was written.  parts: their sizes in bytes."""

    folder: Path
    parts: list[int]
    manifest: dict[str, Any]


def make_bundle(
    project: Project, matrix: Matrix, spec: BundleSpec, out: Path, report_progress: Callable[[str], None]
) -> BuiltBundle:
    """Download the packages, trim, compress and split them. Running again resumes after the last finished step."""
    environment = matrix.environment(spec.key)
    _check_spec(matrix, environment, spec)
    _check_folder(out)
    site = install(project, environment, spec, report_progress)
    report_progress("searching for what the host does not need")
    contents = site_contents(site, spec.trim)
    if spec.trim.host_packages:
        contents.left_out.append("packages that the host has itself")
    elif matrix.devices.find_by_cli_name(spec.device).needs_driver and not _contains_cuda(contents):
        contents.from_host.append(f"CUDA {environment.cuda}, cuDNN {environment.cudnn}")
    contents.entries += _tool_entries(project, matrix, spec)
    total = sum(entry.size for entry in contents.entries)
    report_progress(f"compressing {total >> 20} MiB in {len(contents.entries)} files")
    packed = pack.compress(
        contents.entries, compressed_members_cache(), pack.ProgressEstimator(total, report_progress), spec.preset
    )
    out.mkdir(parents=True, exist_ok=True)
    (out / "manifest.json").unlink(missing_ok=True)  # an old manifest must not describe new parts
    parts = pack.write_parts(packed, out, _file_stem(spec), spec.part_size)
    content = pack.manifest(
        contents.entries, packed, parts, _manifest_facts(project, environment, spec, contents, minimum_glibc(site))
    )
    with add_path_to_errors(out):
        (out / script.NAME).write_text(script.build(project.runtime), "utf-8")
    _write_manifest(out, content, {part["name"] for part in parts})
    return BuiltBundle(out, [part["size"] for part in parts], content)


def compressed_members_cache() -> Path:
    """Return the folder of the compressed members (.xz streams) that later runs reuse."""
    return cache_dir() / "bundles" / "members"


def install(
    project: Project, environment: Environment, spec: BundleSpec, report_progress: Callable[[str], None]
) -> Path:
    """Install the environment's packages for the host's Python in the cache, and return their folder.

    They are exactly those of the lock file, with its hashes.
    """
    lock = project.lock(spec.key, spec.device)
    if not lock.exists():
        raise DataError(f"{lock} not found", f"Create it: scripts/update-locks {spec.key}")
    check_lock(lock, framework=framework_of(project, environment))
    python = spec.python or _pip(environment).python
    pinned_requirements = read_lock(project, spec.key, spec.device)
    if spec.trim.host_packages:
        pinned_requirements = restrict_to(pinned_requirements, _suite_requirements(environment))
    digest = hashlib.sha256(pinned_requirements.encode()).hexdigest()[:10]
    folder = cache_dir() / "bundles" / f"{spec.key}-{spec.device}-py{python}-{digest}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with exclusive_lock(folder):
        if not (folder / "complete").exists():
            report_progress(
                f"downloading the packages of {lock.name} for CPython {python} (once; a GPU build has up to 2.5 GiB)"
            )
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            (folder / "requirements.txt").write_text(pinned_requirements, "utf-8")
            command = ["pip", "install", "--no-config", "--no-deps", "--require-hashes"]
            command += ["--target", str(folder / "site"), "--requirement", str(folder / "requirements.txt")]
            command += ["--python", sys.executable, "--python-version", python, "--python-platform", PLATFORM]
            run_uv(command, python)
            (folder / "complete").touch()
    return folder / "site"


def _pip(environment: Environment) -> PipRequirements:
    assert environment.pip is not None  # _check_spec raises UsageError for other environments
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


def _check_spec(matrix: Matrix, environment: Environment, spec: BundleSpec) -> None:
    """Raise UsageError if the environment cannot be bundled, or options are invalid."""
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
    has_gpu_options = spec.trim.host_libraries or spec.trim.stubs or spec.trim.capability
    if has_gpu_options and not matrix.devices.find_by_cli_name(spec.device).needs_driver:
        raise UsageError(
            "a bundle for the CPU holds no GPU code and no CUDA library",
            "Leave out --compute-capability, --use-host-libraries and --stub-libraries, or ask for --device gpu.",
        )


def _check_folder(out: Path) -> None:
    """Raise UsageError for a folder with other files: they would be copied together with the bundle.

    This creates the folder, so that an error occurs before the long download.
    """
    if is_there(out) and not out.is_dir():
        raise UsageError(f"--out {out} is not a folder", "Pass a new folder.")
    if out.is_dir():
        other_files = sorted(p.name for p in out.iterdir() if not _is_bundle_file(p.name))
        if other_files:
            raise UsageError(
                f"--out {out} contains other files ({other_files[0]})", "Pass a new folder, or that of an older bundle."
            )
    require_writable(out / "manifest.json", "--out")


def _is_bundle_file(name: str) -> bool:
    files = ("manifest.json", "manifest.json.part", script.NAME)
    return name in files or re.search(r"\.part-\d+(\.part)?$", name) is not None


def _tool_entries(project: Project, matrix: Matrix, spec: BundleSpec) -> list[Entry]:
    """Return the entries that do not come from packages: the runtime, the suite, the plan."""
    plan = json.dumps(make_plan(matrix, spec.key, by_priority=True), indent=1, sort_keys=True) + "\n"
    runtime = folder_contents(project.runtime, "runtime", "*/*.py", "*/*.json")
    return [
        Entry("plan.json", plan.encode("utf-8")),
        # unbundle.py is a file beside the parts.
        *(entry for entry in runtime if not entry.path.startswith("runtime/unbundle/")),
        # batches.py: the ops that are run in batches of several sizes (batch invariance).
        *folder_contents(project.suite(matrix.environment(spec.key).framework), "suite", "test_*.py", "batches.py"),
    ]


def _contains_cuda(contents: Contents) -> bool:
    return any(entry.path.startswith("site/nvidia/") for entry in contents.entries)


def _file_stem(spec: BundleSpec) -> str:
    capability = spec.trim.capability
    return f"{spec.key}-{spec.device}" + ("-sm{}{}".format(*capability) if capability else "")


def _manifest_facts(
    project: Project, environment: Environment, spec: BundleSpec, contents: Contents, glibc: str
) -> dict[str, Any]:
    capability = spec.trim.capability
    driver_match = re.match(r"\d+(\.\d+)*", environment.min_driver)
    has_cuda = _contains_cuda(contents)
    # from_host: what the host provides, as texts; host_libraries: the sonames among it, if CUDA is in the bundle.
    return {
        "schema": bundle_format.SCHEMA,
        "environment": spec.key,
        "device": spec.device,
        "python": spec.python or _pip(environment).python,
        "glibc": glibc,
        "min_driver": driver_match.group() if driver_match and environment.min_driver != UNKNOWN else None,
        "compute_capability": "{}.{}".format(*capability) if capability else None,
        "brings_cuda": has_cuda,
        "host_libraries": sorted(contents.from_host) if has_cuda else [],
        "host_packages": _locked_host_packages(project, environment, spec) if spec.trim.host_packages else [],
        "trimmed": contents.trimmed,
        "stubbed": contents.stubbed,
        "left_out": contents.left_out,
        "from_host": contents.from_host,
        "disk": sum(map(_unpacked_bytes, contents.entries)),
    }


def _locked_host_packages(project: Project, environment: Environment, spec: BundleSpec) -> list[str]:
    """Return NAME==VERSION, without local version labels, of the packages that the host must have, framework first."""
    requirement = _pip(environment).gpu if spec.device == GPU else _pip(environment).cpu
    framework = Requirement(requirement).name
    versions = parse_pins(project.lock(spec.key, spec.device).read_text("utf-8"))
    names = sorted(versions.keys() - set(_suite_requirements(environment)), key=lambda name: (name != framework, name))
    return [f"{name}=={versions[name].partition('+')[0]}" for name in names]


def _unpacked_bytes(entry: Entry) -> int:
    """Return the bytes that the unpacked file takes on disk: spans that trimming fills with zeros become holes."""
    holes = sum(end - start - _HOLE_BYTES for start, end in entry.spans if end - start > 2 * _HOLE_BYTES)
    return -(-(entry.size - holes) // 4096) * 4096


def _write_manifest(out: Path, content: dict[str, Any], parts: set[str]) -> None:
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
    match = re.fullmatch(r"(\d+)\s*(KiB|MiB|GiB|kB|MB|GB|B)?", text.strip())
    if match is None:
        raise UsageError(f"{text!r} is not a size", "Pass one such as 60MiB.")
    units = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "kB": 10**3, "MB": 10**6, "GB": 10**9}
    return int(match[1]) * units.get(match[2], 1)


def parse_capability(text: str) -> tuple[int, int]:
    """Parse 9.0 as (9, 0); UsageError if it is not a compute capability."""
    match = re.fullmatch(r"(\d{1,2})\.(\d)", text)
    if match is None:
        raise UsageError(f"{text!r} is not a compute capability", "Pass it as nvidia-smi prints it, such as 9.0.")
    return int(match[1]), int(match[2])
