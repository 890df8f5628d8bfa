"""Determinism alerts: the calls by which a framework's own code raises for, or warns of, nondeterministic ops.

matrix/alerts/<environment>.json has the alerts of a build, which scripts/extract-determinism-alerts reads from its
libraries.  matrix/ops/<framework>/alerts.toml, which people write, maps their names to ops: those for which the
framework ships sample inputs.

Docstrings and descriptions of the models are part of matrix/schema.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from pydantic import Field

from tfdet.base.folders import is_there
from tfdet.matrix.field_types import Device, StrictModel, Text
from tfdet.matrix.files import load_json, load_toml


class Wheel(StrictModel):
    file: Text
    sha256: Text = Field(pattern="^[0-9a-f]{64}$")


class Alert(StrictModel):
    """The calls with one caller name in one library."""

    library: Text
    caller: Text = Field(description="the name that the code passes to the function that raises or warns")
    calls: int = Field(ge=1, description="number of calls")


class Alerts(StrictModel):
    """The alerts that scripts/extract-determinism-alerts extracted from the GPU build of one environment."""

    wheel: Wheel
    alerts: list[Alert]
    unresolved_calls: int = Field(ge=0, description="number of calls whose caller was not found")

    @property
    def callers(self) -> set[str]:
        return {alert.caller for alert in self.alerts}


class Meaning(StrictModel):
    """A mapping of caller names to ops, devices and the entries of the documentation that they confirm."""

    callers: list[Text] = Field(min_length=1)
    ops: list[Text] = Field(description="keys of the ops; empty: no op with samples is meant")
    apis: list[Text] = Field(default=[], description="names of APIs that raise according to the documentation")
    devices: list[Device] = Field(min_length=1)
    backward: bool = Field(default=False, description="whether the alert applies only to the gradient")
    why: str = Field(default="", description="why `ops` is empty")


class Meanings(StrictModel):
    """The content of alerts.toml."""

    function: Text = Field(description="part of the mangled name of the function that raises or warns")
    libraries: Text = Field(description="pattern of the paths of the libraries in a wheel that are read")
    alerts: list[Meaning]


def load(folder: Path, environment: str) -> Alerts | None:
    """Load the alerts of an environment's build; None if its libraries were not read.  folder: matrix/."""
    path = path_of(folder, environment)
    if not is_there(path):
        return None
    return load_json(path, Alerts, f"Rebuild it: scripts/extract-determinism-alerts {environment}")


def path_of(folder: Path, environment: str) -> Path:
    return folder / "alerts" / f"{environment}.json"


def load_meanings(folder: Path, framework: str) -> Meanings | None:
    path = folder / "ops" / framework / "alerts.toml"
    return load_toml(path, Meanings) if is_there(path) else None


def meanings_in_build(meanings: Meanings | None, alerts: Alerts | None) -> list[Meaning]:
    """Return the meanings that apply to a build, each with those of its callers that the build contains."""
    if meanings is None or alerts is None:
        return []
    callers = alerts.callers
    restricted = [
        meaning.model_copy(update={"callers": [name for name in meaning.callers if name in callers]})
        for meaning in meanings.alerts
    ]
    return [meaning for meaning in restricted if meaning.callers]


def find_faults(
    folder: Path, meanings: Meanings | None, environments: Iterable[str], ops: Iterable[str]
) -> Iterator[str]:
    """Yield faults: alerts of a build that alerts.toml does not list, and ops in alerts.toml that no build has."""
    if meanings is None:
        return
    known, keys = {name for meaning in meanings.alerts for name in meaning.callers}, set(ops)
    yield from (f"no op {key}" for meaning in meanings.alerts for key in meaning.ops if key not in keys)
    for environment in environments:
        alerts = load(folder, environment)
        yield from (f"{environment} raises {name!r}, which no [[alerts]] entry lists"
                    for name in sorted(alerts.callers - known if alerts else ()))  # fmt: skip


def to_json(content: Mapping[str, object], alerts: Iterable[Alert]) -> str:
    """Return the text of a file in matrix/alerts, with one alert per line.  content: the other fields."""
    head = ", ".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in content.items())
    rows = ",\n".join(json.dumps(alert.model_dump()) for alert in alerts)
    return f'{{{head},\n"alerts": [\n{rows}\n]}}\n'
