"""The folders of a checkout and of an installed tfdet; no other module contains their names."""

from __future__ import annotations

import os
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from pathlib import Path

from tfdet.base.errors import UsageError
from tfdet.base.untrusted import resolve


@dataclass(frozen=True)
class Project:
    """A checkout of tfdet, or the read-only data of an installed tfdet with a folder for the user's data.

    user_data: the folder to which an installed tfdet writes; None for a checkout, which is writable itself.
    """

    root: Path
    _: KW_ONLY
    user_data: Path | None = None

    @property
    def matrix(self) -> Path:
        """Return the folder of the project's data: environments, sources, solutions, claims and evidence."""
        return self.root / "matrix"

    @property
    def evidence(self) -> Path:
        return self.matrix / "evidence"

    @property
    def user_evidence(self) -> Path:
        """Return the store that records are added to."""
        return self.user_data / "evidence" if self.user_data else self.evidence

    @property
    def user_keys(self) -> Path:
        """Return the folder of public keys that this user trusts, besides the keys in the matrix."""
        return self.user_data / "keys" if self.user_data else self.matrix / "keys"

    @property
    def audits(self) -> Path:
        return self.matrix / "audits"

    @property
    def costs(self) -> Path:  # times of the ops that patch() replaces, and of the replacements
        return self.matrix / "costs"

    @property
    def is_installed(self) -> bool:
        """Whether this tfdet was installed without a checkout."""
        return self.user_data is not None

    @cached_property
    def runtime(self) -> Path:
        """Return the folder of the packages that environments import; it contains no other packages."""
        if not self.is_installed:
            return self.root / "runtime"
        from tfdet.base import runtime_folder

        return runtime_folder.materialize_runtime(cache_dir() / "runtime")

    @property
    def advice_file(self) -> Path:
        """Return the generated file of sources and solutions for tfdeterminism.trace."""
        return self.runtime / "tfdeterminism" / "trace" / "advice.json"

    @property
    def known_file(self) -> Path:
        """Return the generated file of ops that remain nondeterministic, for the runtime package."""
        return self.runtime / "tfdeterminism" / "known.json"

    def known_file_of(self, library: str) -> Path:
        """Return the file like `known_file` of a framework, such as "torch", that has its own folder there."""
        return self.known_file.parent / library / self.known_file.name

    def suite(self, framework: str) -> Path:
        """Return the folder of a framework's cases."""
        return self.root / "tests" / "suite" / framework

    @property
    def vgpu(self) -> Path:
        """Return the folder of the virtual GPU's sources."""
        return self.root / "vgpu"

    @property
    def docker(self) -> Path:
        return self.root / "docker"

    @property
    def work_dir(self) -> Path:
        """Return the folder for the files of active runs."""
        return self.user_data or self.root / ".tfdet"

    @property
    def journals(self) -> Path:
        """Return the folder of the records of unfinished runs."""
        return self.work_dir / "journals"

    def lock(self, environment: str, device: str) -> Path:
        return self.docker / "locks" / f"{environment}-{device}.txt"

    def require_checkout(self, option: str) -> None:
        """Raise UsageError if there is no checkout to write into."""
        if self.is_installed:
            raise UsageError(
                f"{option} requires a checkout of the project, and this tfdet is installed without one",
                "Clone the repository and run tfdet there, or set TFDET_ROOT=PATH to the clone.",
            )


def find_project() -> Project:
    """Return the checkout named by TFDET_ROOT, else the one around the working directory, else the one that tfdet was
    installed from, else the data of the installed package.
    """
    root = os.environ.get("TFDET_ROOT")
    here, package = Path.cwd(), resolve(Path(__file__)).parents[1]
    candidates = [Path(root)] if root else [here, *here.parents, package.parents[1]]
    for candidate in candidates:
        if _has_matrix(candidate):
            return Project(candidate)
    if not root and _has_matrix(package / "data"):
        return Project(package / "data", user_data=_data_dir())
    raise UsageError(
        f"no matrix/environments in {candidates[0]} or above",
        "Run tfdet inside a checkout of the project, or set TFDET_ROOT to one.",
    )


def _has_matrix(folder: Path) -> bool:
    return (folder / "matrix" / "environments").is_dir()


def _data_dir() -> Path:
    from platformdirs import user_data_path

    return user_data_path("tfdet", appauthor=False)


def cache_dir() -> Path:
    from platformdirs import user_cache_path

    return user_cache_path("tfdet", appauthor=False)
