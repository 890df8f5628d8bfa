"""A record: one observation with its provenance, as one line of JSON (schema version 2)."""

from typing import TYPE_CHECKING

from tfdet_common.journal import MAX_DIGESTS, SCHEMA, checksum

if TYPE_CHECKING:  # for type comments alone
    from typing import Callable  # noqa: F401


def build(key, reports, provenance, details=lambda turns: None):
    # type: (dict, list[dict], dict, Callable) -> dict
    """A record of what the processes of one case reported.

    key: {environment, device, source, case, solution, case_hash, mode}; device: {kind, model}.
    provenance: {framework, stack, machine, determinism_environment, started, duration_seconds,
    repeats, relaunches}, and gpu_state where there is a GPU that tells.
    details: see devices.base.
    """
    record = dict(key, schema=SCHEMA)
    record.update(provenance)
    record.update(_measured(reports))
    more = details([turn for report in reports for turn in report.get("turns", ())])
    if more:
        record["device"] = dict(key["device"], details=more)
    record["checksum"] = checksum(record)
    return record


def _measured(reports):
    error = next((r["error"] for r in reports if "error" in r), None)
    done = [r for r in reports if "error" not in r]
    digests = [d for r in done for d in r["digests"]]
    differed = [(i, n) for i, r in enumerate(done) for n in r["differed"]]
    reference = done[0]["reference"] if done else None
    others = sorted(set(digests) - {reference})
    # The first repeat of a fresh process pays for building and tuning; beside other work all take longer.
    in_peace = [r for r in done if not r.get("contention")]
    seconds = sorted(s for r in in_peace for s in (r["seconds"][1:] or r["seconds"]))
    observation = ("differs" if differed else error["kind"] if error else "equal")
    measured = {
        "observation": observation,
        "runs": len(digests),
        "differed": len(differed),
        "distinct": len(others) + 1 if done else 0,
        "first_differing": {"relaunch": differed[0][0], "repeat": differed[0][1]} if differed else None,
        "max_ulp": _largest([r["ulp"] for r in done]) if differed else 0,
        "max_absolute": _largest([r["absolute"] for r in done]) if differed else 0.0,
        "digests": ([reference] + others[:MAX_DIGESTS - 1]) if done else [],
        "median_seconds": round(seconds[len(seconds) // 2], 7) if seconds else None,
        "ran_on": done[0].get("devices", []) if done else [],
        "error": error,
    }
    for name in ("kernels", "contention"):  # where somebody looked
        values = [r[name] for r in done if r.get(name)]
        if values:
            measured[name] = values[0]
    return measured


def _largest(values):
    return None if None in values else max(values)
