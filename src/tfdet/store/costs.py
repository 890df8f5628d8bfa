"""Time and memory of tfdeterminism's replaced ops: matrix/costs/<device>/<env>.jsonl, by benchmarks/patches.py."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, ValidationError

from tfdet.base.errors import DataError
from tfdet.base.files import write_atomic
from tfdet.base.folders import list_entries
from tfdet.base.paths import Project
from tfdet.matrix.field_types import StrictModel, Text, format_validation_error
from tfdeterminism.patches import PATCHES

REMEASURE_COMMAND = "python benchmarks/patches.py ENV --write"


class Cost(StrictModel):
    """The cost of a replaced op and of the original op in one run.  Times are in seconds, memory is in MiB."""

    environment: Text
    device: Text
    patch: Text
    size: Text = Field(description="size of the computation, such as 16x224x224x3")
    seconds: float = Field(gt=0, description="median time of the replaced op")
    original_seconds: float = Field(gt=0)
    mib: float = Field(ge=0, description="memory peak of the replaced op, including its inputs and outputs")
    original_mib: float = Field(ge=0)
    eager_seconds: float | None = Field(
        gt=0, description="median time of an eager call with the smallest inputs; null: not called eagerly"
    )
    original_eager_seconds: float | None = Field(gt=0)
    repeats: int = Field(ge=1)
    tensorflow: Text
    processor: Text
    started: Text = Field(description="UTC")

    @property
    def time_ratio(self) -> float:
        return self.seconds / self.original_seconds

    @property
    def memory_ratio(self) -> float:
        """The ratio of the memory peaks; the original counts as at least 1 MiB, below which the ratio is noise."""
        return self.mib / max(self.original_mib, 1.0)


def write(project: Project, device: str, environment: str, costs: list[Cost]) -> Path:
    path = project.costs / device / f"{environment}.jsonl"
    write_atomic(
        path, "".join(cost.model_dump_json() + "\n" for cost in sorted(costs, key=lambda cost: (cost.patch, cost.size)))
    )
    return path


def load(path: Path) -> list[Cost]:
    """Read the costs of one file; raise DataError with the invalid line."""
    costs = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        try:
            costs.append(Cost.model_validate_json(line))
        except ValidationError as error:
            fault = format_validation_error(error.errors()[0], "line")
            raise DataError(f"{path}:{number}: {fault}", f"Measure again: {REMEASURE_COMMAND}") from error
    return costs


def costs_of_source(project: Project, environment: str, source: str) -> list[Cost]:
    """Return the measured costs, in an environment, of the patches that serve a source."""
    serving = {key for key, patch in PATCHES.items() if source in patch.sources}
    files = list_entries(project.costs, f"*/{environment}.jsonl")
    return [cost for path in files for cost in load(path) if cost.patch in serving]
