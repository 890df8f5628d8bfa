"""Tables of `tfdet audit` for a terminal."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import RenderableType
from rich.text import Text

from tfdet.audit.capability import Capability
from tfdet.audit.report import Audit
from tfdet.audit.sass import FIRST_ARCH
from tfdet.matrix.models import Source
from tfdet.publish.terminal_lists import FactTable
from tfdet.publish.terminal_views import AUDIT_BLIND_SPOTS
from tfdet.verdicts.audit_findings import AuditIndex, count_by_family
from tfdet.verdicts.build_diff import BuildDiff

_MAX_NAME_LENGTH = 120  # characters of a kernel's name; --json has the complete name
_SUPPORT_TEXTS = {"native": "natively", "jit": "by JIT", "no": "not at all"}


def audit_tables(audit: Audit, audited: AuditIndex, sources: Mapping[str, Source]) -> list[RenderableType]:
    """Return the tables on one build: its architectures, kernels, environment variables and error messages."""
    target = audit.target
    wheel = target.wheel.path.name if target.wheel else None
    title = f"{target.name}: {wheel}" if wheel and not target.name.endswith(wheel) else target.name
    parts: list[RenderableType] = [Text("\n" + title, style="bold")]
    parts += [_architectures(audit), Text(""), capability(audit.capabilities)]
    if not (source_table := _sources(audited, sources)).is_empty:
        parts += [Text("\nsources", style="bold"), source_table]
    if rest := count_by_family(audited.kernels_without_source(sources.values())):
        parts += [Text("\nkernels of no known source", style="bold"), _families(rest)]
    parts += _list("environment variables that it reads", sorted(audit.strings.variables))
    parts += _list("messages by which it refuses", sorted(audit.strings.messages))
    if audit.registrations is not None:
        parts.append(Text(f"\n{len(audit.registrations)} ops have a GPU kernel (--json names them)"))
    parts.append(Text("\nnot seen: " + AUDIT_BLIND_SPOTS, style="dim"))
    return parts


def _architectures(audit: Audit) -> FactTable:
    table = FactTable("architecture", "kernels", "order-dependent", "unresolved", "other atomics")
    counts = {"yes": 0, "unresolved": 0, "no": 0}  # in the order of the columns
    for arch in [*audit.sass, *audit.ptx]:
        arch_counts = dict(counts)
        for kernel in audit.kernels:
            if kernel.arch == arch:
                arch_counts[kernel.order_dependent] += 1
        total = sum(library.kernel_counts.get(arch, 0) for library in audit.libraries)
        # The scanner counts the kernels of older architectures, but does not read their machine code.
        is_read = not (arch.startswith("sm_") and int(arch.removeprefix("sm_")) < FIRST_ARCH)
        table.add(arch, str(total), *(str(arch_counts[verdict]) if is_read else "see PTX" for verdict in arch_counts))
    return table


def capability(capabilities: list[Capability]) -> FactTable:
    """Return a table of how the build runs on each compute capability."""
    table = FactTable("compute capability", "GPUs", "runs", "with")
    for entry in capabilities:
        table.add("{}.{}".format(*entry.compute), entry.gpus, _SUPPORT_TEXTS[entry.run_mode], entry.arch)
    return table


def _sources(audited: AuditIndex, sources: Mapping[str, Source]) -> FactTable:
    table = FactTable("source", "finding", "read from")
    for key, source in sources.items():
        finding = audited.finding(source.audit) if source.audit else None
        if finding and finding.kind != "not shipped":
            table.add(key, finding.text, " ".join(finding.archs))
    return table


def _families(families: Mapping[str, int]) -> FactTable:
    """Return a table of {kernel's name without template arguments: number of kernels}."""
    table = FactTable("kernel", "variants")
    for name, count in families.items():
        table.add(name if len(name) <= _MAX_NAME_LENGTH else f"{name[:_MAX_NAME_LENGTH]} ...", str(count))
    return table


def _list(title: str, texts: list[str]) -> list[RenderableType]:
    return [Text(f"\n{title}", style="bold"), *(Text(f"  {text}") for text in texts)] if texts else []


def diff_tables(diff: BuildDiff) -> list[RenderableType]:
    """Return the lists of all differences between two builds."""
    parts: list[RenderableType] = [Text(f"{diff.old} → {diff.new}", style="bold")]
    for title, families in (
        ("order-dependent kernels that appeared", diff.added),
        ("order-dependent kernels that went", diff.removed),
    ):
        parts += _list(title, [f"{name} ({count})" for name, count in families.items()])
    parts += _list("more or fewer variants", [f"{name}: {a} → {b}" for name, (a, b) in diff.changed.items()])
    deterministic = [
        f"{name}" + (f" (for {', '.join(keys)})" if keys else "") for name, keys in diff.deterministic_added.items()
    ]
    parts += _list("deterministic kernels that came beside the old", deterministic)
    parts += _list("sources", [f"{key}: {old} → {new}" for key, (old, new) in diff.sources.items()])
    for title, (added, removed) in (("environment variables", diff.variables), ("messages", diff.messages)):
        parts += _list(title, [f"+ {text}" for text in added] + [f"- {text}" for text in removed])
    return parts
