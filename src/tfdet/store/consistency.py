"""Does a record fit the matrix and the suite as they are now?  One set of rules for all that is taken or read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from msgspec import UNSET

from tfdet.matrix.devices import DeviceKind, DeviceRegistry
from tfdet.matrix.load import Matrix
from tfdet.matrix.models import Environment, Solution
from tfdet.matrix.ranges import leading_version
from tfdet.store.cases import Cases
from tfdet.store.fast_records import FastRecord, to_record_line
from tfdet.store.records import Record
from tfdet.store.stacks import StackFacts, broken_rules
from tfdet_common import virtual_gpu
from tfdet_common.variables import CALLER_VARIABLES

_WORD = re.compile("[a-z0-9:]+").fullmatch  # a detail is a key or a hash, and no card's name


_ABSENT = (None, UNSET)
_KNOWN_DETAILS: Mapping[str, Callable[[str], object]] = {  # what the virtual GPU adds
    **dict.fromkeys(("reference", "schedules"), virtual_gpu.is_schedule),
    **dict.fromkeys(("code", virtual_gpu.CHOSEN_CODE), virtual_gpu.CODES.__contains__),
}


class _Build(NamedTuple):
    """What an environment runs.  version: how that of its framework begins, where that is known."""

    framework: str
    version: str | None


class _Settings(NamedTuple):
    """What a solution sets; None: it is never run."""

    framework: str
    set: tuple[Mapping[str, str], int] | None


@dataclass(frozen=True, eq=False)
class ConsistencyRules:
    """sources: {key: its framework, if it is one's alone}."""

    devices: DeviceRegistry
    cases: Cases
    environments: Mapping[str, _Build]
    sources: Mapping[str, str]
    solutions: Mapping[str, _Settings]

    @classmethod
    def from_matrix(cls, matrix: Matrix, cases: Cases) -> ConsistencyRules:
        return cls(
            matrix.devices,
            cases,
            {key: _build(one) for key, one in matrix.environments.items()},
            {key: one.framework for key, one in matrix.sources.items()},
            {key: _set_by(one) for key, one in matrix.solutions.items()},
        )

    def faults_of_new(self, g: FastRecord) -> list[str]:
        """Why this record does not fit.

        Of a stale record, whose case has changed since, the suite cannot tell the name any more: it backs no verdict.
        """
        return self._faults(g, strangers=True)

    def faults_of_stored(self, g: FastRecord) -> list[str]:
        """The same of what lies in the store: what the matrix names no more backs no cell, and stops nobody."""
        return self._faults(g, strangers=False)

    def _faults(self, g: FastRecord, strangers: bool) -> list[str]:
        if faults := device_faults(self.devices, g):
            return [f"evidence of {g.environment}: {fault}" for fault in faults]
        told = tuple(sorted(g.determinism_environment.items()))
        ran = g.framework.name, g.framework.version
        unknown, odd = _settings(self, g.environment, g.source, g.solution, ran, g.threads, told)
        if unknown:
            return [f"evidence of {name!r}, which the matrix does not know" for name in unknown if strangers]
        return [f"evidence of {g.environment}{fault}" for fault in (*odd, *self._case(g))]

    def _case(self, g: FastRecord) -> Iterator[str]:
        if self.cases.is_anothers(g.source, g.case_hash):
            yield f": {g.source} has no case {g.case_hash}: it is another source's"
        elif not self.cases.has(g.source, g.case_hash, g.case, g.mode):
            yield f": {g.source} has no case {g.case} ({g.mode})"


@lru_cache(maxsize=1 << 16)
def _settings(
    rules: ConsistencyRules,
    environment: str,
    source: str,
    solution: str,
    ran: tuple[str, str],
    threads: int,
    told: tuple[tuple[str, str], ...],
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(names that the matrix does not know; else what does not fit to them)."""
    named = ((environment, rules.environments), (source, rules.sources), (solution, rules.solutions))
    if unknown := tuple(name for name, known in named if name not in known):
        return unknown, ()
    build, settings, (name, version) = rules.environments[environment], rules.solutions[solution], ran
    theirs = {key: value for key, value in told if key not in CALLER_VARIABLES}
    odd = [
        (f" under {solution}: made with another {solution}", settings.set != (theirs, threads)),
        (f": {solution} is of another framework", settings.framework not in ("", build.framework)),
        (f": {source} is of another framework", rules.sources[source] not in ("", build.framework)),
        (f": {name} ran, not {build.framework}", name != build.framework),
        (
            f": {name} {version} ran, not {build.version}",
            build.version is not None and not f"{version}.".startswith(f"{build.version}."),
        ),
    ]
    return (), tuple(text for text, wrong in odd if wrong)


def _build(environment: Environment) -> _Build:
    return _Build(environment.framework, leading_version(environment.framework_version))


def _set_by(solution: Solution) -> _Settings:
    apply = solution.apply
    return _Settings(solution.framework, None if apply is None else (apply.env, apply.threads or 0))


def device_faults(devices: DeviceRegistry, record: Record | FastRecord) -> list[str]:
    """Why this record cannot be of its device, or of its stack."""
    g = record if isinstance(record, FastRecord) else to_record_line(record).record
    stack, details = g.stack, g.device.details or {}
    card = stack.gpu_uuid_hash is not None or g.gpu_state not in _ABSENT
    told = StackFacts(g.model, stack.engine, stack.image is not None or stack.image_digest is not None, stack.cores,
                stack.driver, stack.compute_capability, card)  # fmt: skip
    faults = _fixed(devices, g.device.kind, told, stack.gpu, g.kernels not in _ABSENT, tuple(g.ran_on))
    kind = devices.kinds.get(g.device.kind)
    if g.proof not in _ABSENT and not (kind and kind.virtual):
        faults = (*faults, f"{g.model} proves nothing")
    return [*faults, *_odd(kind, g.model, details)] if kind and (details or kind.virtual) else list(faults)


@lru_cache(maxsize=4096)  # a million records tell of few devices
def _fixed(
    devices: DeviceRegistry, key: str, told: StackFacts, gpu: str | None, kernels: bool, ran_on: tuple[str, ...]
) -> tuple[str, ...]:
    faults, kind = list(devices.find_faults(key, told.model, gpu)), devices.kinds.get(key)
    if kind is None:
        return tuple(faults)
    if any(not place.startswith(f"{kind.placement}:") for place in ran_on):
        faults.append(f"it ran on another kind of device than {told.model}")
    if not kind.has_model_name and (told.seen or kernels or told.capability is not None):
        faults.append(f"device is {kind.name}, but the record has a GPU's state")
    if not kind.needs_driver and told.driver is not None:
        faults.append(f"device is {kind.name}, but the record has a GPU driver")
    return (*faults, *broken_rules(kind, told))


def _odd(kind: DeviceKind, model: str, details: Mapping[str, object]) -> Iterator[str]:
    """What a record adds that its kind does not tell of, or not in these words, or does not add."""
    if strange := details.keys() - {*kind.details, *kind.optional_details}:
        yield f"{model} has no {', '.join(sorted(strange))}"
    if kind.virtual and (missing := set(kind.details) - details.keys()):
        yield f"{model} tells no {', '.join(sorted(missing))}: what ran, and in which orders"
    for name, value in sorted(details.items()):
        texts = [str(text) for text in (value if isinstance(value, list) else [value])]
        known = _KNOWN_DETAILS.get(name, _WORD)
        if odd := next((text for text in texts if not (_WORD(text) and known(text))), None):
            yield f"{model} has no {name} {odd!r}"
