"""The one-screen overview of `tfdet status`, and the selection of cells."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
from collections import defaultdict

import pytest

from tfdet.base.errors import UsageError
from tfdet.base.paths import Project
from tfdet.matrix.load import natural_sort_key
from tfdet.publish.overview import OverviewRow, SourceState, in_reading_order, overview_rows
from tfdet.verdicts.infer import Verdict
from tfdet.verdicts.selection import Selection
from tfdet.verdicts.status import Status, StatusCell
from tfdet.verdicts.status_loading import load_status


@pytest.fixture(scope="module")
def status_of_checkout(checkout: Project) -> Status:
    return load_status(checkout, [], read_store=True)


def test_each_source_that_ran_is_counted_once_for_each_kind_of_device(status_of_checkout: Status) -> None:
    sources: dict[tuple[str, str], set[str]] = {}
    for cell in status_of_checkout.cells:
        if cell.was_run:
            kind = status_of_checkout.matrix.devices.kind(cell.key.device)
            assert kind
            framework = status_of_checkout.matrix.environments[cell.key.environment].framework
            sources.setdefault((framework, kind.cli_name), set()).add(cell.key.source)
    counted = {
        (part.framework, part.cli_name): [name for names in part.sources.values() for name in names]
        for part in overview_rows(status_of_checkout)
    }
    assert {key: sorted(names) for key, names in counted.items()} == {
        key: sorted(names) for key, names in sources.items()
    }
    assert next(iter(counted)) == ("tensorflow", "gpu"), "a reader sees TensorFlow's GPU rows first"


def test_sources_of_tensorflow_that_a_gpu_ran_come_first(status_of_checkout: Status) -> None:
    ran = [cell for cell in status_of_checkout.cells if cell.was_run]
    ordered = in_reading_order(status_of_checkout, ran)
    environments = status_of_checkout.matrix.environments
    frameworks = [environments[cell.key.environment].framework for cell in ordered]
    assert sorted(map(id, ordered)) == sorted(map(id, ran))
    assert frameworks[0] == "tensorflow" and "jax" in frameworks
    assert len([key for key, _ in itertools.groupby(frameworks)]) == len(set(frameworks))
    first = ordered[0].key.source
    assert any(cell.key.source == first and cell.key.device.startswith("nvidia") for cell in ran)


def test_sources_that_differ_come_before_solved_ones_and_these_before_unknown_ones(status_of_checkout: Status) -> None:
    part = next(row for row in overview_rows(status_of_checkout) if (row.framework, row.cli_name) == ("torch", "gpu"))
    cells = Selection(frameworks=[part.framework], devices=[part.cli_name]).cells(status_of_checkout)
    ordered = in_reading_order(status_of_checkout, [cell for cell in cells if cell.was_run])
    state_of = {source: state for state, sources in part.sources.items() for source in sources}
    states = [state_of[cell.key.source] for cell in ordered]
    assert [state for state, _ in itertools.groupby(states)] == [
        SourceState.OPEN,
        SourceState.SOLVED,
        SourceState.UNKNOWN,
    ]


def cells_by_source(status: Status, part: OverviewRow) -> dict[str, list[StatusCell]]:
    """Return {source: its cells} of a framework and device; one pass over all cells, which are many."""
    by_source: dict[str, list[StatusCell]] = defaultdict(list)
    for cell in Selection(frameworks=[part.framework], devices=[part.cli_name]).cells(status):
        by_source[cell.key.source].append(cell)
    return by_source


def test_a_source_with_a_solution_has_both_verdicts_in_one_environment(status_of_checkout: Status) -> None:
    for part in overview_rows(status_of_checkout):
        cells = cells_by_source(status_of_checkout, part)
        for source in part.sources[SourceState.SOLVED]:
            by_environment: dict[str, set[str]] = {}
            for cell in cells[source]:
                verdicts = by_environment.setdefault(cell.key.environment, set())
                if cell.key.solution == "none" and cell.inferred.verdict is Verdict.NONDETERMINISTIC:
                    verdicts.add("differs")
                elif cell.key.solution != "none" and cell.inferred.is_shown_deterministic:
                    verdicts.add("helps")
            assert {"differs", "helps"} in by_environment.values(), source


def test_a_proved_source_is_proved_in_its_newest_environment(status_of_checkout: Status) -> None:
    for part in overview_rows(status_of_checkout):
        cells = cells_by_source(status_of_checkout, part)
        for source in part.sources[SourceState.PROVED]:
            control = [cell for cell in cells[source] if cell.key.solution == "none" and cell.was_run]
            newest = max((cell.key.environment for cell in control), key=natural_sort_key)
            verdicts = {cell.inferred.verdict for cell in control if cell.key.environment == newest}
            assert verdicts == {Verdict.SCHEDULE_INDEPENDENT}, source


@pytest.mark.parametrize(
    ("selection", "names"),
    [
        (Selection(frameworks=["torc"]), "torch"),
        (Selection(devices=["vgpu-sm71"]), "vgpu-sm70"),
        (Selection(environments=["tf2.99"]), "tf2.9"),
        (Selection(sources=["bias-add-backprob"]), "bias-add-backprop"),
        (Selection(verdicts=["nondeterministik"]), "nondeterministic"),
    ],
)
def test_a_name_that_does_not_exist_is_refused_with_the_nearest(
    status_of_checkout: Status, selection: Selection, names: str
) -> None:
    with pytest.raises(UsageError) as error:
        selection.cells(status_of_checkout)
    assert names in (error.value.advice or "")


def test_filters_combine_devices_and_environments(status_of_checkout: Status) -> None:
    cells = Selection(devices=["cpu", "vgpu"], environments=["tf2.0"]).cells(status_of_checkout)
    assert {cell.key.device for cell in cells} == {"cpu", "vgpu-sm70"}
    assert {cell.key.environment for cell in cells} == {"tf2.0"}
    assert Selection().cells(status_of_checkout) == status_of_checkout.cells


def test_help_groups_commands_and_shows_no_python_type(checkout: Project) -> None:
    environ = {**os.environ, "COLUMNS": "80", "TERM": "dumb"}
    texts = {}
    for words in ([], ["run"], ["status"], ["fleet", "run"], ["check"]):
        done = subprocess.run(
            [sys.executable, "-m", "tfdet", *words, "--help"], capture_output=True, text=True, env=environ
        )
        assert (done.returncode, done.stderr) == (0, "")
        texts[" ".join(words)] = done.stdout
    panels = re.findall(r"^╭─ (.+?) ─+╮$", texts[""], re.M)
    assert panels == ["Options", "Look up", "Run the suite", "Find a cause", "Evidence"]
    for text in texts.values():
        assert not re.search(r"<(bool|str|int|float|path|list)\b", text, re.I), text
