"""Select cells of the status by framework, device, environment, source and verdict.

A cell is one environment, device, source of nondeterminism and solution; the status has the verdict of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tfdet.base.errors import unknown_name_error
from tfdet.verdicts.infer import Verdict
from tfdet.verdicts.status import Status, StatusCell

VERDICTS = [str(verdict) for verdict in Verdict if verdict is not Verdict.BLANK]


@dataclass(frozen=True)
class Selection:
    """The accepted names of each kind; an empty sequence accepts all names.

    devices: values of `--device` (`gpu`, `vgpu`, `cpu`) or models (`nvidia-h200`).
    """

    frameworks: Sequence[str] = ()
    devices: Sequence[str] = ()
    environments: Sequence[str] = ()
    sources: Sequence[str] = ()
    verdicts: Sequence[str] = ()

    def __bool__(self) -> bool:
        return any((self.frameworks, self.devices, self.environments, self.sources, self.verdicts))

    def cells(self, status: Status) -> list[StatusCell]:
        """Return the selected cells of a status; raise UsageError, with similar names, for an unknown name."""
        self._require_known(status)
        return [cell for cell in status.cells if self._selects(status, cell)]

    def builds(self, status: Status) -> list[str]:
        """Return the environments that `frameworks` and `environments` select."""
        return [
            key
            for key, environment in status.matrix.environments.items()
            if _accepts(self.frameworks, environment.framework) and _accepts(self.environments, key)
        ]

    def _require_known(self, status: Status) -> None:
        matrix = status.matrix
        cli_names = [kind.cli_name for kind in matrix.devices.kinds.values()]
        for kind, selected, known_names in (
            ("framework", self.frameworks, list(matrix.frameworks)),
            ("device", self.devices, [*cli_names, *sorted({cell.key.device for cell in status.cells})]),
            ("environment", self.environments, list(matrix.environments)),
            ("source", self.sources, list(matrix.sources)),
            ("verdict", self.verdicts, VERDICTS),
        ):
            for name in selected:
                if name not in known_names:
                    raise unknown_name_error(kind, name, known_names)

    def _selects(self, status: Status, cell: StatusCell) -> bool:
        key = cell.key
        kind = status.matrix.devices.kind(key.device)
        return (
            _accepts(self.frameworks, status.matrix.environments[key.environment].framework)
            and (_accepts(self.devices, key.device) or (kind is not None and kind.cli_name in self.devices))
            and _accepts(self.environments, key.environment)
            and _accepts(self.sources, key.source)
            and _accepts(self.verdicts, str(cell.inferred.verdict))
        )


def _accepts(selected: Sequence[str], name: str) -> bool:
    return not selected or name in selected
