"""Export the models of matrix/ as JSON Schema: python -m tfdet.publish.schema FOLDER."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tfdet.matrix.alerts import Alerts, Meanings
from tfdet.matrix.confirmed import Readings
from tfdet.matrix.devices import Kind
from tfdet.matrix.fields import Model
from tfdet.matrix.keys import PublicKey
from tfdet.matrix.models import Environment, Framework, Solution, Source
from tfdet.matrix.ops import AllKernels, Names, Ops
from tfdet.matrix.upstream import Upstream
from tfdet.store.audits import StoredAudit
from tfdet.store.batches import Batch
from tfdet.store.costs import Cost
from tfdet.store.records import Record


def schemas() -> dict[str, str]:
    """{file name: text} of matrix/schema."""
    models: dict[str, type[Model]] = {
        "framework": Framework,
        "device": Kind,
        "key": PublicKey,
        "environment": Environment,
        "source": Source,
        "solution": Solution,
        "ops": Ops,
        "names": Names,
        "confirmed": Readings,
        "kernels": AllKernels,
        "alerts": Alerts,
        "alert-names": Meanings,
        "upstream": Upstream,
        "record": Record,
        "audit": StoredAudit,
        "cost": Cost,
        "batch": Batch,
    }
    return {
        f"{name}.json": json.dumps(model.model_json_schema(by_alias=True), indent=1, sort_keys=True) + "\n"
        for name, model in models.items()
    }


if __name__ == "__main__":
    for name, text in schemas().items():
        Path(sys.argv[1], name).write_text(text, "utf-8")
