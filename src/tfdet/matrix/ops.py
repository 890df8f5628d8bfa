"""The ops for which a framework ships sample inputs, and what its own lists claim of their determinism.

matrix/ops/<framework>/<environment>.json is data that scripts/extract-op-lists reads from a build.  In the same folder
people write names.toml, which maps entries of the lists to ops, and kernels.toml, which maps ops to kernels.
confirmed.toml has readings: what people found in the framework's source code about ops, with the locations there.

Each op becomes a source with the lists' claims; a source of the same key in matrix/sources replaces it.

Docstrings and descriptions of the models are part of matrix/schema.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

from pydantic import Field

from tfdet.base.errors import DataError
from tfdet.base.folders import is_folder, is_there, list_entries
from tfdet.matrix import alerts, source_readings
from tfdet.matrix.call_patterns import ArgumentCondition, CallPattern, Calls, DottedName, Prefix, Value
from tfdet.matrix.devices import CPU, GPU
from tfdet.matrix.field_types import Device, StrictModel, Text
from tfdet.matrix.files import load_json, load_toml
from tfdet.matrix.models import Claim, Environment, Source, SourceAudit


class Op(StrictModel):
    """One op, with the properties that its samples in the suite show."""

    key: Text
    name: Text
    variant: str = Field(description="name of the variant, if several entries have the same name")
    samples: int = Field(ge=0, description="number of samples that the suite uses on a CPU; 0: the op has none")
    dtype: Text
    dtypes: list[Text] = Field(
        default_factory=list, description="further dtypes in which the suite runs the op; empty: not examined"
    )
    backward: bool = Field(description="whether the op has a gradient")
    tolerance: float = Field(
        ge=0, description="difference between two runs that the framework's own gradient tests allow"
    )
    reached: list[Text] = Field(
        description="ops of the dispatcher that the first sample executes; empty: the sample raised"
    )
    tags: list[Text] = Field(description="tags of the ops in `reached` that concern determinism")


class DocumentedEntry(StrictModel):
    """One entry of the documentation's lists."""

    api: Text
    says: Literal["deterministic", "raises"]
    devices: list[Device] = Field(min_length=1)
    backward: bool = Field(description="whether the entry applies only to the gradient")
    modes: list[Text] = Field(description="arguments to which the entry applies")


class Ops(StrictModel):
    """The ops and documented lists that scripts/extract-op-lists extracted from one environment."""

    framework_version: Text
    commit: Text = Field(pattern="^[0-9a-f]{40}$", description="commit of the framework's sources")
    ops: list[Op]
    documented: list[DocumentedEntry]
    lines: dict[str, int] = Field(
        description="{location in confirmed.toml: line number} for the locations in this build"
    )


class EntryMapping(StrictModel):
    """A mapping of an entry of the documentation's lists to ops."""

    api: Text
    modes: list[Text] = Field(default=[], description="modes of the entry, if several entries have the same name")
    ops: list[Text] = Field(description="keys of the ops; empty: no op with samples is meant")
    why: str = Field(default="", description="why `ops` is empty")


class Variants(StrictModel):
    """An argument whose value selects the variant of an op: the variant's name is the value, then `suffix`."""

    ops: list[Text] = Field(min_length=1, description="names of the ops")
    argument: Text
    at: int | None = Field(default=None, ge=0)
    default: Value | None = Field(default=None, description="value of the argument if a call does not pass it")
    suffix: str = Field(default="", description="text after the value in the variant's name")
    classes: dict[DottedName, int] = Field(default={}, description="{class that takes the same argument: its position}")


class NameMappings(StrictModel):
    """The content of names.toml."""

    module: Prefix = Field(description="prefix that, with the op's name, gives the name that programs call")
    variants: list[Variants] = Field(default=[])
    prefix: Text = Field(description="prefix that, with the op's key, gives the key of the op's source")
    solution: Text = Field(description="solution to which the lists apply")
    seeds: Text = Field(description="solution that is tried on ops that draw random numbers")
    cite: list[Text] = Field(min_length=1)
    names: list[EntryMapping] = Field(default=[])


class OpKernels(StrictModel):
    """The traces of some ops in shipped binaries."""

    ops: list[Text] = Field(min_length=1, description="keys of the ops")
    audit: SourceAudit


class KernelsFile(StrictModel):
    """The content of kernels.toml."""

    kernels: list[OpKernels] = Field(default=[])


def load_ops(folder: Path, framework: str) -> dict[str, Ops]:
    """Return {environment: ops of its build}."""
    return {path.stem: _load_build(path) for path in list_entries(folder / "ops" / framework, "*.json")}


def _load_build(path: Path) -> Ops:
    return load_json(path, Ops, "Regenerate it: scripts/extract-op-lists")


def load_names(folder: Path, framework: str) -> NameMappings | None:
    path = folder / "ops" / framework / "names.toml"
    return load_toml(path, NameMappings) if is_there(path) else None


def load_kernels(folder: Path, framework: str) -> dict[str, SourceAudit]:
    """Return {key of an op: its audit}."""
    path = folder / "ops" / framework / "kernels.toml"
    if not is_there(path):
        return {}
    return {op: entry.audit for entry in load_toml(path, KernelsFile).kernels for op in entry.ops}


def ops_of_entry(names: NameMappings, entry: DocumentedEntry) -> list[str]:
    """Return the keys of the ops that an entry means."""
    return [key for mapping in _mappings_of_entry(names, entry) for key in mapping.ops]


def _mappings_of_entry(names: NameMappings, entry: DocumentedEntry) -> list[EntryMapping]:
    """Return the mappings with the entry's modes or, if there are none, those without modes."""
    mappings = [mapping for mapping in names.names if mapping.api == entry.api]
    same_modes = [mapping for mapping in mappings if mapping.modes == entry.modes]
    return same_modes or [mapping for mapping in mappings if not mapping.modes]


def load_sources(folder: Path, environments: Mapping[str, Environment]) -> dict[str, Source]:
    """Return {key: source} for the ops of all frameworks."""
    sources: dict[str, Source] = {}
    for path in filter(is_folder, list_entries(folder / "ops")):
        names = load_names(folder, path.name)
        if names is None:
            raise DataError(f"{path}: no names.toml", "It says what the entries of the lists mean.")
        kernels = load_kernels(folder, path.name)
        for key, ops in load_ops(folder, path.name).items():
            raising = _raising_ops(source_readings.load(folder, path.name), ops)
            claims_by_op = _claims_by_op(names, ops, environments[key], raising) if key in environments else {}
            for op in ops.ops:
                existing, claims = sources.get(names.prefix + op.key), claims_by_op.get(op.key, [])
                if existing:
                    source = existing.model_copy(update={"claims": [*existing.claims, *claims]})
                else:
                    source = _to_source(names, path.name, op, len(sources), claims)
                    source = source.model_copy(update={"audit": kernels.get(op.key)})
                sources[names.prefix + op.key] = source
    return sources


def _to_source(names: NameMappings, framework: str, op: Op, number: int, claims: list[Claim]) -> Source:
    return Source(
        framework=framework,
        title=f"`{title(op)}`",
        group="op",
        order=number,
        api=title(op),
        calls=_op_calls(names, op),
        direction="forward and backward" if op.backward else "forward",
        devices=["cpu", "gpu"],
        raw_ops=op.reached,
        cite=names.cite,
        try_solutions=[names.seeds] if "nondeterministic_seeded" in op.tags else [],
        claims=claims,
    )


def _op_calls(names: NameMappings, op: Op) -> Calls:
    """Return patterns of the op's calls, by its own name and by its names in the documentation's lists."""
    own_name = names.module + op.name.removeprefix(names.module)
    all_variants = [variants for variants in names.variants if op.name in variants.ops and op.variant]
    conditions = [_variant_condition(variants, op.variant) for variants in all_variants]
    classes = [
        CallPattern(name=name, when=[_variant_condition(variants.model_copy(update={"at": at}), op.variant)])
        for variants in all_variants
        for name, at in variants.classes.items()
    ]
    may = f"is it {op.variant}?" if op.variant and not conditions else ""
    # Names that differ from the own name by the module only are covered by ApiNames.similar_aliases.
    last = own_name.rpartition(".")[2]
    mappings = [m for m in names.names if op.key in m.ops and m.api.rpartition(".")[2].rstrip("_") != last]
    others = {m.api: CallPattern(name=m.api, may=_ambiguity_hint(m, op)) for m in mappings}
    return [CallPattern(name=own_name, when=conditions, may=may), *classes, *others.values()]


def _ambiguity_hint(mapping: EntryMapping, op: Op) -> str:
    """Return the question whether a call by the mapping's name is one of this op; empty if it always is."""
    if mapping.modes:
        return f"is it {', '.join(mapping.modes)}?"
    return f"is it {op.variant}?" if op.variant and len(mapping.ops) > 1 else ""


def _variant_condition(variants: Variants, variant: str) -> ArgumentCondition:
    """Return the condition on the argument with which a call runs this variant of an op."""
    value = variant.removesuffix(variants.suffix)
    return ArgumentCondition(
        argument=variants.argument, at=variants.at, values=[value], default=value == variants.default
    )


def title(op: Op) -> str:
    """Return the op's name with its variant, for pages and messages."""
    return f"{op.name} ({op.variant})" if op.variant else op.name


# The kinds of readings about ops that raise although no list documents it.
_DEVICES_BY_KIND: dict[source_readings.ReadingKind, Device] = {"raises": CPU, "gpu-raises": GPU}


def _raising_ops(readings: source_readings.Readings, ops: Ops) -> set[tuple[str, Device]]:
    """Return the (op, device) whose sources in a build refuse some calls, whatever the documentation says."""
    return {
        (op, _DEVICES_BY_KIND[reading.kind])
        for reading in readings.confirmed
        if reading.kind in _DEVICES_BY_KIND and reading.locations[0].key in ops.lines
        for op in reading.ops
    }


def _claims_by_op(
    names: NameMappings, ops: Ops, environment: Environment, raising: set[tuple[str, Device]]
) -> dict[str, list[Claim]]:
    """Return {key of an op: claims of the documentation's lists}.

    raising: (op, device) that refuse some calls. An op that is documented as raising, or is in `raising`, has a claim
    that applies to some of its samples only.
    """
    statements: dict[tuple[str, Device], set[str]] = {}
    for entry in ops.documented:
        for key in ops_of_entry(names, entry):
            for device in entry.devices:
                statements.setdefault((key, device), set()).add(entry.says)
    claims: dict[str, list[Claim]] = {}
    for (key, device), says in statements.items():
        claims.setdefault(key, []).append(_to_claim(names, environment, device, says, (key, device) in raising))
    return claims


def _to_claim(names: NameMappings, environment: Environment, device: Device, says: set[str], is_raising: bool) -> Claim:
    return Claim(
        framework=environment.framework,
        stock=f"=={environment.version}",
        device=device,
        solutions=[names.solution],
        outcome="raises" if "raises" in says else "deterministic",
        partly="raises" in says or is_raising,
        cite=names.cite,
    )


def find_faults(folder: Path) -> Iterator[str]:
    """Yield faults of matrix/ops: entries of the lists that names.toml does not map, and keys that no build has."""
    for path in filter(is_folder, list_entries(folder / "ops")):
        names, builds = load_names(folder, path.name), load_ops(folder, path.name)
        if names is None or not builds:
            continue
        keys = {op.key for ops in builds.values() for op in ops.ops}
        readings = source_readings.load(folder, path.name)
        yield from (f"{path}/confirmed.toml: {fault}" for fault in source_readings.find_faults(readings, keys))
        meanings = alerts.load_meanings(folder, path.name)
        yield from (f"{path}/alerts.toml: {fault}" for fault in alerts.find_faults(folder, meanings, builds, keys))
        unknown = sorted(load_kernels(folder, path.name).keys() - keys)
        yield from (f"{path}/kernels.toml: no op {key}" for key in unknown)
        yield from (
            f"{path}/names.toml: {mapping.api}: no op {key}"
            for mapping in names.names
            for key in mapping.ops
            if key not in keys
        )
        for environment, ops in builds.items():
            for entry in ops.documented:
                if not _mappings_of_entry(names, entry):
                    statement = f"{environment}'s documentation speaks of {entry.api} {entry.modes}"
                    yield f"{path}/names.toml: {statement}, and no [[names]] does"


def to_json(content: dict[str, object]) -> str:
    """Return the text of a build's file, with one op per line, so that diffs are readable."""
    rows = {name: ",\n".join(json.dumps(row, sort_keys=True) for row in content[name])  # type: ignore[attr-defined]
            for name in ("documented", "ops")}  # fmt: skip
    lines = ",\n".join(f"{json.dumps(key)}: {number}" for key, number in sorted(content["lines"].items()))  # type: ignore[attr-defined]
    head = ", ".join(f'"{name}": {json.dumps(content[name])}' for name in ("framework_version", "commit"))
    lists = f'"documented": [\n{rows["documented"]}\n],\n"ops": [\n{rows["ops"]}\n]'
    return f'{{{head},\n{lists},\n"lines": {{\n{lines}\n}}}}\n'
