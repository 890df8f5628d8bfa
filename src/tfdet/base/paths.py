"""Where things are: the only module that knows the folders of a checkout, or of an installed tfdet."""

from __future__ import annotations

import os
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from pathlib import Path

from tfdet.base.errors import UsageError
from tfdet.base.untrusted import resolve


@dataclass(frozen=True)
class Project:
    """A checkout of tfdet, or what an installed one brings (read-only) and a folder of its user's."""

    root: Path
    _: KW_ONLY
    home: Path | None = None  # None: a checkout, which is written into itself

    @property
    def matrix(self) -> Path:
        return self.root / "matrix"

    @property
    def evidence(self) -> Path:
        return self.matrix / "evidence"

    @property
    def own_evidence(self) -> Path:
        """Where records are taken into."""
        return self.home / "evidence" if self.home else self.evidence

    @property
    def own_keys(self) -> Path:
        """Public keys that this tfdet's user believes, besides those that came with it."""
        return self.home / "keys" if self.home else self.matrix / "keys"

    @property
    def audits(self) -> Path:
        return self.matrix / "audits"

    @property
    def costs(self) -> Path:
        return self.matrix / "costs"

    @cached_property
    def runtime(self) -> Path:
        """What environments import, and nothing else of this host's."""
        if self.home is None:
            return self.root / "runtime"
        from tfdet.base import runtime_folder

        return runtime_folder.materialize_runtime(cache_dir() / "runtime")

    @property
    def advice(self) -> Path:
        """What the debug tool knows of sources and solutions in its user's environment; generated."""
        return self.runtime / "tfdeterminism" / "trace" / "advice.json"

    @property
    def known(self) -> Path:
        """What the runtime package tells its users to stay nondeterministic; generated."""
        return self.runtime / "tfdeterminism" / "known.json"

    def known_of(self, library: str) -> Path:
        """The same, of a framework that has a folder of its own there."""
        return self.known.parent / library / self.known.name

    def suite(self, framework: str) -> Path:
        """The cases of a framework."""
        return self.root / "tests" / "suite" / framework

    @property
    def vgpu(self) -> Path:
        """The virtual GPU's sources."""
        return self.root / "vgpu"

    @property
    def docker(self) -> Path:
        return self.root / "docker"

    @property
    def work(self) -> Path:
        """What runs leave while they are under way."""
        return self.home or self.root / ".tfdet"

    @property
    def journals(self) -> Path:
        """Records of runs that have not ended yet."""
        return self.work / "journals"

    def lock(self, environment: str, device: str) -> Path:
        return self.docker / "locks" / f"{environment}-{device}.txt"

    def need_checkout(self, asked: str) -> None:
        """UsageError where there is none to be written into."""
        if self.home is not None:
            raise UsageError(
                f"{asked} is for a checkout of the project, and this tfdet is installed without one",
                "Clone the repository and run it there, or name your clone: TFDET_ROOT=/path/to/it tfdet ...",
            )


def find_project() -> Project:
    """The checkout named by TFDET_ROOT, else around the working directory, else the one installed from; where there is
    none, what the package brings.
    """
    told = os.environ.get("TFDET_ROOT")
    here, package = Path.cwd(), resolve(Path(__file__)).parents[1]
    candidates = [Path(told)] if told else [here, *here.parents, package.parents[1]]
    for candidate in candidates:
        if _has_matrix(candidate):
            return Project(candidate)
    if not told and _has_matrix(package / "data"):
        return Project(package / "data", home=_data_dir())
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
