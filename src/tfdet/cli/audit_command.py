"""The implementation of `tfdet audit`; cli/audit.py parses its options.

An audit reads from a build's libraries, without running them, which GPU kernels depend on the order of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tfdet.audit import serialize
from tfdet.audit.registrations import TENSORFLOW, Registrations, read_registrations
from tfdet.audit.report import Audit, audit, check_archs
from tfdet.audit.targets import Target, resolve
from tfdet.base import console
from tfdet.base.errors import DataError, ExitCode, TfdetError, UsageError, from_os_error
from tfdet.base.folders import is_there, list_entries
from tfdet.base.paths import Project
from tfdet.base.sanitize import dump_json
from tfdet.matrix.load import Matrix
from tfdet.publish import audit_views as show
from tfdet.store import audits
from tfdet.verdicts.audit_findings import AuditIndex, index_audit
from tfdet.verdicts.build_diff import BuildDiff, diff_builds


@dataclass(frozen=True)
class AuditOptions:
    """The options of `tfdet audit`."""

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
    baseline = _load_build(project, matrix, options.baseline) if options.baseline else None
    targets, errors = resolve(project, matrix, options.targets)
    has_several_targets = len(targets) + len(errors) > 1
    documents = []
    for target in targets:
        try:
            result = _audit(project, matrix, target, options)
        except (TfdetError, OSError) as error:
            errors.append(error if isinstance(error, TfdetError) else from_os_error(error))
            continue
        for fault in result.faults:
            errors.append(DataError(fault))
        documents += _show(project, matrix, result, options, baseline)
    if options.as_json and documents:
        console.write(dump_json(documents if has_several_targets else documents[0], None, ascii_only=True) + "\n")
    for failure in errors:
        console.print_error(failure)
    return max((failure.code for failure in errors), default=ExitCode.OK)


def _show(
    project: Project, matrix: Matrix, result: Audit, options: AuditOptions, baseline: AuditIndex | None
) -> list[dict[str, Any]]:
    """Print or store an audit; with --json return its documents, which are printed together."""
    stored_audit = serialize.to_stored(result)
    index = index_audit(stored_audit)
    difference = diff_builds(baseline, index, matrix.sources) if baseline else None
    if options.as_json:
        return [{**result.as_json(), **({"difference": difference.as_json()} if difference else {})}]
    if options.write:
        console.print_note(f"wrote {audits.write(project, stored_audit)}")
    parts = [] if options.write else show.audit_tables(result, index, matrix.sources)
    for part in [*parts, *(["", *show.diff_tables(difference)] if difference else [])]:
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
    result = audit(target, set(options.archs) or None, matrix.determinism_variables)
    if missing := set(options.archs) - {*result.sass, *result.ptx}:
        architectures = " ".join([*result.sass, *result.ptx]) or "no GPU code"
        raise UsageError(
            f"{target.name} contains no GPU code for {' '.join(sorted(missing))}", f"It contains {architectures}."
        )
    if target.environment and (options.write or options.registrations):
        return replace(result, registrations=_load_or_read_registrations(project, matrix, target))
    return result


def _load_or_read_registrations(project: Project, matrix: Matrix, target: Target) -> Registrations | None:
    """Return the kernel registrations, from the stored audit if it is of the same wheel; None if there are none."""
    assert target.environment is not None and target.wheel is not None
    stored = serialize.load_registrations(project, target.environment, target.wheel)
    if stored is not None:
        return stored
    environment = matrix.environment(target.environment)
    if environment.framework != TENSORFLOW:
        return None
    try:
        return read_registrations(project, target.environment, environment, target.wheel, target.libraries)
    except TfdetError as error:  # the rest of the audit does not need the registrations
        console.print_note(f"{target.environment}: no kernel registrations: {error.cause}")
        return None


def compare(project: Project, matrix: Matrix, old: str, new: str) -> BuildDiff:
    """Compare two builds; the audit of an environment is loaded, other builds are audited now."""
    return diff_builds(_load_build(project, matrix, old), _load_build(project, matrix, new), matrix.sources)


def _load_build(project: Project, matrix: Matrix, name: str) -> AuditIndex:
    if name in matrix.environments:
        return _load_stored(project, matrix, name)
    targets, errors = resolve(project, matrix, [name])
    if errors:
        raise errors[0]
    result = _audit(project, matrix, targets[0], AuditOptions([name]))
    if result.faults:
        raise DataError("\n".join(result.faults), "A build that cannot be read completely cannot be compared.")
    return index_audit(serialize.to_stored(result))


def _load_stored(project: Project, matrix: Matrix, key: str) -> AuditIndex:
    path = audits.path_of(project, key)
    if not is_there(path):
        available = ", ".join(p.stem for p in list_entries(project.audits, "*.json"))
        raise UsageError(
            f"{key} has no audit in {project.audits}", f"Create it: tfdet audit {key} --write. Available: {available}."
        )
    return index_audit(audits.load(path))
