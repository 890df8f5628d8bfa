"""The sources that `tfdet check` finds in a program, for tests of the program parser."""

from __future__ import annotations

from pathlib import Path

from tfdet.matrix.load import Matrix
from tfdet.verdicts.enabled_solutions import find_enabled_solutions
from tfdet.verdicts.programs import Program, parse_programs
from tfdet.verdicts.reachable_sources import SourceIndex, SourceMatch


def parsed_program(folder: Path, text: str, name: str = "train.py") -> Program:
    """Write the text to a file and parse it as `tfdet check` does."""
    path = folder / name
    path.write_text(text, "utf-8")
    return parse_programs([path])


def matched_sources(matrix: Matrix, framework: str, program: Program) -> list[SourceMatch]:
    """Return the sources that the calls of the program reach, or may reach."""
    naming = matrix.frameworks[framework].naming
    assert naming
    return list(SourceIndex(naming, matrix.for_framework(framework).sources).match_program(program))


def certain_sources(matrix: Matrix, framework: str, program: Program) -> set[str]:
    """Return the names of the sources that the program certainly reaches."""
    return {match.source for match in matched_sources(matrix, framework, program) if not match.open_condition}


def possible_sources(matrix: Matrix, framework: str, program: Program) -> set[str]:
    """Return the names of the sources that the program may reach: the type of an object is not known."""
    return {match.source for match in matched_sources(matrix, framework, program) if match.open_condition}


def enabled_solutions(matrix: Matrix, folder: Path, *lines: str) -> set[str]:
    """Return the names of the solutions that these lines of a program enable."""
    return find_enabled_solutions(matrix, parsed_program(folder, "\n".join(lines)), [])
