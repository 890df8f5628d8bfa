"""The collection of causes: each answer fits its program, and every kind is there. Whether the answers are true:
benchmarks/causes_truth.py.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from cause_collection import FRAMEWORKS, KINDS, Cause, CauseProgram, Place, programs

EVERY = [program for framework in FRAMEWORKS for program in programs(framework)]


@pytest.fixture(params=EVERY, ids=lambda entry: f"{entry.framework}-{entry.name}")
def program(request: pytest.FixtureRequest) -> CauseProgram:
    """One program of the collection; the test runs for each."""
    return request.param


def test_a_program_has_a_cause_and_a_fix_or_is_clean(program: CauseProgram) -> None:
    assert program.name.startswith("clean_") == (not program.causes)
    assert bool(program.causes) == bool(program.fix) == bool(program.changes)
    assert program.kinds <= set(KINDS)


def test_each_place_is_one_line_of_its_file(program: CauseProgram) -> None:
    for place in (place for cause in program.causes for place in cause.places):
        assert place.line(program.folder) > 0
        assert place.kind in KINDS


def test_an_alternative_place_has_a_reason(program: CauseProgram) -> None:
    assert all(place.why for cause in program.causes for place in cause.alternatives)


def test_its_fix_changes_the_copy_that_runs(program: CauseProgram, tmp_path: Path) -> None:
    plain, fixed = program.copy(tmp_path / "plain"), program.copy(tmp_path / "fixed", fixed=True)
    changed = {path.name for path in plain.rglob("*.py") if path.read_text() != (fixed / path.name).read_text()}
    assert changed == {change.file for change in program.changes}
    for path in fixed.glob("*.py"):
        compile(path.read_text("utf-8"), str(path), "exec")
    assert not list(plain.glob("expected.toml"))


def test_each_of_two_causes_can_be_fixed_alone(program: CauseProgram, tmp_path: Path) -> None:
    if len(program.causes) > 1:
        assert {change.mends for change in program.changes} == program.kinds
        copies = [program.copy(tmp_path / kind, fixed=True, but=kind) for kind in sorted(program.kinds)]
        texts = [[path.read_text() for path in sorted(copy.glob("*.py"))] for copy in copies]
        assert texts[0] != texts[1]


def test_the_wrong_line_of_a_file_is_distinguished_from_the_right_one(program: CauseProgram) -> None:
    for cause in program.causes:
        line = cause.place.line(program.folder)
        assert cause.place.is_at(program.folder, {"file": f"/copy/{cause.place.file}", "line": line})
        assert not cause.place.is_at(program.folder, {"file": f"/copy/{cause.place.file}", "line": line + 1})
        assert not cause.place.is_at(program.folder, {"file": "/copy/other.py", "line": line})


def test_a_text_that_is_not_one_line_is_refused(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("a = 1\nb = 2\na = 1\n")
    for text in ("a = 1", "c = 3"):
        with pytest.raises(ValueError, match="lines"):
            Place("clock", "main.py", text).line(tmp_path)
    assert Place("clock", "main.py", "b = 2").line(tmp_path) == 2


def test_an_unknown_program_is_refused() -> None:
    with pytest.raises(ValueError, match="no program of torch: no_such"):
        programs("torch", ["no_such"])


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_each_half_is_large_enough(framework: str) -> None:
    """The programs of a framework are one half of the collection."""
    half = [entry for entry in EVERY if entry.framework == framework]
    assert len(half) >= 30
    assert sum(not entry.causes for entry in half) >= 6
    assert sum(entry.first_run_only for entry in half) >= 2
    assert sum(entry.runs >= 12 for entry in half) >= 2
    assert not [kind for kind in KINDS if _count(half)[kind] < 2]


def test_some_have_two_causes() -> None:
    assert sum(len(entry.causes) == 2 for entry in EVERY) >= 5


def _count(chosen: list[CauseProgram]) -> Counter[str]:
    """Count, for each kind, the programs that have it as a cause or as another right answer."""
    return Counter(
        kind for entry in chosen for kind in {place.kind for cause in entry.causes for place in _main(cause)}
    )


def _main(cause: Cause) -> list[Place]:
    """Return the place that an answer should name, and right ones of two kinds that pin a whole process."""
    return [cause.place, *(entry for entry in cause.alternatives if entry.kind in ("switches", "one-thread"))]
