"""Which cells somebody asks for: by framework, device, environment, source and verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tfdet.base.errors import unknown_name_error
from tfdet.verdicts.infer import Verdict
from tfdet.verdicts.status import Status, StatusCell

VERDICTS = [str(verdict) for verdict in Verdict if verdict is not Verdict.BLANK]


@dataclass(frozen=True)
class Selection:
    """Names of each kind, any of which a cell may have; none of a kind selects all.

    devices: words of `--device` (`gpu`, `vgpu`, `cpu`) or models (`nvidia-h200`).
    """

    frameworks: Sequence[str] = ()
    devices: Sequence[str] = ()
    environments: Sequence[str] = ()
    sources: Sequence[str] = ()
    verdicts: Sequence[str] = ()

    def __bool__(self) -> bool:
        return any((self.frameworks, self.devices, self.environments, self.sources, self.verdicts))

    def cells(self, found: Status) -> list[StatusCell]:
        """The cells of `found` that are selected; UsageError with the nearest names for one that does not exist."""
        self._require_known(found)
        return [cell for cell in found.cells if self._has(found, cell)]

    def builds(self, found: Status) -> list[str]:
        """The environments that framework and environment select."""
        return [
            key
            for key, environment in found.matrix.environments.items()
            if _among(self.frameworks, environment.framework) and _among(self.environments, key)
        ]

    def _require_known(self, found: Status) -> None:
        matrix = found.matrix
        words = [kind.cli_name for kind in matrix.devices.kinds.values()]
        for kind, asked, known in (
            ("framework", self.frameworks, list(matrix.frameworks)),
            ("device", self.devices, [*words, *sorted({cell.key.device for cell in found.cells})]),
            ("environment", self.environments, list(matrix.environments)),
            ("source", self.sources, list(matrix.sources)),
            ("verdict", self.verdicts, VERDICTS),
        ):
            for name in asked:
                if name not in known:
                    raise unknown_name_error(kind, name, known)

    def _has(self, found: Status, cell: StatusCell) -> bool:
        key = cell.key
        kind = found.matrix.devices.kind(key.device)
        return (
            _among(self.frameworks, found.matrix.environments[key.environment].framework)
            and (_among(self.devices, key.device) or (kind is not None and kind.cli_name in self.devices))
            and _among(self.environments, key.environment)
            and _among(self.sources, key.source)
            and _among(self.verdicts, str(cell.cell.verdict))
        )


def _among(asked: Sequence[str], name: str) -> bool:
    return not asked or name in asked
