"""The work of `tfdet audit`, whose options cli/audit.py parses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tfdet.audit import serialize
from tfdet.audit.registrations import FRAMEWORK, Registrations, registrations
from tfdet.audit.report import Audit, audit, check_archs
from tfdet.audit.targets import Target, resolve
from tfdet.base import console
from tfdet.base.errors import DataError, ExitCode, TfdetError, UsageError, from_os_error
from tfdet.base.folders import is_there, listed
from tfdet.base.paths import Project
from tfdet.base.sanitize import dump_json
from tfdet.matrix.load import Matrix
from tfdet.publish import audit_views as show
from tfdet.store import audits as stored
from tfdet.verdicts.audit_findings import AuditIndex, index_audit
from tfdet.verdicts.build_diff import BuildDiff, diff_builds


@dataclass(frozen=True)
class AuditOptions:
    targets: Sequence[str]
    archs: Sequence[str] = ()
    as_json: bool = False
    write: bool = False
    registrations: bool = False
    baseline: str | None = None


def run(project: Project, matrix: Matrix, options: AuditOptions) -> ExitCode:
    """Audit each target and print it. An error of one target is printed, and the others are still audited."""
    _check_options(matrix, options)
    if options.write:
        project.require_checkout("--write")
    old = _load_side(project, matrix, options.baseline) if options.baseline else None
    targets, failed = resolve(project, matrix, options.targets)
    several = len(targets) + len(failed) > 1
    documents = []
    for target in targets:
        try:
            found = _audit(project, matrix, target, options)
        except (TfdetError, OSError) as error:
            failed.append(error if isinstance(error, TfdetError) else from_os_error(error))
            continue
        for fault in found.faults:
            failed.append(DataError(fault))
        documents += _show(project, matrix, found, options, old)
    if options.as_json and documents:
        console.write(dump_json(documents if several else documents[0], None, ascii_only=True) + "\n")
    for problem in failed:
        console.print_error(problem)
    return max((problem.code for problem in failed), default=ExitCode.OK)


def _show(
    project: Project, matrix: Matrix, found: Audit, options: AuditOptions, old: AuditIndex | None
) -> list[dict[str, Any]]:
    """Print or store an audit; with --json return its documents, which are printed together."""
    kept = serialize.to_stored(found)
    new = index_audit(kept)
    changed = diff_builds(old, new, matrix.sources) if old else None
    if options.as_json:
        return [{**found.as_json(), **({"difference": changed.as_json()} if changed else {})}]
    if options.write:
        console.print_note(f"wrote {stored.write(project, kept)}")
    parts = [] if options.write else show.audit_tables(found, new, matrix.sources)
    for part in [*parts, *(["", *show.diff_tables(changed)] if changed else [])]:
        console.out().print(part)
    return []


def _check_options(matrix: Matrix, options: AuditOptions) -> None:
    check_archs(options.archs)
    if options.write:
        if options.archs or options.as_json:
            raise UsageError("--write cannot be combined with --arch or --json", "matrix/audits holds complete audits.")
        if unknown := [name for name in options.targets if name not in matrix.environments]:
            raise UsageError(
                f"--write: {unknown[0]} is not an environment", "matrix/audits holds audits of environments only."
            )


def _audit(project: Project, matrix: Matrix, target: Target, options: AuditOptions) -> Audit:
    console.print_note(f"reading {len(target.libraries)} libraries of {target.name}")
    found = audit(target, set(options.archs) or None, matrix.determinism_variables)
    if missing := set(options.archs) - {*found.sass, *found.ptx}:
        held = " ".join([*found.sass, *found.ptx]) or "no GPU code"
        raise UsageError(f"{target.name} contains no GPU code for {' '.join(sorted(missing))}", f"It contains {held}.")
    if target.environment and (options.write or options.registrations):
        return replace(found, registrations=_registrations(project, matrix, target))
    return found


def _registrations(project: Project, matrix: Matrix, target: Target) -> Registrations | None:
    assert target.environment is not None and target.wheel is not None
    known = serialize.registrations_of(project, target.environment, target.wheel)
    if known is not None:
        return known
    environment = matrix.environment(target.environment)
    if environment.framework != FRAMEWORK:
        return None
    try:
        return registrations(project, target.environment, environment, target.wheel, target.libraries)
    except TfdetError as error:  # the kernels do not need it
        console.print_note(f"{target.environment}: no kernel registrations: {error.cause}")
        return None


def compare(project: Project, matrix: Matrix, old: str, new: str) -> BuildDiff:
    """Compare two builds: environments by their stored audits, others by an audit now."""
    return diff_builds(_load_side(project, matrix, old), _load_side(project, matrix, new), matrix.sources)


def _load_side(project: Project, matrix: Matrix, name: str) -> AuditIndex:
    if name in matrix.environments:
        return _load_stored(project, matrix, name)
    targets, failed = resolve(project, matrix, [name])
    if failed:
        raise failed[0]
    found = _audit(project, matrix, targets[0], AuditOptions([name]))
    if found.faults:
        raise DataError("\n".join(found.faults), "A build that cannot be read completely cannot be compared.")
    return index_audit(serialize.to_stored(found))


def _load_stored(project: Project, matrix: Matrix, key: str) -> AuditIndex:
    path = stored.path_of(project, key)
    if not is_there(path):
        have = ", ".join(p.stem for p in listed(project.audits, "*.json"))
        raise UsageError(
            f"{key} has no audit in {project.audits}", f"Create it: tfdet audit {key} --write. Available: {have}."
        )
    return index_audit(stored.load(path))
