"""tfdet bundle: an environment's packages, the runtime, the suite and its plan as parts that can be carried."""

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
from tfdet.bundle.contents import Choice, Contents, Entry, folder_contents, glibc, site_contents
from tfdet.engines.locks import check_lock, framework_of, parse_pins, read_lock, restrict_to
from tfdet.engines.venv import exclusive_lock, run_uv
from tfdet.matrix.devices import GPU
from tfdet.matrix.field_types import Device
from tfdet.matrix.load import Matrix
from tfdet.matrix.models import UNKNOWN, Environment, PipRequirements
from tfdet.matrix.plan import make_plan
from tfdet_common import bundle_format

PLATFORM = "x86_64-manylinux_2_28"
_HOLE = 1 << 16  # zeros of this size become holes where it is unpacked


@dataclass(frozen=True)
class Order:
    """What to bundle.

    python: CPython minor of the host, by default the environment's own.  part_size: bytes.  preset: of xz, 0 to 9.
    """

    key: str
    device: Device = GPU
    python: str | None = None
    part_size: int = 60 << 20
    preset: int = pack.PRESET
    choice: Choice = field(default_factory=Choice)


@dataclass(frozen=True)
class Made:
    """What was written.  parts: their sizes in bytes."""

    folder: Path
    parts: list[int]
    manifest: dict[str, Any]


def make_bundle(project: Project, matrix: Matrix, order: Order, out: Path, say: Callable[[str], None]) -> Made:
    """Bring the packages, trim, compress, cut; finished steps are kept, and running again goes on from them."""
    environment = matrix.environment(order.key)
    _check(matrix, environment, order)
    _check_folder(out)
    site = install(project, environment, order, say)
    say("looking for what the host does not need")
    contents = site_contents(site, order.choice)
    if order.choice.host_packages:
        contents.left_out.append("packages that the host has itself")
    elif matrix.devices.find_by_cli_name(order.device).needs_driver and not _brings_cuda(contents):
        contents.from_host.append(f"CUDA {environment.cuda}, cuDNN {environment.cudnn}")
    contents.entries += _own(project, matrix, order)
    total = sum(entry.size for entry in contents.entries)
    say(f"compressing {total >> 20} MiB in {len(contents.entries)} files")
    packed = pack.compress(contents.entries, members_cache(), pack.Pace(total, say), order.preset)
    out.mkdir(parents=True, exist_ok=True)
    (out / "manifest.json").unlink(missing_ok=True)  # it must never stand beside parts that it does not fit
    parts = pack.write_parts(packed, out, _stem(order), order.part_size)
    content = pack.manifest(contents.entries, packed, parts, _facts(project, environment, order, contents, glibc(site)))
    with add_path_to_errors(out):
        (out / script.NAME).write_text(script.build(project.runtime), "utf-8")
    _write(out, content, {part["name"] for part in parts})
    return Made(out, [part["size"] for part in parts], content)


def members_cache() -> Path:
    return cache_dir() / "bundles" / "members"


def install(project: Project, environment: Environment, order: Order, say: Callable[[str], None]) -> Path:
    """The environment's packages for the host's Python, in the cache: exactly what the lock file names, by hash."""
    lock = project.lock(order.key, order.device)
    if not lock.exists():
        raise DataError(f"{lock} is not there", f"Make it: scripts/update-locks {order.key}")
    check_lock(lock, framework=framework_of(project, environment))
    python = order.python or _pip(environment).python
    pinned = read_lock(project, order.key, order.device)
    if order.choice.host_packages:
        pinned = restrict_to(pinned, _carried(environment))
    digest = hashlib.sha256(pinned.encode()).hexdigest()[:10]
    folder = cache_dir() / "bundles" / f"{order.key}-{order.device}-py{python}-{digest}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with exclusive_lock(folder):
        if not (folder / "complete").exists():
            say(f"bringing the packages of {lock.name} for CPython {python} (once; a GPU build has up to 2.5 GiB)")
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
    assert environment.pip is not None  # _check has refused the others
    return environment.pip


def _carried(environment: Environment) -> tuple[str, ...]:
    """What goes along to a host that has the framework itself: what the suite is run by, and imports beside it."""
    return ("pytest", "pluggy", "iniconfig", "packaging", "pygments", "nvidia-ml-py", *_pip(environment).beside)


def _check(matrix: Matrix, environment: Environment, order: Order) -> None:
    if environment.pip is None:
        raise UsageError(
            f"{order.key} is an image, not built from packages",
            "Carry the image itself: docker save, docker load; then docker run.",
        )
    if order.python is not None and not re.fullmatch(r"3\.\d{1,2}", order.python):
        raise UsageError(f"--python {order.python}", "Give the host's CPython as MAJOR.MINOR, such as 3.12.")
    if order.part_size < 1 << 20:
        raise UsageError("parts of less than 1 MiB", "Give a larger --part-size, such as 60MiB.")
    of_gpu = order.choice.host_libraries or order.choice.stubs or order.choice.capability
    if of_gpu and not matrix.devices.find_by_cli_name(order.device).needs_driver:
        raise UsageError(
            "a bundle for the CPU holds no GPU code and no CUDA library",
            "Leave out --compute-capability, --use-host-libraries and --stub-libraries, or ask for --device gpu.",
        )


def _check_folder(out: Path) -> None:
    """Only a folder of our own is written into: what else lies there would be carried along.

    It is made: where that cannot be is told before gigabytes are brought and compressed.
    """
    if is_there(out) and not out.is_dir():
        raise UsageError(f"--out {out} is no folder", "Name a new one.")
    if out.is_dir():
        strange = sorted(p.name for p in out.iterdir() if not _ours(p.name))
        if strange:
            raise UsageError(
                f"--out {out} holds other files ({strange[0]})", "Name a new folder, or an older bundle's."
            )
    require_writable(out / "manifest.json", "--out")


def _ours(name: str) -> bool:
    files = ("manifest.json", "manifest.json.part", script.NAME)
    return name in files or re.search(r"\.part-\d+(\.part)?$", name) is not None


def _own(project: Project, matrix: Matrix, order: Order) -> list[Entry]:
    """What is not a package: the runtime, the suite, the plan."""
    plan = json.dumps(make_plan(matrix, order.key, by_priority=True), indent=1, sort_keys=True) + "\n"
    runtime = folder_contents(project.runtime, "runtime", "*/*.py", "*/*.json")
    return [
        Entry("plan.json", plan.encode("utf-8")),
        *(entry for entry in runtime if not entry.path.startswith("runtime/unbundle/")),  # it lies beside the parts
        *folder_contents(project.suite(matrix.environment(order.key).framework), "suite", "test_*.py", "batches.py"),
    ]


def _brings_cuda(contents: Contents) -> bool:
    return any(entry.path.startswith("site/nvidia/") for entry in contents.entries)


def _stem(order: Order) -> str:
    capability = order.choice.capability
    return f"{order.key}-{order.device}" + ("-sm{}{}".format(*capability) if capability else "")


def _facts(
    project: Project, environment: Environment, order: Order, contents: Contents, least_glibc: str
) -> dict[str, Any]:
    capability = order.choice.capability
    leading = re.match(r"\d+(\.\d+)*", environment.min_driver)
    brings = _brings_cuda(contents)
    return {
        "schema": bundle_format.SCHEMA,
        "environment": order.key,
        "device": order.device,
        "python": order.python or _pip(environment).python,
        "glibc": least_glibc,
        "min_driver": leading.group() if leading and environment.min_driver != UNKNOWN else None,
        "compute_capability": "{}.{}".format(*capability) if capability else None,
        "brings_cuda": brings,
        "host_libraries": sorted(contents.from_host) if brings else [],
        "host_packages": _locked(project, environment, order) if order.choice.host_packages else [],
        "trimmed": contents.trimmed,
        "stubbed": contents.stubbed,
        "left_out": contents.left_out,
        "from_host": contents.from_host,
        "disk": sum(map(_disk, contents.entries)),
    }


def _locked(project: Project, environment: Environment, order: Order) -> list[str]:
    """NAME==VERSION, without a build's label, of each package that the host is to have itself, the framework first."""
    requirement = _pip(environment).gpu if order.device == GPU else _pip(environment).cpu
    framework = Requirement(requirement).name
    pinned = parse_pins(project.lock(order.key, order.device).read_text("utf-8"))
    wanted = sorted(pinned.keys() - set(_carried(environment)), key=lambda name: (name != framework, name))
    return [f"{name}=={pinned[name].partition('+')[0]}" for name in wanted]


def _disk(entry: Entry) -> int:
    """Bytes that it takes unpacked: what is blanked stays a hole."""
    holes = sum(end - start - _HOLE for start, end in entry.spans if end - start > 2 * _HOLE)
    return -(-(entry.size - holes) // 4096) * 4096


def _write(out: Path, content: dict[str, Any], parts: set[str]) -> None:
    """The manifest last; parts of an earlier bundle in this folder would only confuse."""
    for path in out.iterdir():
        if _ours(path.name) and path.name not in {*parts, script.NAME}:
            path.unlink()
    unfinished = out / "manifest.json.part"
    with add_path_to_errors(unfinished):
        unfinished.write_text(json.dumps(content, sort_keys=True, separators=(",", ":")) + "\n", "ascii")
    unfinished.replace(out / "manifest.json")


def parse_size(text: str) -> int:
    """60MiB, 100MB, 1GiB or plain bytes; UsageError where it is none."""
    found = re.fullmatch(r"(\d+)\s*(KiB|MiB|GiB|kB|MB|GB|B)?", text.strip())
    if found is None:
        raise UsageError(f"{text!r} is no size", "Give one such as 60MiB.")
    units = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "kB": 10**3, "MB": 10**6, "GB": 10**9}
    return int(found[1]) * units.get(found[2], 1)


def parse_capability(text: str) -> tuple[int, int]:
    """9.0 as (9, 0); UsageError where it is none."""
    found = re.fullmatch(r"(\d{1,2})\.(\d)", text)
    if found is None:
        raise UsageError(f"{text!r} is no compute capability", "Give it as nvidia-smi does, such as 9.0.")
    return int(found[1]), int(found[2])
