"""`tfdet reproduce`: which cells of other signers it chooses, and what it reports of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import tfdet.engines.run as engine
from tfdet.base.errors import ExitCode, RunFailedError
from tfdet.base.paths import Project
from tfdet.cli.main import app
from tfdet.engines.base import Selection
from tfdet.store.evidence import EvidenceStore
from tfdet.store.records import Record, parse, read_records
from tfdet.verdicts.infer import CellKey, InferredCell, Verdict
from tfdet.verdicts.reproduction import ReproducedCell, draw_sample
from tfdet_common import journal
from tfdet_common.machine import machine_name

KEY = CellKey("tf2.0", "cpu", "bias-add-backprop", "none")


@pytest.fixture
def others(whole_copy: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Return a project with records of another signer, of one environment on CPUs."""
    for path in whole_copy.evidence.glob("*/*.jsonl"):
        if (path.parent.name, path.stem) != ("cpu", "tf2.0"):
            path.unlink()
    monkeypatch.setenv("TFDET_ROOT", str(whole_copy.root))
    monkeypatch.chdir(whole_copy.root)
    return whole_copy


def as_ours(record: Record, **changes: Any) -> bytes:
    """Return the record's line as if this machine had measured it."""
    content = {**json.loads(record.line()), "machine": machine_name(), **changes}
    return (journal.dump({**content, "checksum": journal.checksum(content)}) + "\n").encode()


@pytest.fixture
def selections_run(others: Project, monkeypatch: pytest.MonkeyPatch) -> list[Selection]:
    """Replace the engine: each cell comes out as recorded. Return the selections that were run."""
    (path,) = EvidenceStore.open(others).files()
    records, requested = list(read_records(path)), list[Selection]()

    def run(project: Project, matrix: Any, key: str, selection: Selection, name: str | None, out: Path) -> None:
        requested.append(selection)
        solutions = ("none", *selection.solutions)
        chosen = [r for r in records if r.source in selection.sources and r.solution in solutions]
        with out.open("ab") as journal:
            journal.writelines(dict.fromkeys(as_ours(record) for record in chosen))

    monkeypatch.setattr(engine, "run_environment", run)
    return requested


def reproduce(*arguments: str) -> tuple[int, str, str]:
    """Call `tfdet reproduce tf2.0`; return its exit code, standard output and standard error."""
    done = CliRunner().invoke(app, ["reproduce", "tf2.0", *arguments])
    return done.exit_code, done.stdout, done.stderr


def test_a_cell_with_equal_results_agrees(selections_run: list[Selection]) -> None:
    code, output, _ = reproduce("--sample", "5%", "--seed", "7", "--json")
    cells = json.loads(output)["cells"]
    assert (code, len(cells) > 5) == (ExitCode.OK, True)
    assert {cell["answer"] for cell in cells} == {"agrees"}
    assert sum(len(selection.sources) for selection in selections_run) == len(cells)


def test_a_seed_chooses_the_same_cells_again(selections_run: list[Selection]) -> None:
    first, second, other = (
        reproduce("--seed", seed, "--json", "--out", f"{n}.jsonl")[1]
        for n, seed in enumerate("778")  # 7, 7 and 8
    )
    assert first == second != other


def test_cells_of_this_machine_are_not_chosen(others: Project, selections_run: list[Selection]) -> None:
    (path,) = EvidenceStore.open(others).files()
    own_records = [parse(as_ours(record)) for record in read_records(path)]
    path.unlink()
    EvidenceStore.open(others).ingest(own_records)
    done = CliRunner().invoke(app, ["reproduce", "tf2.0"])
    assert "no other machine measured cells" in str(done.exception)
    assert not selections_run


@pytest.mark.parametrize("share", ["5", "0%", "101%", "-5%", "nan%", "%"])
def test_an_invalid_share_is_refused(others: Project, share: str) -> None:
    assert "Give a percentage" in getattr(
        CliRunner().invoke(app, ["reproduce", f"--sample={share}"]).exception, "advice", ""
    )


def test_an_environment_that_does_not_start_is_undecided(others: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> None:
        raise RunFailedError("no CPython 3.7")

    monkeypatch.setattr(engine, "run_environment", fails)
    code, output, _ = reproduce("--seed", "7", "--json")
    assert (code, {cell["answer"] for cell in json.loads(output)["cells"]}) == (ExitCode.OK, {"undecided"})


@pytest.mark.parametrize(
    ("theirs", "ours", "answer"),
    [
        (Verdict.NONDETERMINISTIC, Verdict.NONDETERMINISTIC, "agrees"),
        (Verdict.DETERMINISTIC, Verdict.NONDETERMINISTIC, "disagrees"),
        (Verdict.NONDETERMINISTIC, Verdict.NOT_SHOWN, "disagrees"),
        (Verdict.RAISES, Verdict.DETERMINISTIC, "disagrees"),
        (Verdict.DETERMINISTIC, Verdict.NOT_SHOWN, "undecided"),
        (Verdict.DETERMINISTIC, Verdict.BLANK, "undecided"),
        (Verdict.DETERMINISTIC, Verdict.FAILED, "undecided"),
    ],
)
def test_only_contradictory_results_disagree(theirs: Verdict, ours: Verdict, answer: str) -> None:
    case = frozenset({"a case"})
    assert (
        ReproducedCell(KEY, InferredCell(theirs, deciding_cases=case), InferredCell(ours, deciding_cases=case)).answer
        == answer
    )


@pytest.mark.parametrize(
    ("ours", "answer"), [("ab", "agrees"), ("bc", "agrees"), ("c", "undecided"), ("", "undecided")]
)
def test_verdicts_are_compared_case_by_case(ours: str, answer: str) -> None:
    cases, same = frozenset("ab"), Verdict.NONDETERMINISTIC
    result = ReproducedCell(
        KEY, InferredCell(same, deciding_cases=cases), InferredCell(same, deciding_cases=frozenset(ours))
    )
    assert (result.answer, result.cases) == (answer, sorted(cases & set(ours)))


def test_a_disagreement_exits_1(
    others: Project, monkeypatch: pytest.MonkeyPatch, record_line: Callable[..., bytes]
) -> None:
    (path,) = EvidenceStore.open(others).files()
    records = list(read_records(path))

    def differs(project: Project, matrix: Any, key: str, selection: Selection, name: str | None, out: Path) -> None:
        """Return the opposite observation of each record."""
        chosen = [r for r in records if r.source in selection.sources and r.solution in selection.solutions]
        with out.open("ab") as journal:
            for r in (r for r in chosen if r.observation == "equal"):
                journal.write(record_line("differs", case=r.case, mode=r.mode, source=r.source, solution=r.solution,
                                   case_hash=r.case_hash, threads=r.threads,
                                   determinism_environment=r.determinism_environment))  # fmt: skip

    monkeypatch.setattr(engine, "run_environment", differs)
    code, output, _ = reproduce("--sample", "50%", "--seed", "7", "--json")
    assert (code, "disagrees" in {cell["answer"] for cell in json.loads(output)["cells"]}) == (
        ExitCode.CONTRADICTED,
        True,
    )


def test_a_sample_has_the_requested_size() -> None:
    cells = [KEY._replace(source=f"source-{n}") for n in range(200)]
    assert [len(draw_sample(cells, share, 1)) for share in (0.05, 1.0, 0.001)] == [10, 200, 1]
