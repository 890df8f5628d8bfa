"""The commands `tfdet fleet run`, `status` and `cancel`: the suite on many machines."""

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
from tfdet.base.folders import list_entries
from tfdet.base.paths import Project, find_project
from tfdet.cli.app import load_project, print_json, report_added
from tfdet.cli.layout import Group
from tfdet.cli.options import (
    Code,
    Device,
    Engine,
    Json,
    MemoryLimit,
    Multiprocessors,
    Placement,
    Processes,
    Prove,
    RecordsFile,
    Repeats,
    SourceFilter,
    choose_counts,
    environments,
    require_virtual_gpu,
    solutions,
)
from tfdet_common.defaults import RUN_DEFAULTS

if TYPE_CHECKING:
    from tfdet.fleet.folder import ClusterKind, FleetFolder
    from tfdet.fleet.progress import Progress
    from tfdet.fleet.tasks import FleetOptions, Task


class DefaultRunGroup(Group):
    """A command group whose default command is `run`: `tfdet fleet tf2.0` is `tfdet fleet run tf2.0`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        has_command = not args or args[0] in self.commands or args[0] == "--help"
        return super().parse_args(ctx, args if has_command else ["run", *args])


FleetPath = Annotated[Path | None, typer.Argument(metavar="[FOLDER]", help="folder of the fleet; default: the newest")]


# Options that have no effect with some others: an error, so that the user does not expect an effect.
_NOT_FOR_MANIFESTS = ("cluster", "folder", "resume", "engine", "container_runtime", "max_parallel", "sbatch_option",
                      "build_environments", "poll_interval", "out")  # fmt: skip
_MANIFESTS_ONLY = ("registry", "volume_claim", "queue")
_NEW_FLEET_ONLY = ("cluster", "device", "gpu", "source", "solution", "engine", "container_runtime", "task_minutes",
                   "max_parallel", "sbatch_option", "build_environments", "repeats", "processes", "memory",
                   "prove", "code", "multiprocessors", "placement")  # fmt: skip


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
        typer.Option(metavar="NAME=VALUE", help="option for sbatch, such as partition=gpu (repeatable); default: none"),
    ] = None,
    build_environments: Annotated[
        bool, typer.Option("--build-environments", help="first build the virtual environments, in the shared cache")
    ] = False,
    repeats: Repeats = RUN_DEFAULTS.repeats,
    processes: Processes = RUN_DEFAULTS.processes,
    memory: MemoryLimit = RUN_DEFAULTS.mebibytes,
    prove: Prove = False,
    code: Code = None,
    multiprocessors: Multiprocessors = None,
    placement: Placement = None,
    poll_interval: Annotated[
        float | None, typer.Option(min=0.1, help="poll interval in seconds; default: local 0.5, slurm 10")
    ] = None,
    out: RecordsFile = None,
    print_manifests: Annotated[
        Literal["kubernetes"] | None, typer.Option(help="print manifests instead of running the tasks; default: none")
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
        fleet = _open_fleet(folder)
        fleet.cancel(False)  # removes the mark that `tfdet fleet cancel` leaves
    else:
        _reject_empty_values({"gpu": [gpu], "solution": solution or []})
        require_virtual_gpu(device, prove, code=code, multiprocessors=multiprocessors, placement=placement)
        repeats, processes = choose_counts(context, prove, repeats, processes)
        options = FleetOptions(device=device, solutions=solution or [], repeats=repeats, processes=processes,
                               memory=memory, proves=prove, code=code, multiprocessors=multiprocessors,
                               placement=placement, engine=container_runtime or engine, gpu=gpu)  # fmt: skip
        tasks = _plan_tasks(env or [], source or [], options, 60 * task_minutes)
        if print_manifests:
            from tfdet.fleet.kubernetes import manifests

            print_json(manifests("tfdet", options, tasks, registry, volume_claim, queue))
            return
        if build_environments:
            _build_environments(options, dict.fromkeys(task.environment for task in tasks))
        fleet = FleetFolder(folder or _fleets_folder(find_project()) / datetime.now(UTC).strftime("%Y%m%d-%H%M%S"))
        _create_fleet(fleet, options, tasks, cluster, _parse_sbatch_options(sbatch_option or []), max_parallel)
    console.print_note(f"fleet folder: {fleet.path}")
    _watch_and_collect(fleet, out, poll_interval)


def _reject_options(context: typer.Context, names: Iterable[str], reason: str, advice: str) -> None:
    """Raise UsageError if one of these options was given."""
    for name in names:
        source = context.get_parameter_source(name)
        if source is not None and source.name != "DEFAULT":
            raise UsageError(f"--{name.replace('_', '-')} {reason}", advice)


def _reject_empty_values(options: Mapping[str, Sequence[str | None]]) -> None:
    """Raise UsageError if an option has an empty value. options: {name: values}."""
    for name, values in options.items():
        if "" in values:
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
    fleet.cancel(True)  # marks it, so that no more tasks are submitted
    try:
        connect(fleet.fleet.cluster, fleet).cancel()
    finally:
        report_added(ingest_into_store(fleet))


def _plan_tasks(environments: list[str], sources: list[str], options: FleetOptions, seconds: float) -> list[Task]:
    """Plan tasks of about this many seconds, and print their number and total time."""
    from tfdet.fleet.tasks import plan_tasks
    from tfdet.store.durations import collect_durations
    from tfdet.store.evidence import EvidenceStore

    project, matrix = load_project()
    if not environments:
        raise UsageError("no environment given", "For example: tfdet fleet run tf2.0 --device cpu.")
    for key in environments:
        matrix.environment(key)
    for name in sources:
        matrix.source(name)
    for name in options.solutions:
        matrix.solution(name)
    durations = collect_durations(EvidenceStore.open(project).files(), matrix.devices)
    tasks = plan_tasks(matrix, environments, sources, options, durations, seconds)
    if not tasks:
        raise UsageError(f"nothing to run on the {options.device}", "Choose another --source, --solution or --device.")
    console.print_note(
        f"{len(tasks)} tasks, {_format_duration(sum(task.seconds for task in tasks))} of one machine's time"
    )
    return tasks


def _build_environments(options: FleetOptions, environments: Iterable[str]) -> None:
    """Build the virtual environments, and the virtual GPU if used, on this host: nodes may have no network."""
    from tfdet.engines import vgpu
    from tfdet.engines.venv import VenvEngine

    project, matrix = load_project()
    if options.engine not in (None, "venv"):
        raise UsageError(
            f"--build-environments cannot be combined with {options.engine}",
            "Build its images yourself: see docs/how-to/run-on-a-cluster.md.",
        )
    kind = matrix.devices.find_by_cli_name(options.device)
    for key in environments:  # claim_device: the build, "cpu" or "gpu"; the virtual GPU runs the latter
        VenvEngine(project).interpreter(
            key, matrix.environment(key), kind.claim_device, without_vendor_libraries=kind.virtual
        )
    if kind.virtual:
        vgpu.library_folder(project)


def _create_fleet(
    folder: FleetFolder,
    options: FleetOptions,
    tasks: list[Task],
    cluster: ClusterKind | None,
    sbatch_options: dict[str, str],
    max_parallel: int | None,
) -> None:
    from tfdet.fleet import clusters
    from tfdet.fleet.folder import Fleet

    project, cluster_kind = find_project(), cluster or clusters.default_cluster()
    require("submitit")
    clusters.connect(cluster_kind, folder)  # raises an error before the folder is created
    user_data = str(project.user_data) if project.user_data else None
    folder.make(Fleet(schema=1, name=folder.job_name, root=str(project.root), user_data=user_data,
                      cluster=cluster_kind, sbatch_options=sbatch_options, max_parallel=max_parallel, options=options,
                      tasks=tasks))  # fmt: skip


def _watch_and_collect(folder: FleetFolder, out: Path | None, poll_interval: float | None) -> None:
    """Watch the fleet until it ends, then add its records to the evidence store or write them to `out`."""
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
    """Return a function that prints the progress if it differs from the last one."""
    last = ""

    def report(progress: Progress) -> None:
        nonlocal last
        line = _progress_line(progress)
        if line != last:
            console.print_note(line)
            last = line

    return report


def _progress_line(progress: Progress) -> str:
    """Return one line with the numbers of tasks and the time left."""
    counts = progress.as_json()
    parts = [f"{counts['done']} of {counts['tasks']} tasks done"]
    if progress.jobs_in_flight is None:
        parts.append("the cluster does not respond")
    else:
        is_stuck = counts["waiting"] and not counts["running"]  # perhaps until the cluster's operator acts
        reason = f" ({counts['waiting_for']})" if is_stuck and counts["waiting_for"] else ""
        parts += [f"{counts['running']} running", f"{counts['waiting']} waiting{reason}"]
    if counts["given_up"]:
        parts.append(f"{counts['given_up']} given up")
    if counts["seconds_left"] is not None and not progress.complete:
        parts.append(f"{_format_duration(counts['seconds_left'])} left")
    return ", ".join(parts)


def _give_up_reasons(progress: Progress) -> dict[str, str]:
    """Return {task (environment): reason} of the tasks that were given up."""
    return {f"{task} ({progress.tasks[task].environment})": reason for task, reason in progress.given_up.items()}


def _print_given_up(progress: Progress) -> None:
    for task, reason in _give_up_reasons(progress).items():
        console.print_note(f"task {task} given up: {reason}")


def _format_duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02} min" if minutes >= 60 else f"{minutes} min"


def _parse_sbatch_options(arguments: list[str]) -> dict[str, str]:
    options = {}
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if not equals or not name:
            raise UsageError(
                f"--sbatch-option {argument}: not NAME=VALUE",
                "Write it without dashes: --sbatch-option partition=gpu.",
            )
        options[name] = value
    return options


def _fleets_folder(project: Project) -> Path:
    return project.work_dir / "fleets"


def _open_fleet(path: Path | None) -> FleetFolder:
    """Open the fleet in this folder, by default the newest one; UsageError if there is none."""
    from tfdet.fleet.folder import PLAN, FleetFolder

    if path is None:
        plans = list_entries(_fleets_folder(find_project()), f"*/{PLAN}")
        if not plans:
            raise UsageError("no fleet found", "Pass its folder, or plan a fleet: tfdet fleet run ENV.")
        path = plans[-1].parent
    folder = FleetFolder(path)
    _ = folder.fleet  # reads the plan, with an error if it is invalid
    return folder
