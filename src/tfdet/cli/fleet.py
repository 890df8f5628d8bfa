"""`tfdet fleet`: the suite on many machines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tfdet.base import console
from tfdet.base.errors import ExitCode, InterruptedRunError, UsageError
from tfdet.base.extras import require
from tfdet.base.files import require_writable
from tfdet.base.folders import listed
from tfdet.base.paths import Project, find_project
from tfdet.cli.app import load_project, print_json, report_added
from tfdet.cli.layout import Group
from tfdet.cli.options import (
    Code,
    Device,
    Engine,
    Json,
    MemoryLimit,
    Processes,
    Prove,
    RecordsFile,
    Repeats,
    SourceFilter,
    environments,
    how_often,
    require_virtual_gpu,
    solutions,
)
from tfdet_common.defaults import RUN_DEFAULTS

if TYPE_CHECKING:
    from tfdet.fleet.folder import ClusterKind, FleetFolder
    from tfdet.fleet.progress import Progress
    from tfdet.fleet.tasks import FleetOptions, Task


class DefaultRunGroup(Group):
    """`tfdet fleet tf2.0` is `tfdet fleet run tf2.0`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        own = not args or args[0] in self.commands or args[0] == "--help"
        return super().parse_args(ctx, args if own else ["run", *args])


FleetPath = Annotated[Path | None, typer.Argument(metavar="[FOLDER]", help="folder of the fleet; default: the newest")]


# Options that one way of running ignores: an error, so that no user believes that they were applied.
_NOT_FOR_MANIFESTS = ("cluster", "folder", "resume", "engine", "container_runtime", "max_parallel", "sbatch_option",
                      "build_environments", "poll_interval", "out")  # fmt: skip
_MANIFESTS_ONLY = ("registry", "volume_claim", "queue")
_NEW_FLEET_ONLY = ("cluster", "device", "gpu", "source", "solution", "engine", "container_runtime", "task_minutes",
                   "max_parallel", "sbatch_option", "build_environments", "repeats", "processes", "memory",
                   "prove", "code")  # fmt: skip


def run(
    context: typer.Context,
    env: Annotated[
        list[str] | None, typer.Argument(metavar="[ENV]...", help="environments to run", autocompletion=environments)
    ] = None,
    cluster: Annotated[
        Literal["slurm", "local"] | None, typer.Option(help="default: slurm if sbatch is installed, else local")
    ] = None,
    folder: Annotated[
        Path | None, typer.Option(help="new folder that all machines can access; default: in tfdet's data")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="continue a fleet that was interrupted")] = False,
    device: Annotated[Device, typer.Option(help="device that the ops run on")] = "gpu",
    gpu: Annotated[
        str | None, typer.Option(metavar="TYPE", help="GPU type, as the cluster names it; default: any")
    ] = None,
    source: SourceFilter = None,
    solution: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY",
            help="restrict to this solution and its control (repeatable); default: all",
            autocompletion=solutions,
        ),
    ] = None,
    engine: Engine = None,
    container_runtime: Annotated[
        Literal["apptainer", "enroot"] | None,
        typer.Option(help="run images by it, where Docker is not allowed; default: none"),
    ] = None,
    task_minutes: Annotated[float, typer.Option(metavar="MINUTES", min=0.001, help="planned length of a task")] = 20.0,
    max_parallel: Annotated[
        int | None, typer.Option(min=1, help="maximum tasks that run at the same time; default: local 1, slurm 1000")
    ] = None,
    sbatch_option: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="option for sbatch, such as partition=gpu (repeatable)"),
    ] = None,
    build_environments: Annotated[
        bool, typer.Option("--build-environments", help="first build the virtual environments, in the shared cache")
    ] = False,
    repeats: Repeats = RUN_DEFAULTS.repeats,
    processes: Processes = RUN_DEFAULTS.processes,
    memory: MemoryLimit = RUN_DEFAULTS.mebibytes,
    prove: Prove = False,
    code: Code = None,
    poll_interval: Annotated[
        float | None, typer.Option(min=0.1, help="poll interval in seconds; default: local 0.5, slurm 10")
    ] = None,
    out: RecordsFile = None,
    print_manifests: Annotated[
        Literal["kubernetes"] | None, typer.Option(help="print manifests instead of running the tasks")
    ] = None,
    registry: Annotated[
        str, typer.Option(metavar="PREFIX", help="with --print-manifests: prefix of image names; default: none")
    ] = "",
    volume_claim: Annotated[
        str, typer.Option(metavar="NAME", help="with --print-manifests: volume claim for the records")
    ] = "tfdet-records",
    queue: Annotated[
        str | None, typer.Option(metavar="NAME", help="with --print-manifests: Kueue queue for the jobs; default: none")
    ] = None,
) -> None:
    """Run the suite on a cluster: plan tasks, submit them, resubmit those that a machine lost, collect the records.

    Ctrl-C leaves submitted jobs in the queue; --resume continues.
    """
    from tfdet.fleet.folder import FleetFolder
    from tfdet.fleet.tasks import FleetOptions

    if out:
        require_writable(out, "--out")
    if print_manifests:
        _reject_options(
            context, _NOT_FOR_MANIFESTS, "cannot be combined with --print-manifests", "Leave out one of them."
        )
    else:
        _reject_options(
            context, _MANIFESTS_ONLY, "requires --print-manifests", "Add --print-manifests kubernetes, or leave it out."
        )
    if resume:
        _reject_options(
            context,
            _NEW_FLEET_ONLY,
            "cannot be combined with --resume",
            "Leave it out: --resume continues the fleet as planned.",
        )
        if env:
            raise UsageError(
                "--resume cannot be combined with environments", "Leave them out; --folder names the fleet."
            )
        made = _open_fleet(folder)
        made.cancel(False)
    else:
        _reject_empty_values({"gpu": [gpu], "solution": solution or []})
        require_virtual_gpu(device, prove, code)
        repeats, processes = how_often(context, prove, repeats, processes)
        options = FleetOptions(device=device, solutions=solution or [], repeats=repeats, processes=processes,
                               memory=memory, proves=prove, code=code, engine=container_runtime or engine,
                               gpu=gpu)  # fmt: skip
        found = _plan_tasks(env or [], source or [], options, 60 * task_minutes)
        if print_manifests:
            from tfdet.fleet.kubernetes import manifests

            print_json(manifests("tfdet", options, found, registry, volume_claim, queue))
            return
        if build_environments:
            _build_environments(options, dict.fromkeys(task.environment for task in found))
        made = FleetFolder(folder or _fleets_folder(find_project()) / datetime.now(UTC).strftime("%Y%m%d-%H%M%S"))
        _create_fleet(made, options, found, cluster, _parse_sbatch_options(sbatch_option or []), max_parallel)
    console.print_note(f"fleet folder: {made.path}")
    _watch_and_collect(made, out, poll_interval)


def _reject_options(context: typer.Context, names: Iterable[str], why: str, advice: str) -> None:
    """Raise UsageError if one of these options was given."""
    for name in names:
        source = context.get_parameter_source(name)
        if source is not None and source.name != "DEFAULT":
            raise UsageError(f"--{name.replace('_', '-')} {why}", advice)


def _reject_empty_values(given: Mapping[str, Sequence[str | None]]) -> None:
    for name, words in given.items():
        if "" in words:
            raise UsageError(f"--{name}: empty value", f"Pass a value, or leave out --{name}.")


def status(folder: FleetPath = None, as_json: Json = False) -> None:
    """Print the progress of a fleet and its expected time left."""
    from tfdet.fleet.clusters import connect
    from tfdet.fleet.progress import compute_progress

    fleet = _open_fleet(folder)
    progress = compute_progress(fleet, connect(fleet.fleet.cluster, fleet).jobs_in_flight())
    if as_json:
        print_json({"folder": str(fleet.path), **progress.as_json(), "why": _give_up_reasons(progress)})
    else:
        console.write(_progress_line(progress) + "\n")
        _print_given_up(progress)


def cancel(folder: FleetPath = None) -> None:
    """Cancel the submitted jobs and collect the finished records."""
    from tfdet.fleet.clusters import connect
    from tfdet.fleet.collect import ingest_into_store

    fleet = _open_fleet(folder)
    fleet.cancel(True)
    try:
        connect(fleet.fleet.cluster, fleet).cancel()
    finally:
        report_added(ingest_into_store(fleet))


def _plan_tasks(env: list[str], only: list[str], options: FleetOptions, seconds: float) -> list[Task]:
    from tfdet.fleet.tasks import plan_tasks
    from tfdet.store.durations import collect_durations
    from tfdet.store.evidence import EvidenceStore

    project, matrix = load_project()
    if not env:
        raise UsageError("no environment given", "For example: tfdet fleet run tf2.0 --device cpu.")
    for key in env:
        matrix.environment(key)
    for name in only:
        matrix.source(name)
    for name in options.solutions:
        matrix.solution(name)
    found = plan_tasks(
        matrix, env, only, options, collect_durations(EvidenceStore.open(project).files(), matrix.devices), seconds
    )
    if not found:
        raise UsageError(f"nothing to run on the {options.device}", "Choose another --source, --solution or --device.")
    console.print_note(
        f"{len(found)} tasks, {_format_duration(sum(task.seconds for task in found))} of one machine's time"
    )
    return found


def _build_environments(options: FleetOptions, environments: Iterable[str]) -> None:
    """Build on this host what a node without a network cannot."""
    from tfdet.engines import vgpu
    from tfdet.engines.venv import VenvEngine

    project, matrix = load_project()
    if options.engine not in (None, "venv"):
        raise UsageError(
            f"--build-environments cannot be combined with {options.engine}",
            "Build its images yourself: see docs/how-to/run-on-a-cluster.md.",
        )
    kind = matrix.devices.find_by_cli_name(options.device)
    for key in environments:
        VenvEngine(project).interpreter(
            key, matrix.environment(key), kind.claim_device, without_vendor_libraries=kind.virtual
        )
    if kind.virtual:
        vgpu.library_folder(project)


def _create_fleet(
    folder: FleetFolder,
    options: FleetOptions,
    found: list[Task],
    cluster: ClusterKind | None,
    wants: dict[str, str],
    max_parallel: int | None,
) -> None:
    from tfdet.fleet import clusters
    from tfdet.fleet.folder import Fleet

    project, chosen = find_project(), cluster or clusters.default_cluster()
    require("submitit")
    clusters.connect(chosen, folder)  # where it is not there, nothing is made
    user_data = str(project.user_data) if project.user_data else None
    folder.make(Fleet(schema=1, name=folder.job_name, root=str(project.root), user_data=user_data, cluster=chosen,
                      sbatch_options=wants, max_parallel=max_parallel, options=options, tasks=found))  # fmt: skip


def _watch_and_collect(folder: FleetFolder, out: Path | None, poll_interval: float | None) -> None:
    from tfdet.fleet.clusters import connect
    from tfdet.fleet.collect import export_to_file, ingest_into_store
    from tfdet.fleet.watch import watch

    try:
        progress = watch(folder, connect(folder.fleet.cluster, folder), _progress_printer(), poll_interval)
    except KeyboardInterrupt:
        raise InterruptedRunError from None
    if out is None:
        report_added(ingest_into_store(folder))
    else:
        console.print_note(f"{export_to_file(folder, out)} records: {out}")
    _print_given_up(progress)
    raise typer.Exit(ExitCode.RUN_FAILED if not progress.complete or progress.given_up else ExitCode.OK)


def _progress_printer() -> Callable[[Progress], None]:
    """A function that prints each change of the progress once."""
    last = ""

    def report(progress: Progress) -> None:
        nonlocal last
        line = _progress_line(progress)
        if line != last:
            console.print_note(line)
            last = line

    return report


def _progress_line(progress: Progress) -> str:
    told = progress.as_json()
    words = [f"{told['done']} of {told['tasks']} tasks done"]
    if progress.jobs_in_flight is None:
        words.append("the cluster does not respond")
    else:
        stuck = told["waiting"] and not told["running"]  # as where a node's operator has to act
        why = f" ({told['waiting_for']})" if stuck and told["waiting_for"] else ""
        words += [f"{told['running']} running", f"{told['waiting']} waiting{why}"]
    if told["given_up"]:
        words.append(f"{told['given_up']} given up")
    if told["seconds_left"] is not None and not progress.complete:
        words.append(f"{_format_duration(told['seconds_left'])} left")
    return ", ".join(words)


def _give_up_reasons(progress: Progress) -> dict[str, str]:
    """Of the tasks that were given up."""
    return {f"{task} ({progress.tasks[task].environment})": why for task, why in progress.given_up.items()}


def _print_given_up(progress: Progress) -> None:
    for task, why in _give_up_reasons(progress).items():
        console.print_note(f"task {task} given up: {why}")


def _format_duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02} min" if minutes >= 60 else f"{minutes} min"


def _parse_sbatch_options(words: list[str]) -> dict[str, str]:
    found = {}
    for word in words:
        name, is_there, value = word.partition("=")
        if not is_there or not name:
            raise UsageError(
                f"--sbatch-option {word}: not NAME=VALUE", "Write it without dashes: --sbatch-option partition=gpu."
            )
        found[name] = value
    return found


def _fleets_folder(project: Project) -> Path:
    return project.work_dir / "fleets"


def _open_fleet(where: Path | None) -> FleetFolder:
    from tfdet.fleet.folder import PLAN, FleetFolder

    if where is None:
        there = listed(_fleets_folder(find_project()), f"*/{PLAN}")
        if not there:
            raise UsageError("no fleet found", "Pass its folder, or plan a fleet: tfdet fleet run ENV.")
        where = there[-1].parent
    found = FleetFolder(where)
    _ = found.fleet
    return found
