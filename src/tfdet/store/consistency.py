"""Rules that compare a new or stored record with the current matrix and suite; faults are violations, as texts.

The matrix has the environments, sources and solutions, the suite has the cases. The details of a record's device are
further facts about a virtual device, such as its schedules.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from msgspec import UNSET

from tfdet.matrix.devices import DeviceKind, DeviceRegistry
from tfdet.matrix.field_types import Device
from tfdet.matrix.load import Matrix
from tfdet.matrix.models import Environment, Solution, Source
from tfdet.matrix.plan import impossibility
from tfdet.matrix.ranges import leading_version
from tfdet.store.cases import Cases
from tfdet.store.fast_records import FastRecord, to_record_line
from tfdet.store.records import Record
from tfdet.store.stacks import StackFacts, broken_rules
from tfdet_common import virtual_gpu
from tfdet_common.variables import CALLER_VARIABLES

_is_detail_text = re.compile("[a-z0-9:]+").fullmatch  # a detail is a key or a hash, never a GPU's name
_ends_in_number = re.compile("[^:]*:(0|[1-9][0-9]*)").fullmatch  # as the frameworks name a device: GPU:0
_ABSENT = (None, UNSET)
_KNOWN_DETAILS: Mapping[str, Callable[[str], object]] = {  # what the virtual GPU adds
    # reference: the schedule of the first run, to which the others are compared.
    **dict.fromkeys(("reference", "schedules"), virtual_gpu.is_schedule),
    # code: what ran, PTX or machine code (sass); CHOSEN_CODE: what the caller asked for.
    **dict.fromkeys(("code", virtual_gpu.CHOSEN_CODE), virtual_gpu.CODES.__contains__),
    # A record of the default has no such detail, so that one machine has one record of it.
    virtual_gpu.MULTIPROCESSORS: lambda text: (
        text != str(virtual_gpu.DEFAULT_MULTIPROCESSORS) and 0 < _to_number(text) <= virtual_gpu.MAX_MULTIPROCESSORS
    ),
    # Seed of the addresses of allocations.
    virtual_gpu.PLACEMENT: lambda text: 0 <= _to_number(text) <= virtual_gpu.MAX_PLACEMENT,
    "sources": re.compile("[0-9a-f]{12}").fullmatch,  # hash of the virtual GPU's source code
}


def _to_number(text: str) -> int:
    """Return the number of a text of decimal digits; -1 for any other text."""
    return int(text) if text.isdecimal() else -1


class _Build(NamedTuple):
    """An environment.  version: the beginning of its framework's version; None if that is not known."""

    environment: Environment
    version: str | None


class _Settings(NamedTuple):
    """The settings of a solution.  set: (environment variables, threads); None if the solution is never run."""

    solution: Solution
    set: tuple[Mapping[str, str], int] | None


@dataclass(frozen=True, eq=False)
class ConsistencyRules:
    """The rules of one matrix and suite."""

    devices: DeviceRegistry
    cases: Cases
    environments: Mapping[str, _Build]
    sources: Mapping[str, Source]
    solutions: Mapping[str, _Settings]

    @classmethod
    def from_matrix(cls, matrix: Matrix, cases: Cases) -> ConsistencyRules:
        return cls(
            matrix.devices,
            cases,
            {key: _build(environment) for key, environment in matrix.environments.items()},
            matrix.sources,
            {key: _settings_of(solution) for key, solution in matrix.solutions.items()},
        )

    def faults_of_new(self, record: FastRecord) -> list[str]:
        """Return why a new record does not fit the matrix and the suite; an empty list if it does.

        The case's name is not checked for a stale record, whose case has changed since: such a record backs no verdict.
        """
        return self._faults(record, report_unknown=True)

    def faults_of_stored(self, record: FastRecord) -> list[str]:
        """Return the faults of a stored record; names that the matrix no longer has are accepted: they back no cell."""
        return self._faults(record, report_unknown=False)

    def _faults(self, record: FastRecord, report_unknown: bool) -> list[str]:
        if faults := device_faults(self.devices, record):
            return [f"evidence of {record.environment}: {fault}" for fault in faults]
        variables = tuple(sorted(record.determinism_environment.items()))
        framework = record.framework.name, record.framework.version
        unknown, mismatches = _find_setting_faults(
            self, record.environment, record.source, record.solution, framework, record.threads, variables
        )
        if unknown:
            return [f"evidence of {name!r}, which the matrix does not know" for name in unknown if report_unknown]
        if report_unknown and not mismatches:
            mismatches = self._cell_faults(record)
        return [f"evidence of {record.environment}{fault}" for fault in (*mismatches, *self._case_faults(record))]

    def _cell_faults(self, record: FastRecord) -> tuple[str, ...]:
        """Return why the cell of a record cannot be run; not of a stored one: what the matrix says may be corrected."""
        device = self.devices.kinds[record.device.kind].claim_device
        reason = _find_impossibility(self, record.environment, device, record.source, record.solution)
        return (f": {record.source} under {record.solution} cannot be run there: {reason}",) if reason else ()

    def _case_faults(self, record: FastRecord) -> Iterator[str]:
        if self.cases.is_of_another_source(record.source, record.case_hash):
            yield f": {record.source} has no case {record.case_hash}: it is another source's"
        elif not self.cases.has(record.source, record.case_hash, record.case, record.mode):
            yield f": {record.source} has no case {record.case} ({record.mode})"
        if record.runs and not record.ran_on and self.cases.names_ops(record.case_hash, record.mode):
            yield f": {record.case} ran, but none of its ops was seen on a device"
        if record.ranks not in _ABSENT and not self.cases.has_ranks(record.case_hash):
            yield f": {record.case} is a case of one process, but the record has ranks"


@lru_cache(maxsize=1 << 16)
def _find_setting_faults(
    rules: ConsistencyRules,
    environment: str,
    source: str,
    solution: str,
    framework: tuple[str, str],
    threads: int,
    variables: tuple[tuple[str, str], ...],
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return (names that the matrix does not know, mismatches); mismatches are searched only if all names are known."""
    named = ((environment, rules.environments), (source, rules.sources), (solution, rules.solutions))
    if unknown := tuple(name for name, known in named if name not in known):
        return unknown, ()
    build, settings, (name, version) = rules.environments[environment], rules.solutions[solution], framework
    expected = build.environment.framework
    # The caller, not the solution, sets CALLER_VARIABLES.
    own_variables = {key: value for key, value in variables if key not in CALLER_VARIABLES}
    mismatches = [
        (f" under {solution}: made with another {solution}", settings.set != (own_variables, threads)),
        (f": {solution} is of another framework", settings.solution.framework not in ("", expected)),
        (f": {source} is of another framework", rules.sources[source].framework not in ("", expected)),
        (f": {name} ran, not {expected}", name != expected),
        (
            f": {name} {version} ran, not {build.version}",
            build.version is not None and not f"{version}.".startswith(f"{build.version}."),
        ),
    ]
    return (), tuple(text for text, is_wrong in mismatches if is_wrong)


@lru_cache(maxsize=1 << 14)
def _find_impossibility(
    rules: ConsistencyRules, environment: str, device: Device, source: str, solution: str
) -> str | None:
    return impossibility(
        rules.sources[source], rules.environments[environment].environment, device, solution,
        rules.solutions[solution].solution,
    )  # fmt: skip


def _build(environment: Environment) -> _Build:
    return _Build(environment, leading_version(environment.framework_version))


def _settings_of(solution: Solution) -> _Settings:
    apply = solution.apply
    return _Settings(solution, None if apply is None else (apply.env, apply.threads or 0))


def device_faults(devices: DeviceRegistry, record: Record | FastRecord) -> list[str]:
    """Return why the record contradicts its device or its software stack; an empty list if it does not."""
    fast = record if isinstance(record, FastRecord) else to_record_line(record).record
    stack, details = fast.stack, fast.device.details or {}
    has_gpu_facts = stack.gpu_uuid_hash is not None or fast.gpu_state not in _ABSENT
    has_image = stack.image is not None or stack.image_digest is not None
    facts = StackFacts(fast.model, stack.engine, stack.python, (stack.numpy, fast.framework.version), has_image,
                stack.bundle not in _ABSENT, stack.cores, stack.driver, stack.compute_capability,
                has_gpu_facts)  # fmt: skip
    has_kernels, ran_on = fast.kernels not in _ABSENT, tuple(fast.ran_on)
    faults = _device_and_stack_faults(devices, fast.device.kind, facts, stack.gpu, has_kernels, ran_on)
    kind = devices.kinds.get(fast.device.kind)
    if fast.proof not in _ABSENT and not (kind and kind.virtual):
        faults = (*faults, f"{fast.model} proves nothing")
    if fast.proof and not all(map(virtual_gpu.is_schedule, fast.proof.observed)):
        faults = (*faults, "its proof observed a schedule that does not exist")
    return [*faults, *_detail_faults(kind, fast.model, details)] if kind and (details or kind.virtual) else list(faults)


@lru_cache(maxsize=4096)  # a million records name few devices
def _device_and_stack_faults(
    devices: DeviceRegistry, key: str, facts: StackFacts, gpu: str | None, has_kernels: bool, ran_on: tuple[str, ...]
) -> tuple[str, ...]:
    faults, kind = list(devices.find_faults(key, facts.model, gpu)), devices.kinds.get(key)
    if kind is None:
        return tuple(faults)
    if len(set(ran_on)) < len(ran_on):
        faults.append("it names a place where it ran twice")
    if any(not place.startswith(f"{kind.placement}:") for place in ran_on):
        faults.append(f"it ran on another kind of device than {facts.model}")
    if any(not _ends_in_number(place) for place in ran_on):
        faults.append("it ran on a device without a number")
    if not kind.has_model_name and (facts.is_gpu_reported or has_kernels or facts.capability is not None):
        faults.append(f"device is {kind.name}, but the record has a GPU's state")
    if not kind.needs_driver and facts.driver is not None:
        faults.append(f"device is {kind.name}, but the record has a GPU driver")
    return (*faults, *broken_rules(kind, facts))


def _detail_faults(kind: DeviceKind, model: str, details: Mapping[str, object]) -> Iterator[str]:
    """Yield the device details that the device's kind does not define, that are missing, or whose value is invalid."""
    if unknown := details.keys() - {*kind.details, *kind.optional_details}:
        yield f"{model} has no {', '.join(sorted(unknown))}"
    if kind.virtual and (missing := set(kind.details) - details.keys()):
        yield f"{model} tells no {', '.join(sorted(missing))}: what ran, and in which orders"
    for name, value in sorted(details.items()):
        texts = [str(text) for text in (value if isinstance(value, list) else [value])]
        if len(set(texts)) < len(texts):
            yield f"{model} names one of its {name} twice"
        # Axes are the number of multiprocessors and the placement, which change results as a schedule does.
        if name in virtual_gpu.AXIS_VARIABLES and not isinstance(value, int):
            yield f"{model} has no {name} that is no number"
        is_valid = _KNOWN_DETAILS.get(name, _is_detail_text)
        if invalid := next((text for text in texts if not (_is_detail_text(text) and is_valid(text))), None):
            yield f"{model} has no {name} {invalid!r}"
