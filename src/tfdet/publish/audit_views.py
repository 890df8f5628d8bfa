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
from tfdet.publish.terminal_views import NO_AUDIT_NOTE
from tfdet.verdicts.audit_findings import AuditIndex, count_by_family
from tfdet.verdicts.build_diff import BuildDiff

_MAX_NAME_LENGTH = 120  # of a kernel's name; --json has the whole name
_HOW = {"native": "natively", "jit": "by JIT", "no": "not at all"}


def audit_tables(found: Audit, audited: AuditIndex, sources: Mapping[str, Source]) -> list[RenderableType]:
    """One build: its architectures, kernels, environment variables and error messages."""
    target = found.target
    wheel = target.wheel.path.name if target.wheel else None
    title = f"{target.name}: {wheel}" if wheel and not target.name.endswith(wheel) else target.name
    parts: list[RenderableType] = [Text("\n" + title, style="bold")]
    parts += [_architectures(found), Text(""), capability(found.capabilities)]
    if not (known := _sources(audited, sources)).is_empty:
        parts += [Text("\nsources", style="bold"), known]
    if unclaimed := count_by_family(audited.unclaimed(sources.values())):
        parts += [Text("\nkernels that no source claims", style="bold"), _families(unclaimed)]
    parts += _list("environment variables that it reads", sorted(found.strings.variables))
    parts += _list("messages by which it refuses", sorted(found.strings.messages))
    if found.registrations is not None:
        parts.append(Text(f"\n{len(found.registrations)} ops have a GPU kernel (--json names them)"))
    parts.append(Text("\nnot seen: " + NO_AUDIT_NOTE, style="dim"))
    return parts


def _architectures(found: Audit) -> FactTable:
    made = FactTable("architecture", "kernels", "order-dependent", "unresolved", "other atomics")
    counts = {"yes": 0, "unresolved": 0, "no": 0}  # in the order of the columns
    for arch in [*found.sass, *found.ptx]:
        mine = dict(counts)
        for kernel in found.kernels:
            if kernel.arch == arch:
                mine[kernel.order_dependent] += 1
        total = sum(library.kernel_counts.get(arch, 0) for library in found.libraries)
        read = not (arch.startswith("sm_") and int(arch.removeprefix("sm_")) < FIRST_ARCH)
        made.add(arch, str(total), *(str(mine[answer]) if read else "see PTX" for answer in mine))
    return made


def capability(found: list[Capability]) -> FactTable:
    made = FactTable("compute capability", "GPUs", "runs", "with")
    for one in found:
        made.add("{}.{}".format(*one.compute), one.gpus, _HOW[one.how], one.by)
    return made


def _sources(audited: AuditIndex, sources: Mapping[str, Source]) -> FactTable:
    made = FactTable("source", "finding", "read from")
    for key, source in sources.items():
        finding = audited.finding(source.audit) if source.audit else None
        if finding and finding.kind != "not shipped":
            made.add(key, finding.text, " ".join(finding.archs))
    return made


def _families(found: Mapping[str, int]) -> FactTable:
    made = FactTable("kernel", "variants")
    for name, count in found.items():
        made.add(name if len(name) <= _MAX_NAME_LENGTH else f"{name[:_MAX_NAME_LENGTH]} ...", str(count))
    return made


def _list(title: str, texts: list[str]) -> list[RenderableType]:
    return [Text(f"\n{title}", style="bold"), *(Text(f"  {text}") for text in texts)] if texts else []


def diff_tables(found: BuildDiff) -> list[RenderableType]:
    parts: list[RenderableType] = [Text(f"{found.old} → {found.new}", style="bold")]
    for title, some in (
        ("order-dependent kernels that appeared", found.added),
        ("order-dependent kernels that went", found.removed),
    ):
        parts += _list(title, [f"{name} ({count})" for name, count in some.items()])
    parts += _list("more or fewer variants", [f"{name}: {a} → {b}" for name, (a, b) in found.changed.items()])
    beside = [
        f"{name}" + (f" (for {', '.join(keys)})" if keys else "") for name, keys in found.deterministic_added.items()
    ]
    parts += _list("deterministic kernels that came beside the old", beside)
    parts += _list("sources", [f"{key}: {old} → {new}" for key, (old, new) in found.sources.items()])
    for title, (more, fewer) in (("environment variables", found.variables), ("messages", found.messages)):
        parts += _list(title, [f"+ {text}" for text in more] + [f"- {text}" for text in fewer])
    return parts
