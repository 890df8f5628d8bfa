"""Where things are: the only module that knows the folders of a checkout."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tfdet.base.errors import UsageError


@dataclass(frozen=True)
class Project:
    """A checkout of tfdet."""

    root: Path

    @property
    def matrix(self) -> Path:
        return self.root / "matrix"

    @property
    def evidence(self) -> Path:
        return self.matrix / "evidence"

    @property
    def audits(self) -> Path:
        return self.matrix / "audits"

    @property
    def costs(self) -> Path:
        return self.matrix / "costs"

    @property
    def runtime(self) -> Path:
        return self.root / "runtime"

    @property
    def advice(self) -> Path:
        """What the debug tool knows of sources and solutions in its user's environment; generated."""
        return self.runtime / "tfdeterminism" / "trace" / "advice.json"

    @property
    def known(self) -> Path:
        """What the runtime package tells its users to stay nondeterministic; generated."""
        return self.runtime / "tfdeterminism" / "known.json"

    def suite(self, framework: str) -> Path:
        """The cases of a framework."""
        return self.root / "tests" / "suite" / framework

    @property
    def docker(self) -> Path:
        return self.root / "docker"

    @property
    def journals(self) -> Path:
        """Records of runs that have not ended yet."""
        return self.root / ".tfdet" / "journals"

    def lock(self, environment: str, device: str) -> Path:
        return self.docker / "locks" / f"{environment}-{device}.txt"


def find_project() -> Project:
    """The checkout named by TFDET_ROOT, else around the working directory, else the one installed from."""
    told = os.environ.get("TFDET_ROOT")
    here = Path.cwd()
    candidates = [Path(told)] if told else [here, *here.parents, Path(__file__).resolve().parents[3]]
    for candidate in candidates:
        if (candidate / "matrix" / "environments").is_dir():
            return Project(candidate)
    raise UsageError(
        f"no matrix/environments in {candidates[0]} or above",
        "Run tfdet inside a checkout of the project, or set TFDET_ROOT to one.",
    )


def cache_dir() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "tfdet"
