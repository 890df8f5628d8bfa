"""A factory of valid records, built by the probe's own code."""

from __future__ import annotations

import hashlib
from typing import Any

from tfdet_common import journal
from tfdet_probe.core import record as probe_record

STACK: dict[str, Any] = {
    "python": "3.7.16",
    "numpy": "1.18.5",
    "keras": None,
    "cuda": None,
    "cudnn": None,
    "driver": None,
    "image": None,
    "image_digest": None,
    "engine": "venv",
    "os": "Linux",
    "cpu": "a CPU",
    "cores": 2,
    "gpu": None,
    "compute_capability": None,
    "gpu_uuid_hash": None,
}


def device_of(model: str) -> dict[str, str]:
    return {"kind": model.split("-")[0], "model": model}


def proof_of(proved: bool) -> dict[str, Any]:
    """Return the field `proof` of a record: two launches of one kernel."""
    reasons = [] if proved else [{"reason": "rounding", "lines": [7], "launches": 1}]
    kernel = {"name": "k", "launches": 2, "proved": 2 if proved else 1, "rules": ["commuting"], "reasons": reasons}
    return {"axes": ["schedule"], "holds_for": "input", "observed": ["serial"], "kernels": [kernel], "host": []}


def make_record(observation: str = "equal", **changes: Any) -> dict[str, Any]:
    """Return a whole record of ten repeats in each process, with a fitting checksum.

    changes: other fields.  relaunches: the number of processes.  device: also only the key of a model, such as
    nvidia-h100.  version: of TensorFlow.
    """
    if isinstance(changes.get("device"), str):
        changes["device"] = device_of(changes["device"])
    if "version" in changes:
        changes["framework"] = {"name": "tensorflow", "version": changes.pop("version")}
    reference, other = "a" * 64, "b" * 64
    report: dict[str, Any] = {
        "reference": reference,
        "digests": [other if observation == "differs" else reference] * 10,
        "differed": list(range(10)) if observation == "differs" else [],
        "seconds": [0.25] * 10,
        "ulp": 1,
        "absolute": 0.5,
        "devices": ["CPU:0"],
    }
    if observation not in ("equal", "differs"):
        report = {"error": {"kind": observation, "type": "Fault", "message": "planted", "where": None}}
    key = {
        "environment": "tf2.0",
        "device": {"kind": "cpu", "model": "cpu"},
        "source": "bias-add-backprop",
        "case": "bias-add-float32-nhwc-eager",
        "mode": "eager",
        "solution": "none",
        "case_hash": "0123456789abcdef",
    }
    provenance = {
        "framework": {"name": "tensorflow", "version": "2.0.0"},
        "stack": STACK,
        "machine": "0" * 12,
        "threads": 0,
        "determinism_environment": {},
        "repeats": 10,
        "relaunches": 1,
        "started": "2026-01-01T00:00:00Z",
        "duration_seconds": 1.5,
    }
    for table in (key, provenance):
        table.update({name: changes.pop(name) for name in list(changes) if name in table})
    built: dict[str, Any] = probe_record.build_record(key, [report] * provenance["relaunches"], provenance)
    built.update(changes)
    built["checksum"] = journal.checksum(built)
    return built


def with_checksum(line: bytes) -> bytes:
    """Return a record's line with a checksum over its other bytes."""
    start = line.find(b'"checksum":"')
    if start < 0:
        return line
    rest = line[start + 78 :]  # after the field: its name, 64 digits, a quotation mark and a comma
    digest = hashlib.sha256(line[:start] + rest.removesuffix(b"\n")).hexdigest().encode()
    return line[:start] + b'"checksum":"' + digest + b'",' + rest
