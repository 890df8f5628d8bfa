"""A record: one observation with its provenance, as one line of JSON (schema version 2)."""

from collections import Counter
from typing import TYPE_CHECKING

from tfdet_common.journal import MAX_DIGESTS, SCHEMA, checksum

if TYPE_CHECKING:  # for type comments alone
    from typing import Callable  # noqa: F401


def build_record(key, reports, provenance, details=lambda schedules, codes, fallback_calls: None):
    # type: (dict, list[dict], dict, Callable) -> dict
    """Build a record from the reports of the processes of one case.

    Args:
        key: {environment, device, source, case, solution, case_hash, mode}; device: {kind, model}.
        reports: one from each process, see child.main; the last may be {"error": ...}.
        provenance: {framework, stack, machine, determinism_environment, started, duration_seconds, repeats,
            relaunches}, and gpu_state for a GPU that reports it.  relaunches is the number of processes.
        details: Device.details.

    Returns:
        The record, with its checksum: the fields of matrix/schema/record.json.
    """
    record = dict(key, schema=SCHEMA)
    record.update(provenance)
    record.update(_statistics(reports))
    codes, calls = (sorted(set(_listed(reports, name))) for name in ("codes", "fallback_calls"))
    device_details = details(_listed(reports, "schedules"), codes, calls)
    if device_details:
        record["device"] = dict(key["device"], details=device_details)
    record["checksum"] = checksum(record)
    return record


def _listed(reports, name):
    return [word for report in reports for word in report.get(name, ())]


def _statistics(reports):
    error = next((r["error"] for r in reports if "error" in r), None)
    done = [r for r in reports if "error" not in r]
    digests = [d for r in done for d in r["digests"]]
    differed = [(i, n) for i, r in enumerate(done) for n in r["differed"]]
    reference = done[0]["reference"] if done else None
    other_digests = sorted(set(digests) - {reference})
    # The first repeat of a process includes building and tuning; under contention all repeats take longer.
    uncontended = [r for r in done if not r.get("contention")]
    seconds = sorted(s for r in uncontended for s in (r["seconds"][1:] or r["seconds"]))
    observation = ("differs" if differed else error["kind"] if error else "equal")
    measured = {
        "observation": observation,
        "runs": len(digests),
        "differed": len(differed),
        "distinct": len(other_digests) + 1 if done else 0,
        "first_differing": {"relaunch": differed[0][0], "repeat": differed[0][1]} if differed else None,  # by process
        "max_ulp": _largest([r["ulp"] for r in done]) if differed else 0,
        "max_absolute": _largest([r["absolute"] for r in done]) if differed else 0.0,
        "digests": ([reference] + other_digests[:MAX_DIGESTS - 1]) if done else [],
        "median_seconds": round(seconds[len(seconds) // 2], 7) if seconds else None,
        "ran_on": done[0].get("devices", []) if done else [],
        "error": error,
    }
    for name in ("kernels", "contention", "proof"):  # if the framework or the device reports them
        values = [r[name] for r in done if r.get(name)]
        if values:
            measured[name] = values[0]
    ranks = [r["ranks"] for r in done if r.get("ranks")]
    if ranks:
        measured["ranks"] = _of_all_processes(ranks)
    return measured


def _of_all_processes(ranks):
    """The field `ranks` of a record: what is counted, counted over all processes."""
    outputs = Counter()  # type: Counter[str]
    for process in ranks:
        outputs.update(process["outputs"])
    return dict(ranks[0], agreed=sum(r["agreed"] for r in ranks), outputs=dict(outputs),
                differed=[sum(counts) for counts in zip(*[r["differed"] for r in ranks])])


def _largest(values):
    return None if None in values else max(values)
