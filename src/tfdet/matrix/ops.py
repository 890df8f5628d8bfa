"""The ops that a framework ships sample inputs for, and what its own lists say of them: data that a program reads out
of a build (scripts/extract-op-lists), matrix/ops/<framework>/<environment>.json, and names.toml beside it, written by
people, as kernels.toml is, which says where an op shows in the binaries.

Each op is a source, with what the lists claim of it; where people wrote a source of that key, theirs is the one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

from pydantic import Field

from tfdet.base.errors import DataError
from tfdet.base.folders import is_folder, is_there, listed
from tfdet.matrix import alerts, source_readings
from tfdet.matrix.call_patterns import ArgumentCondition, CallPattern, Calls, DottedName, Prefix, Value
from tfdet.matrix.devices import CPU, GPU
from tfdet.matrix.field_types import Device, StrictModel, Text
from tfdet.matrix.files import load_json, load_toml
from tfdet.matrix.models import Claim, Environment, Source, SourceAudit


class Op(StrictModel):
    """One op, on the samples that the suite takes of it."""

    key: Text
    name: Text
    variant: str = Field(description="which of the entries of that name")
    samples: int = Field(ge=0, description="that the suite takes of it on a processor; 0: there are none")
    dtype: Text
    dtypes: list[Text] = Field(
        default_factory=list, description="beside it, those that the suite runs it in; none: nobody asked"
    )
    backward: bool = Field(description="has it a gradient?")
    tolerance: float = Field(ge=0, description="by how much the framework's own gradient tests let two runs differ")
    reached: list[Text] = Field(description="ops of the dispatcher that its first sample runs; none: it raised")
    tags: list[Text] = Field(description="of those, the tags that speak of determinism")


class DocumentedEntry(StrictModel):
    """One entry of the documentation's lists."""

    api: Text
    says: Literal["deterministic", "raises"]
    devices: list[Device] = Field(min_length=1)
    backward: bool = Field(description="when it is differentiated only")
    modes: list[Text] = Field(description="arguments that it speaks of")


class Ops(StrictModel):
    """What scripts/extract-op-lists read out of one environment."""

    framework_version: Text
    commit: Text = Field(pattern="^[0-9a-f]{40}$", description="of the framework's sources that it was built from")
    ops: list[Op]
    documented: list[DocumentedEntry]
    lines: dict[str, int] = Field(description="of the places that confirmed.toml names, those that are in this build")


class EntryMapping(StrictModel):
    """Which ops an entry of the documentation's lists means."""

    api: Text
    modes: list[Text] = Field(default=[], description="the entry's, where there are several of one name")
    ops: list[Text] = Field(description="their keys; none: no op of the samples is meant")
    why: str = Field(default="", description="why none")


class Variants(StrictModel):
    """An argument whose value says which of an op's variants runs: they are called as it is, and more may follow."""

    ops: list[Text] = Field(min_length=1, description="their names")
    argument: Text
    at: int | None = Field(default=None, ge=0)
    default: Value | None = Field(default=None, description="where the argument is not given")
    suffix: str = Field(default="", description="what the variant's name has after the value")
    classes: dict[DottedName, int] = Field(default={}, description="that take it, too, and at which place")


class NameMappings(StrictModel):
    """names.toml."""

    module: Prefix = Field(description="under which programs call the ops: this, and the op's name")
    variants: list[Variants] = Field(default=[])
    prefix: Text = Field(description="what the source of an op is called: this, and the op's key")
    solution: Text = Field(description="which the lists speak of")
    seeds: Text = Field(description="the solution that is tried on what draws random numbers")
    cite: list[Text] = Field(min_length=1)
    names: list[EntryMapping] = Field(default=[])


class OpKernels(StrictModel):
    """Where some ops show in the binaries."""

    ops: list[Text] = Field(min_length=1, description="their keys")
    audit: SourceAudit


class KernelsFile(StrictModel):
    """kernels.toml."""

    kernels: list[OpKernels] = Field(default=[])


def load_ops(folder: Path, framework: str) -> dict[str, Ops]:
    """By environment."""
    return {path.stem: _read(path) for path in listed(folder / "ops" / framework, "*.json")}


def _read(path: Path) -> Ops:
    return load_json(path, Ops, "Regenerate it: scripts/extract-op-lists")


def load_names(folder: Path, framework: str) -> NameMappings | None:
    path = folder / "ops" / framework / "names.toml"
    return load_toml(path, NameMappings) if is_there(path) else None


def load_kernels(folder: Path, framework: str) -> dict[str, SourceAudit]:
    """By op."""
    path = folder / "ops" / framework / "kernels.toml"
    if not is_there(path):
        return {}
    return {op: one.audit for one in load_toml(path, KernelsFile).kernels for op in one.ops}


def ops_of_entry(names: NameMappings, entry: DocumentedEntry) -> list[str]:
    """The keys of the ops that an entry speaks of."""
    return [key for name in _mappings_of_entry(names, entry) for key in name.ops]


def _mappings_of_entry(names: NameMappings, entry: DocumentedEntry) -> list[EntryMapping]:
    """Those that speak of its very modes, else those that speak of none."""
    mine = [name for name in names.names if name.api == entry.api]
    return [name for name in mine if name.modes == entry.modes] or [name for name in mine if not name.modes]


def sources(folder: Path, environments: Mapping[str, Environment]) -> dict[str, Source]:
    """Those that the files of all frameworks give."""
    found: dict[str, Source] = {}
    for path in filter(is_folder, listed(folder / "ops")):
        names = load_names(folder, path.name)
        if names is None:
            raise DataError(f"{path}: no names.toml", "It says what the entries of the lists mean.")
        kernels = load_kernels(folder, path.name)
        for key, ops in load_ops(folder, path.name).items():
            raising = _read_to_raise(source_readings.load(folder, path.name), ops)
            claims = _claims(names, ops, environments[key], raising) if key in environments else {}
            for op in ops.ops:
                known, more = found.get(names.prefix + op.key), claims.get(op.key, [])
                if known:
                    source = known.model_copy(update={"claims": [*known.claims, *more]})
                else:
                    source = _source(names, path.name, op, len(found), more)
                    source = source.model_copy(update={"audit": kernels.get(op.key)})
                found[names.prefix + op.key] = source
    return found


def _source(names: NameMappings, framework: str, op: Op, number: int, claims: list[Claim]) -> Source:
    return Source(
        framework=framework,
        title=f"`{title(op)}`",
        group="op",
        order=number,
        api=title(op),
        calls=calls(names, op),
        direction="forward and backward" if op.backward else "forward",
        devices=["cpu", "gpu"],
        raw_ops=op.reached,
        cite=names.cite,
        try_solutions=[names.seeds] if "nondeterministic_seeded" in op.tags else [],
        claims=claims,
    )


def calls(names: NameMappings, op: Op) -> Calls:
    """By its own name, and by those under which the documentation's lists have it."""
    own = names.module + op.name.removeprefix(names.module)
    variants = [one for one in names.variants if op.name in one.ops and op.variant]
    when = [_variant(one, op.variant) for one in variants]
    classes = [
        CallPattern(name=name, when=[_variant(one.model_copy(update={"at": at}), op.variant)])
        for one in variants
        for name, at in one.classes.items()
    ]
    may = f"is it {op.variant}?" if op.variant and not when else ""
    # What differs from its own name by the module alone, ApiNames.similar_aliases finds.
    last = own.rpartition(".")[2]
    listed = [one for one in names.names if op.key in one.ops and one.api.rpartition(".")[2].rstrip("_") != last]
    others = {one.api: CallPattern(name=one.api, may=_ambiguity_hint(one, op)) for one in listed}
    return [CallPattern(name=own, when=when, may=may), *classes, *others.values()]


def _ambiguity_hint(name: EntryMapping, op: Op) -> str:
    if name.modes:
        return f"is it {', '.join(name.modes)}?"
    return f"is it {op.variant}?" if op.variant and len(name.ops) > 1 else ""


def _variant(one: Variants, variant: str) -> ArgumentCondition:
    value = variant.removesuffix(one.suffix)
    return ArgumentCondition(argument=one.argument, at=one.at, values=[value], default=value == one.default)


def title(op: Op) -> str:
    return f"{op.name} ({op.variant})" if op.variant else op.name


_RAISING: dict[source_readings.ReadingKind, Device] = {"raises": CPU, "gpu-raises": GPU}


def _read_to_raise(readings: source_readings.Readings, ops: Ops) -> set[tuple[str, Device]]:
    """The ops of which a build's sources were read to refuse some calls, whatever its documentation says."""
    return {
        (op, _RAISING[one.kind])
        for one in readings.confirmed
        if one.kind in _RAISING and one.locations[0].key in ops.lines
        for op in one.ops
    }


def _claims(
    names: NameMappings, ops: Ops, environment: Environment, raising: set[tuple[str, Device]]
) -> dict[str, list[Claim]]:
    """By op.  Where one entry says that an op raises and another that it does not, it does on some of its samples; so
    does an op of `raising`, (op, device), of which the documentation says that it is deterministic.
    """
    said: dict[tuple[str, Device], set[str]] = {}
    for entry in ops.documented:
        for key in ops_of_entry(names, entry):
            for device in entry.devices:
                said.setdefault((key, device), set()).add(entry.says)
    found: dict[str, list[Claim]] = {}
    for (key, device), says in said.items():
        found.setdefault(key, []).append(_claim(names, environment, device, says, (key, device) in raising))
    return found


def _claim(names: NameMappings, environment: Environment, device: Device, says: set[str], read_to_raise: bool) -> Claim:
    return Claim(
        framework=environment.framework,
        stock=f"=={environment.version}",
        device=device,
        solutions=[names.solution],
        outcome="raises" if "raises" in says else "deterministic",
        partly="raises" in says or read_to_raise,
        cite=names.cite,
    )


def find_faults(folder: Path) -> Iterator[str]:
    """Entries of the lists that names.toml does not know, and keys in it that no build has."""
    for path in filter(is_folder, listed(folder / "ops")):
        names, known = load_names(folder, path.name), load_ops(folder, path.name)
        if names is None or not known:
            continue
        keys = {op.key for ops in known.values() for op in ops.ops}
        readings = source_readings.load(folder, path.name)
        yield from (f"{path}/confirmed.toml: {fault}" for fault in source_readings.find_faults(readings, keys))
        meanings = alerts.load_meanings(folder, path.name)
        yield from (f"{path}/alerts.toml: {fault}" for fault in alerts.find_faults(folder, meanings, known, keys))
        strange = sorted(load_kernels(folder, path.name).keys() - keys)
        yield from (f"{path}/kernels.toml: no op {key}" for key in strange)
        yield from (
            f"{path}/names.toml: {name.api}: no op {key}" for name in names.names for key in name.ops if key not in keys
        )
        for environment, ops in known.items():
            for entry in ops.documented:
                if not _mappings_of_entry(names, entry):
                    spoken = f"{environment}'s documentation speaks of {entry.api} {entry.modes}"
                    yield f"{path}/names.toml: {spoken}, and no [[names]] does"


def to_json(content: dict[str, object]) -> str:
    """The file's text: an op a line, so that a change is seen in a diff."""
    rows = {name: ",\n".join(json.dumps(row, sort_keys=True) for row in content[name])  # type: ignore[attr-defined]
            for name in ("documented", "ops")}  # fmt: skip
    lines = ",\n".join(f"{json.dumps(key)}: {number}" for key, number in sorted(content["lines"].items()))  # type: ignore[attr-defined]
    head = ", ".join(f'"{name}": {json.dumps(content[name])}' for name in ("framework_version", "commit"))
    lists = f'"documented": [\n{rows["documented"]}\n],\n"ops": [\n{rows["ops"]}\n]'
    return f'{{{head},\n{lists},\n"lines": {{\n{lines}\n}}}}\n'
