"""`tfdet fleet`: the suite on many machines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tfdet.base import console
from tfdet.base.errors import Exit, Interrupted, UsageError
from tfdet.base.files import require_writable
from tfdet.base.folders import listed
from tfdet.base.paths import Project, find_project
from tfdet.cli.app import load, print_json, report_added
from tfdet.cli.layout import Group
from tfdet.cli.options import Device, Json, environments, solutions, sources
from tfdet_common.defaults import MAX_COUNT, RUN_DEFAULTS

if TYPE_CHECKING:
    from tfdet.fleet.folder import Folder, Sent
    from tfdet.fleet.progress import Progress
    from tfdet.fleet.tasks import How, Task


class RunUnlessNamed(Group):
    """`tfdet fleet tf2.0` is `tfdet fleet run tf2.0`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        own = not args or args[0] in self.commands or args[0] == "--help"
        return super().parse_args(ctx, args if own else ["run", *args])


Where = Annotated[Path | None, typer.Argument(metavar="[FOLDER]", help="of the fleet; default: the newest")]


# What each way of running has no use for: told, lest somebody takes it for done.
_NOT_EMITTED = ("cluster", "folder", "resume", "engine", "container", "at_once", "want", "prepare", "every", "out")
_EMITTED_ALONE = ("registry", "claim", "queue")
_PLANNED_ALONE = ("cluster", "device", "gpu", "source", "solution", "engine", "container", "minutes", "at_once", "want",
                  "prepare", "repeats", "processes", "memory")  # fmt: skip


def run(
    context: typer.Context,
    env: Annotated[list[str] | None, typer.Argument(metavar="[ENV]...", autocompletion=environments)] = None,
    cluster: Annotated[Literal["slurm", "local"] | None, typer.Option(help="default: Slurm where it is")] = None,
    folder: Annotated[Path | None, typer.Option(help="that all machines see; made")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="go on with a fleet that was left")] = False,
    device: Annotated[Device, typer.Option(help="where the ops run")] = "gpu",
    gpu: Annotated[str | None, typer.Option(metavar="TYPE", help="type of GPU, as the cluster calls it")] = None,
    source: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="only this source (again: several)", autocompletion=sources)
    ] = None,
    solution: Annotated[
        list[str] | None, typer.Option(metavar="KEY", help="only this, and its control", autocompletion=solutions)
    ] = None,
    engine: Annotated[Literal["docker", "venv"] | None, typer.Option(help="default: venv where pip can build")] = None,
    container: Annotated[
        Literal["apptainer", "enroot"] | None, typer.Option(help="run images by it, where Docker is not allowed")
    ] = None,
    minutes: Annotated[float, typer.Option(metavar="MINUTES", min=0.001, help="that a task should take")] = 20.0,
    at_once: Annotated[int | None, typer.Option(min=1, help="tasks at once; local: 1")] = None,
    want: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="an option for sbatch, such as partition=gpu")
    ] = None,
    prepare: Annotated[
        bool, typer.Option("--prepare", help="make the environments here first, in the cache that all machines see")
    ] = False,
    repeats: Annotated[int, typer.Option(min=1, max=MAX_COUNT, help="repeats in one process")] = RUN_DEFAULTS.repeats,
    processes: Annotated[int, typer.Option(min=1, max=MAX_COUNT, help="fresh processes")] = RUN_DEFAULTS.processes,
    memory: Annotated[int, typer.Option(min=64, help="MiB for one process of a case")] = RUN_DEFAULTS.mebibytes,
    every: Annotated[float | None, typer.Option(min=0.1, help="seconds between two looks at the cluster")] = None,
    out: Annotated[Path | None, typer.Option(help="keep the records in this file, not in the evidence store")] = None,
    emit: Annotated[Literal["kubernetes"] | None, typer.Option(help="write manifests instead of running")] = None,
    registry: Annotated[str, typer.Option(metavar="PREFIX", help="with --emit: before the name of an image")] = "",
    claim: Annotated[str, typer.Option(help="with --emit: the volume claim for the records")] = "tfdet-records",
    queue: Annotated[str | None, typer.Option(help="with --emit: the queue of Kueue that starts the jobs")] = None,
) -> None:
    """Run environments on a cluster: planned in tasks, sent, sent again where a machine fails, taken in.

    Ctrl-C leaves what was sent in the queue; --resume goes on watching.
    """
    from tfdet.fleet.folder import Folder
    from tfdet.fleet.tasks import How

    if out:
        require_writable(out, "--out")
    if emit:
        _refuse(context, _NOT_EMITTED, "manifests know nothing of it", "Leave it out, or leave out --emit.")
    else:
        _refuse(context, _EMITTED_ALONE, "is for manifests", "Add --emit kubernetes, or leave it out.")
    if resume:
        _refuse(context, _PLANNED_ALONE, "was planned already", "Leave it out: --resume goes on as it was planned.")
        if env:
            raise UsageError("--resume goes on with what was planned", "Name no environment; --folder names the fleet.")
        made = _existing(folder)
        made.cancel(False)
    else:
        _need_words({"gpu": [gpu], "solution": solution or []})
        how = How(device=device, solutions=solution or [], repeats=repeats, processes=processes, memory=memory,
                  engine=container or engine, gpu=gpu)  # fmt: skip
        found = _planned(env or [], source or [], how, 60 * minutes)
        if emit:
            from tfdet.fleet.kubernetes import manifests

            print_json(manifests("tfdet", how, found, registry, claim, queue))
            return
        if prepare:
            _prepare(how, dict.fromkeys(task.environment for task in found))
        wants = _wants(want or []) | ({"at-once": str(at_once)} if at_once else {})
        made = Folder(folder or _fleets(find_project()) / datetime.now(UTC).strftime("%Y%m%d-%H%M%S"))
        _make(made, how, found, cluster, wants)
    console.note(f"the fleet's folder: {made.path}")
    _watch_and_take(made, out, every)


def _refuse(context: typer.Context, names: Iterable[str], why: str, advice: str) -> None:
    """UsageError where one of these options was given."""
    for name in names:
        source = context.get_parameter_source(name)
        if source is not None and source.name != "DEFAULT":
            raise UsageError(f"--{name.replace('_', '-')}: {why}", advice)


def _need_words(given: Mapping[str, Sequence[str | None]]) -> None:
    for name, words in given.items():
        if "" in words:
            raise UsageError(f"--{name}: nothing is named", f"Name one, or leave out --{name}.")


def status(where: Where = None, as_json: Json = False) -> None:
    """How far a fleet is, and how long it will take yet."""
    from tfdet.fleet.clusters import find
    from tfdet.fleet.progress import look

    folder = _existing(where)
    progress = look(folder, find(folder.fleet.cluster, folder).flying())
    if as_json:
        print_json({"folder": str(folder.path), **progress.as_json(), "why": _why(progress)})
    else:
        console.write(_line(progress) + "\n")
        _tell_given_up(progress)


def cancel(where: Where = None) -> None:
    """End what was sent; finished records are taken in."""
    from tfdet.fleet.clusters import find
    from tfdet.fleet.take import into_store

    folder = _existing(where)
    folder.cancel(True)
    try:
        find(folder.fleet.cluster, folder).cancel()
    finally:
        report_added(into_store(folder))


def _planned(env: list[str], only: list[str], how: How, seconds: float) -> list[Task]:
    from tfdet.fleet.tasks import tasks
    from tfdet.store.durations import measured
    from tfdet.store.evidence import Store

    project, matrix = load()
    if not env:
        raise UsageError("no environment is named", "For example: tfdet fleet run tf2.0 --device cpu.")
    for key in env:
        matrix.environment(key)
    for name in only:
        matrix.source(name)
    for name in how.solutions:
        matrix.solution(name)
    found = tasks(matrix, env, only, how, measured(Store.of(project).files(), matrix.devices), seconds)
    if not found:
        raise UsageError(f"nothing to run on the {how.device}", "Choose another --source, --solution or --device.")
    console.note(f"{len(found)} tasks, {_long(sum(task.seconds for task in found))} of one machine's time")
    return found


def _prepare(how: How, environments: Iterable[str]) -> None:
    """What a node without a network could not make."""
    from tfdet.engines import vgpu
    from tfdet.engines.venv import VenvEngine

    project, matrix = load()
    if how.engine not in (None, "venv"):
        raise UsageError(
            f"--prepare with {how.engine}", "Its images are made by you: see docs/how-to/run-on-a-cluster.md."
        )
    kind = matrix.devices.called(how.device)
    for key in environments:
        VenvEngine(project).interpreter(key, matrix.environment(key), kind.claimed_as, bare=kind.virtual)
    if kind.virtual:
        vgpu.library(project)


def _make(folder: Folder, how: How, found: list[Task], cluster: Sent | None, wants: dict[str, str]) -> None:
    from tfdet.fleet import clusters
    from tfdet.fleet.folder import Fleet

    project, chosen = find_project(), cluster or clusters.default()
    clusters.find(chosen, folder)  # where it is not there, nothing is made
    home = str(project.home) if project.home else None
    folder.make(Fleet(schema=1, name=folder.job_name, root=str(project.root), home=home, cluster=chosen,
                      wants=wants, how=how, tasks=found))  # fmt: skip


def _watch_and_take(folder: Folder, out: Path | None, every: float | None) -> None:
    from tfdet.fleet.clusters import find
    from tfdet.fleet.take import into_file, into_store
    from tfdet.fleet.watch import watch

    try:
        progress = watch(folder, find(folder.fleet.cluster, folder), _teller(), every)
    except KeyboardInterrupt:
        raise Interrupted from None
    if out is None:
        report_added(into_store(folder))
    else:
        console.note(f"{into_file(folder, out)} records: {out}")
    _tell_given_up(progress)
    raise typer.Exit(Exit.RUN_FAILED if not progress.complete or progress.given_up else Exit.OK)


def _teller() -> Callable[[Progress], None]:
    """A line for each change: on a terminal, in its place."""
    last = ""

    def tell(progress: Progress) -> None:
        nonlocal last
        line = _line(progress)
        if line != last:
            console.note(line)
            last = line

    return tell


def _line(progress: Progress) -> str:
    told = progress.as_json()
    words = [f"{told['done']} of {told['tasks']} tasks done"]
    if progress.flying is None:
        words.append("the cluster does not answer")
    else:
        stuck = told["waiting"] and not told["running"]  # as where a node's operator has to act
        why = f" ({told['waiting_for']})" if stuck and told["waiting_for"] else ""
        words += [f"{told['running']} running", f"{told['waiting']} waiting{why}"]
    if told["given_up"]:
        words.append(f"{told['given_up']} given up")
    if told["seconds_left"] is not None and not progress.complete:
        words.append(f"{_long(told['seconds_left'])} left")
    return ", ".join(words)


def _why(progress: Progress) -> dict[str, str]:
    """Of the tasks that were given up."""
    return {f"{task} ({progress.tasks[task].environment})": why for task, why in progress.given_up.items()}


def _tell_given_up(progress: Progress) -> None:
    for task, why in _why(progress).items():
        console.note(f"task {task} given up: {why}")


def _long(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02} min" if minutes >= 60 else f"{minutes} min"


def _wants(words: list[str]) -> dict[str, str]:
    found = {}
    for word in words:
        name, is_there, value = word.partition("=")
        if not is_there or not name:
            raise UsageError(f"--want {word}", "Write it as sbatch has it, without the dashes: --want partition=gpu.")
        if name == "at-once":
            raise UsageError(f"--want {word}", "That is an option of tfdet: --at-once 8.")
        found[name] = value
    return found


def _fleets(project: Project) -> Path:
    return project.work / "fleets"


def _existing(where: Path | None) -> Folder:
    from tfdet.fleet.folder import PLAN, Folder

    if where is None:
        there = listed(_fleets(find_project()), f"*/{PLAN}")
        if not there:
            raise UsageError("no fleet was planned here", "Name its folder, or plan one: tfdet fleet run ENV.")
        where = there[-1].parent
    found = Folder(where)
    _ = found.fleet
    return found
