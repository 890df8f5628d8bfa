"""Does a record fit the matrix and the suite as they are now?"""

from __future__ import annotations

from collections.abc import Mapping

from tfdet.matrix.devices import Devices
from tfdet.matrix.load import Matrix
from tfdet.matrix.ranges import leading_version
from tfdet.store.cases import Cases
from tfdet.store.records import Record
from tfdet_common.variables import CALLERS


def misfits(matrix: Matrix, cases: Cases, record: Record) -> list[str]:
    """Why a record does not fit the matrix and the suite as they are now.

    Of a stale record, whose case has changed since, the suite cannot tell the name any more: it backs no verdict.
    """
    if faults := device_faults(matrix.devices, record):
        return [f"evidence of {record.environment}: {fault}" for fault in faults]
    unknown = [
        f"evidence of {name!r}, which the matrix does not know"
        for name, known in _names(matrix, record)
        if name not in known
    ]
    if unknown:
        return unknown
    what = f"evidence of {record.environment}"
    found = []
    apply = matrix.solutions[record.solution].apply
    theirs = {name: value for name, value in record.determinism_environment.items() if name not in CALLERS}
    if apply is None or (theirs, record.threads) != (apply.env, apply.threads or 0):
        found.append(f"{what} under {record.solution}: made with another {record.solution}")
    environment = matrix.environments[record.environment]
    if record.framework.name != environment.framework:
        found.append(f"{what}: {record.framework.name} ran, not {environment.framework}")
    wanted = leading_version(environment.framework_version)
    if wanted and not f"{record.framework.version}.".startswith(f"{wanted}."):
        found.append(f"{what}: {record.framework.name} {record.framework.version} ran, not {wanted}")
    if not cases.has(record.source, record.case_hash, record.case, record.mode):
        found.append(f"{what}: {record.source} has no case {record.case} ({record.mode})")
    return found


def device_faults(devices: Devices, record: Record) -> list[str]:
    """Why this record cannot be of its device."""
    device, stack = record.device, record.stack
    faults = list(devices.faults(device.kind, device.model, stack.gpu))
    kind = devices.kinds.get(device.kind)
    if kind is None:
        return faults
    of_gpu = (record.kernels, record.gpu_state, stack.compute_capability, stack.gpu_uuid_hash)
    if any(not place.startswith(f"{kind.placement}:") for place in record.ran_on):
        faults.append(f"it ran on another kind of device than {device.model}")
    if not kind.named and any(value is not None for value in of_gpu):
        faults.append(f"{kind.name} is told of, and a GPU's state")
    if strange := set(device.details or ()) - set(kind.details):
        faults.append(f"{device.model} has no {', '.join(sorted(strange))}")
    return faults


def _names(matrix: Matrix, record: Record) -> list[tuple[str, Mapping[str, object]]]:
    return [
        (record.environment, matrix.environments),
        (record.source, matrix.sources),
        (record.solution, matrix.solutions),
    ]
