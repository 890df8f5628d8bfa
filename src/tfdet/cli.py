"""The command line: thin; each command calls one function and prints what it gives."""

from __future__ import annotations

import errno
import glob
import json
import math
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn

import typer

from tfdet import console
from tfdet.errors import DataError, Exit, Interrupted, TfdetError, UsageError
from tfdet.paths import Project, find_project
from tfdet.visible import as_json
from tfdet_probe.record import MOST

if TYPE_CHECKING:  # each command imports what it needs, and no other waits for that
    from tfdet.evidence import Added
    from tfdet.matrix.load import Matrix
    from tfdet.records import Record
    from tfdet.status import Status

app = typer.Typer(no_args_is_help=True, add_completion=True, pretty_exceptions_enable=False, rich_markup_mode="rich")
evidence_app = typer.Typer(no_args_is_help=True, help="The evidence store, matrix/evidence.")
app.add_typer(evidence_app, name="evidence")


def _named(kind: str) -> Callable[[str], list[str]]:
    """For a shell's completion: the names of a folder of matrix/, nothing of which is read."""

    def beginning_with(incomplete: str) -> list[str]:
        try:
            return sorted(path.stem for path in (find_project().matrix / kind).glob(f"{glob.escape(incomplete)}*.toml"))
        except UsageError:  # outside of a checkout
            return []

    return beginning_with


_environments, _sources, _solutions = _named("environments"), _named("sources"), _named("solutions")
Json = Annotated[bool, typer.Option("--json", help="for machines")]
Environments = Annotated[
    list[str],
    typer.Argument(metavar="ENV...", help="for example tf2.0; see `tfdet envs`", autocompletion=_environments),
]
Device = Literal["gpu", "cpu"]
LONGEST = 86400.0  # seconds that one process of a case may take
_READ_ONLY = ("doctor", "envs", "status", "show", "recipe")


def _tell_version(asked: bool) -> None:
    if asked:
        from tfdeterminism.version import __version__

        console.write(f"tfdet {__version__}\n")
        raise typer.Exit


@app.callback()
def every_command(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="say which this is", callback=_tell_version, is_eager=True)
    ] = False,
) -> None:
    """Which TensorFlow op differs on which stack, with evidence that anybody can make again."""
    if context.invoked_subcommand not in _READ_ONLY:
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # what is under way must not be lost with its reader


def _load() -> tuple[Project, Matrix]:
    from tfdet.matrix.load import load_matrix

    project = find_project()
    return project, load_matrix(project.matrix)


def _print_json(value: object) -> None:
    unicode = (sys.stdout.encoding or "").lower().startswith("utf")
    console.write(as_json(json.dumps(value, indent=1, ensure_ascii=not unicode)) + "\n")


@app.command()
def doctor(
    env: Annotated[
        str | None, typer.Argument(metavar="[ENV]", help="check for this environment", autocompletion=_environments)
    ] = None,
    device: Annotated[Device, typer.Option(help="where its ops shall run")] = "gpu",
    as_json: Json = False,
) -> None:
    """What this host can run: Docker, NVIDIA runtime, GPUs, driver, disk, Pythons. ENV lacks something: exit code 4."""
    from tfdet import lists
    from tfdet.doctor import examine

    project, matrix = _load()
    checks = examine(project, matrix, env, device)
    if as_json:
        _print_json([check.as_json() for check in checks])
    else:
        console.out().print(lists.checks(checks))
    if env and any(check.state == "missing" for check in checks):
        raise typer.Exit(Exit.NO_DEVICE)


@app.command()
def envs(as_json: Json = False) -> None:
    """The reference environments."""
    from tfdet import lists
    from tfdet.matrix.load import load_environments

    found = load_environments(find_project().matrix)
    if as_json:
        _print_json([{"id": key, **e.model_dump(mode="json")} for key, e in found.items()])
    else:
        console.out().print(lists.environments(found))


@app.command()
def build(
    env: Environments,
    base_image: Annotated[
        str | None, typer.Option(help="install by pip on this image, which has the right CPython")
    ] = None,
) -> None:
    """Build the images tfdet:ENV."""
    from tfdet.images import build as build_image

    project, matrix = _load()
    for key in env:
        matrix.environment(key)
    for key in env:
        image = build_image(project, matrix, key, base_image=base_image, on_line=console.note)
        console.note(f"built tfdet:{key} ({image[:19]}). Run it: docker run --gpus all tfdet:{key}")


@app.command()
def run(
    env: Environments,
    engine: Annotated[Literal["docker", "venv"] | None, typer.Option(help="default: venv where pip can build")] = None,
    device: Annotated[Device, typer.Option(help="where the ops run")] = "gpu",
    source: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="only this source (again: several)", autocompletion=_sources),
    ] = None,
    solution: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY", help="only this solution, and its control", autocompletion=_solutions),
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, max=MOST, help="repeats in one process")] = 10,
    relaunches: Annotated[int, typer.Option(min=1, max=MOST, help="fresh processes")] = 2,
    timeout: Annotated[float, typer.Option(min=1, max=LONGEST, help="seconds for one process of a case")] = 120.0,
    memory: Annotated[int, typer.Option(min=64, help="MiB for one process of a case")] = 4096,
    out: Annotated[Path | None, typer.Option(help="keep the records in this file, not in the evidence store")] = None,
    as_json: Json = False,
) -> None:
    """Run the shared suite and keep its records as evidence."""
    from tfdet.engines.base import Selection
    from tfdet.run import run_environment, worst

    if math.isnan(timeout):  # no range's bound stops it
        raise UsageError("--timeout nan", f"Give seconds, at most {LONGEST:.0f}.")
    project, matrix = _load()
    for key in env:
        matrix.environment(key)
    selection = Selection(
        device=device, sources=tuple(source or ()), solutions=tuple(solution or ()), repeats=repeats,
        relaunches=relaunches, timeout=timeout, memory=memory,
    )  # fmt: skip
    codes = []
    for key in env:
        console.note(f"{key} on the {device}")
        try:
            result = run_environment(project, matrix, key, selection, engine, out)
        except Interrupted:
            raise
        except (TfdetError, OSError) as error:  # the next environment may do better
            told = error if isinstance(error, TfdetError) else _from_system(error, "Finished records are kept.")
            console.complain(told)
            codes.append(told.code)
            continue
        codes.append(result.code)
        records = [record for record in result.records if record.environment == key]  # --out may hold others
        if as_json:
            console.write("".join(record.line() for record in records))
        else:
            _show_run(project, records, out)
        if result.added:
            _report_added(result.added)
    raise typer.Exit(worst(codes))


def _show_run(project: Project, records: list[Record], out: Path | None) -> None:
    """What the store, or the file that was asked for instead, now says of the cells that were run."""
    from tfdet import views
    from tfdet.infer import CellKey
    from tfdet.status import load_status

    ran = {CellKey(r.environment, r.device, r.source, r.solution) for r in records}
    status = load_status(project, [out], store=False) if out else load_status(project)
    console.out().print(views.cells(cell for cell in status.cells if cell.key in ran))


@app.command()
def bundle(
    env: Annotated[
        str, typer.Argument(metavar="ENV", help="for example tf2.21; see `tfdet envs`", autocompletion=_environments)
    ],
    out: Annotated[Path, typer.Option(help="folder for the parts")],
    device: Annotated[Device, typer.Option(help="whose build: a GPU's runs on the CPU, too")] = "gpu",
    compute_capability: Annotated[
        str | None, typer.Option(metavar="X.Y", help="leave out GPU code for others, such as 9.0 for an H100")
    ] = None,
    python: Annotated[
        str | None, typer.Option(metavar="X.Y", help="the host's CPython; default: the environment's")
    ] = None,
    part_size: Annotated[str, typer.Option(metavar="SIZE", help="the most that one part may have")] = "60MiB",
    preset: Annotated[int, typer.Option(min=0, max=9, help="of xz: 0 is fast, 9 is small")] = 6,
    use_host_libs: Annotated[
        str, typer.Option(metavar="NAMES", help="CUDA libraries that the host has, such as cublas,cudnn")
    ] = "",
    stub: Annotated[str, typer.Option(metavar="NAMES", help="CUDA libraries to leave out, such as cufft")] = "",
) -> None:
    """Pack an environment into small parts for a host without network."""
    from tfdet.bundle.build import Order, make_bundle, parse_capability, parse_size
    from tfdet.bundle.contents import Choice

    project, matrix = _load()
    choice = Choice(
        parse_capability(compute_capability) if compute_capability else None, _names(stub), _names(use_host_libs)
    )
    order = Order(env, device, python, parse_size(part_size), preset, choice)
    made = make_bundle(project, matrix, order, out, console.note)
    console.note(f"{len(made.parts)} parts, {sum(made.parts) / 2**20:.1f} MiB. Carry all of {made.folder} there, and:")
    console.write(f"python{made.manifest['python']} {made.folder.name}/unbundle.py run --device {device}\n")


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


@app.command()
def status(
    write: Annotated[bool, typer.Option("--write", help="write the tables into README.md and docs/status.md")] = False,
    check: Annotated[bool, typer.Option("--check", help="fail if they are not what the evidence gives")] = False,
    records: Annotated[list[Path] | None, typer.Option("--with", help="look at this file of records too")] = None,
    only: Annotated[bool, typer.Option("--only", help="with --with: at these records alone")] = False,
    env: Annotated[
        list[str] | None,
        typer.Option(help="only this environment (again: several)", autocompletion=_environments),
    ] = None,
    as_json: Json = False,
) -> None:
    """What is deterministic where, by the evidence; contradicted claims are named."""
    from tfdet import views
    from tfdet.status import load_status

    if write and check:
        raise UsageError("--write and --check together", "Give one of them.")
    if (write or check) and records:
        raise UsageError("--with does not go with --write or --check", "Take the records in first: tfdet evidence add.")
    if (write or check) and env:
        raise UsageError("--env does not go with --write or --check", "The tables are always whole.")
    if only and not records:
        raise UsageError("--only without --with", "Name the records to look at: --with FILE.")
    project = find_project()
    found = load_status(project, records or [], store=not only)
    for key in env or []:
        found.matrix.environment(key)
    contradictions = found.contradictions()
    for key in found.stale_audits:
        console.note(f"stale: matrix/audits/{key}.json was made by another scanner: tfdet audit {key} --write")
    if write:
        from tfdet import render

        for path in render.write(project, found):
            console.note(f"wrote {path}")
    elif check:
        _check_tables(project, found, contradictions)
    elif as_json:
        _print_json({"cells": [cell.as_json() for cell in found.cells if not env or cell.key.environment in env]})
    else:
        console.out().print(views.status(found, env, console.out().width))
    _report_contradictions(contradictions)
    if check:
        console.note("the tables are what the evidence gives")


def _check_tables(project: Project, found: Status, contradictions: list[str]) -> None:
    from tfdet import render

    try:
        render.check(project, found)
    except render.OutOfDate:
        _name_contradictions(contradictions)
        raise


def _report_contradictions(contradictions: list[str]) -> None:
    _name_contradictions(contradictions)
    if contradictions:
        raise typer.Exit(Exit.CONTRADICTED)


def _name_contradictions(contradictions: list[str]) -> None:
    for text in contradictions:
        console.note(f"contradiction: {text}")


@app.command()
def show(
    env: Annotated[str, typer.Argument(metavar="ENV", autocompletion=_environments)],
    source: Annotated[str, typer.Argument(metavar="SOURCE", autocompletion=_sources)],
) -> None:
    """One environment and source: every record, the claims, how to re-run it."""
    from tfdet import costs, views
    from tfdet.evidence import Store
    from tfdet.records import read_records
    from tfdet.status import load_status

    project = find_project()
    found = load_status(project)
    found.matrix.environment(env)
    found.matrix.source(source)
    records = [
        record
        for path in Store(project.evidence).files()
        if path.stem == env
        for record in read_records(path)
        if record.source == source
    ]
    for part in views.show(found, env, source, records, costs.of_source(project, env, source)):
        console.out().print(part)


@app.command()
def recipe(env: Annotated[str, typer.Argument(metavar="ENV", autocompletion=_environments)]) -> None:
    """Exact lines that make this TensorFlow as deterministic as it gets, and the ops to avoid."""
    from tfdet.recipe import recipe_text
    from tfdet.status import load_status

    found = load_status(find_project())
    found.matrix.environment(env)
    console.write(recipe_text(found, env) + "\n")


@app.command()
def audit(
    targets: Annotated[
        list[str] | None,
        typer.Argument(metavar="ENV|WHEEL|DIRECTORY|LIBRARY...", help="what to read", autocompletion=_environments),
    ] = None,
    arch: Annotated[
        list[str] | None, typer.Option(metavar="sm_70", help="only this architecture (again: several)")
    ] = None,
    write: Annotated[bool, typer.Option("--write", help="keep it in matrix/audits (environments only)")] = False,
    registrations: Annotated[
        bool, typer.Option("--registrations", help="ask that TensorFlow for its kernels too (environments only)")
    ] = False,
    diff: Annotated[
        tuple[str, str] | None, typer.Option(metavar="OLD NEW", help="compare the stored audits of two environments")
    ] = None,
    as_json: Json = False,
) -> None:
    """Read a build's determinism from its binaries: no GPU, nothing is run."""
    from tfdet.audit import command, show

    project, matrix = _load()
    if diff:
        if targets or arch or write or registrations:
            raise UsageError("--diff goes with --json alone", "tfdet audit --diff tf2.4 tf2.8")
        found = command.compare(project, matrix, *diff)
        if as_json:
            _print_json(found.as_json())
        else:
            for part in show.difference(found):
                console.out().print(part)
        return
    if not targets:
        raise UsageError("nothing to audit", "Name an environment, a wheel, a folder or libraries: tfdet audit tf2.0.")
    raise typer.Exit(command.run(project, matrix, command.Asked(targets, arch or (), as_json, write, registrations)))


@app.command(context_settings={"ignore_unknown_options": True})
def locate(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[ENV] -- PROGRAM ARGS...", help="tf2.21 -- train.py --lr 0.1", autocompletion=_environments
        ),
    ],
    python: Annotated[
        str | None, typer.Option(help="the Python that has TensorFlow; default: an ENV, or `python`")
    ] = None,
    device: Annotated[Device, typer.Option(help="of the environment")] = "cpu",
    runs: Annotated[int, typer.Option(min=2, max=1000, help="runs at most at each level")] = 5,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="write the report, a page by itself")] = None,
    traces: Annotated[bool, typer.Option("--traces", help="the words are traces to compare, not a program")] = False,
    as_json: Json = False,
) -> None:
    """Run a training program until two runs differ, and name the op that began it."""
    from tfdet import locate as search
    from tfdet import views

    if traces:
        found = search.compare(words)
    else:
        project, matrix = _load()
        found = search.locate(project, matrix, search.wanted(matrix, words, python, device, runs))
    if html:
        search.write_html(found, html)
        console.note(f"wrote {html}")
    if as_json:
        _print_json(found.model_dump(mode="json", by_alias=True))
    else:
        for part in views.located(found):
            console.out().print(part)
    raise typer.Exit({"same": 0, "diverged": 1, "structure": 1}[found.result])


@evidence_app.command("add")
def evidence_add(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="records, one a line")],
    yes: Annotated[bool, typer.Option("--yes", help="take them without being asked (for machines)")] = False,
) -> None:
    """Take records from another machine into matrix/evidence: validated, shown, asked for, nothing lost."""
    from tfdet import views
    from tfdet.cases import current_cases
    from tfdet.evidence import Store
    from tfdet.records import read_records
    from tfdet.rules import misfits
    from tfdet.status import changes

    project, matrix = _load()
    records = [record for path in files for record in read_records(path)]
    cases = current_cases(project)
    faults = dict.fromkeys(fault for record in records for fault in misfits(matrix, cases, record))
    if faults:
        raise DataError("\n".join(faults), "Nothing was taken. Run the suite of this checkout to measure again.")
    found = changes(project, records)
    if found:
        console.err().print(views.changes(found))
        _ask_for(len(found), yes)
    _report_added(Store(project.evidence).add(records))


def _ask_for(count: int, yes: bool) -> None:
    """No signature vouches for a record: who takes it in does."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(
            f"{count} cells of the tables would change, and nobody is there to be asked",
            "Nothing was taken. If you trust where these records come from: tfdet evidence add --yes FILE...",
        )
    try:
        agreed = typer.confirm(f"{count} cells of the tables change. Take these records?", err=True)
    except typer.Abort:
        agreed = False
    if not agreed:
        console.note("nothing was taken")
        raise typer.Exit(Exit.INTERRUPTED)


def _report_added(added: Added) -> None:
    console.note(f"{added.taken} records taken ({added.replaced} renewed), {added.known} known already")
    for conflict in added.conflicts:
        console.note(f"  these differ: {conflict}")


def main() -> None:
    """The entry point: an expected error is an exit code and two lines, any other a defect of ours."""
    console.prepare()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends us as it ends any tool; but see every_command
    try:
        try:
            app()
        finally:
            sys.stdout.flush()  # a full disk is told here, not by the interpreter at its end
    except TfdetError as error:
        _end(error)
    except BrokenPipeError:
        sys.exit(int(Exit.OK))
    except OSError as error:
        _end(_from_system(error))
    except Exception:
        traceback.print_exc()
        _end(TfdetError("a defect of tfdet: please report it", "The lines above tell where."))


def _end(error: TfdetError) -> NoReturn:
    console.complain(error)
    sys.exit(int(error.code))


def _from_system(error: OSError, advice: str = "") -> TfdetError:
    where = f"{error.filename}: " if error.filename else ""
    if error.errno == errno.ENOSPC:
        advice = "Free some space and run again."
    return TfdetError(f"{where}{error.strerror or error}", advice)
