"""Export the models of matrix/ and of the debug tool's report as JSON Schema: python -m tfdet.publish.schema FOLDER."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pydantic import BaseModel

from tfdet.engines.locate import LocateResult
from tfdet.matrix.alerts import Alerts, Meanings
from tfdet.matrix.devices import DeviceKind
from tfdet.matrix.keys import PublicKey
from tfdet.matrix.models import Environment, Framework, Solution, Source
from tfdet.matrix.ops import KernelsFile, NameMappings, Ops
from tfdet.matrix.source_readings import Readings
from tfdet.matrix.upstream import Upstream
from tfdet.store.audits import StoredAudit
from tfdet.store.batch_invariance import BatchInvarianceRecord
from tfdet.store.costs import Cost
from tfdet.store.records import Record


def schemas() -> dict[str, str]:
    """Return {file name: text} of matrix/schema."""
    models: dict[str, type[BaseModel]] = {
        "framework": Framework,
        "device": DeviceKind,
        "key": PublicKey,
        "environment": Environment,
        "source": Source,
        "solution": Solution,
        "ops": Ops,
        "names": NameMappings,
        "confirmed": Readings,  # matrix/ops/<framework>/confirmed.toml: sources that somebody read and confirmed
        "kernels": KernelsFile,
        "alerts": Alerts,
        "alert-names": Meanings,
        "upstream": Upstream,
        "record": Record,
        "audit": StoredAudit,
        "cost": Cost,
        "batch": BatchInvarianceRecord,
        "trace-report": LocateResult,
    }
    return {
        f"{name}.json": json.dumps(model.model_json_schema(by_alias=True), indent=1, sort_keys=True) + "\n"
        for name, model in models.items()
    }


if __name__ == "__main__":
    for name, text in schemas().items():
        Path(sys.argv[1], name).write_text(text, "utf-8")
