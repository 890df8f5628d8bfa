"""The search for the lines of a proven cause, by pins that hold at some lines only.

A pin gives the program the same value in every run, for one kind of nondeterminism. Its places are the user's lines,
paths of files, or global generators of random numbers.
"""

import io
import os

from ..interpose import kinds
from ..schema.ledger import is_user_line, split_place
from .minimize import ddmin
from .proven_cause import Place

_STARTS = ("start", "fork", "submit", "apply_async")  # calls of the kind completion that start a task
_ALONE = 4  # lines that are tried alone first: where a line does not suffice, two runs often show it


class PlaceSearch(object):
    """The search for lines.

    search: a cause_search.CauseSearch that has found causes; copy: its program_copy.ProgramCopy.
    """

    def __init__(self, search, copy):
        self._search, self._copy = search, copy

    def find(self, cause):
        """Set the places of a ProvenCause, if pins at some lines alone suffice."""
        name = cause.kind.name
        if not cause.kind.has_places:
            self._set_only_line(cause)
            return
        candidates = self.candidates(name)
        if not candidates:
            return
        all_pins = cause.pins

        def test(places):
            return self._search.agree(dict(all_pins, **{name: sorted(places)}))

        minimal = next(([place] for place in candidates[:_ALONE] if test([place])), None)
        draws = self._search.first_draws()
        likely = [place for place in candidates if name == "files" or _is_user_place(place, draws)]
        for group in (likely, candidates):
            if minimal is None and group and test(group):
                minimal = ddmin(group, test)
        if minimal is not None:
            runs = self._search.agreed_runs(dict(all_pins, **{name: sorted(minimal)}))
            self.set_places(cause, minimal, runs, runs)

    def set_places(self, cause, places, runs, agreed):
        """Set the places of a cause, with the number of runs in which it was pinned there alone, and that agreed."""
        cause.pinned_places = sorted(places)
        cause.place_runs, cause.place_agreed = runs, agreed
        found = [self._place(cause.kind.name, place) for place in places]
        cause.places = found if all(place.line or place.path for place in found) else []  # a generator has no line

    def _set_only_line(self, cause):
        """Set the place of a cause whose pin holds everywhere, if only one line uses it."""
        lines = self._search.users_lines(cause.kind.name)
        if len(lines) == 1:
            cause.place_runs = cause.place_agreed = cause.runs
            cause.places = [self._place(cause.kind.name, line) for line in lines]

    def candidates(self, name):
        """Return the places of a kind, the likeliest first."""
        if not kinds.BY_NAME[name].has_places:
            return []
        if name == kinds.BackgroundThread.name:
            return self._search.background_lines()
        return self._files() if name == "files" else self._rank_places(name)

    def _files(self):
        """Return the paths of files that an earlier run left: those that were read, else all."""
        read = sorted(self._search.read_files())
        return read or sorted(self._search.carried_files())

    def _rank_places(self, name):
        """Return the places of a kind, the likeliest first.

        The user's lines come first, and among these the lines whose values differ. Lines that take results come before
        lines that start tasks.
        """
        # A row "process" only notes whether a process was pinned as a whole.
        rows = [row for row in self._search.ledger_rows(name) if row.what not in ("process", kinds.FIRST_DRAW)]
        differing = set(self._search.differing_places(name))
        starts = {row.place for row in rows if row.what in _STARTS}
        draws = self._search.first_draws()

        def unlikeliness(place):
            return (
                not _is_user_place(place, draws),
                place not in differing and place not in draws,
                place in starts,
                place,
            )

        return sorted({row.place for row in rows}, key=unlikeliness)

    def _place(self, name, place):
        if name == "files":
            line, use = self._search.read_files().get(place, ("", ""))
            return Place(line, use, self._text(line), self._copy.out_of_copy(place))
        line = self._search.first_draws().get(place, place)
        calls = sorted(
            {
                row.what
                for row in self._search.ledger_rows(name)
                if row.place == place and row.what != kinds.FIRST_DRAW
            }
        )
        return Place(line, ", ".join(calls), self._text(line))

    def _text(self, place):
        """Return the line of the user's program, "" if it cannot be read."""
        file, line = split_place(place)
        path = os.path.join(self._copy.root, file)
        if not file or not os.path.isfile(path):
            return ""
        with io.open(path, encoding="utf-8", errors="replace") as source:
            lines = source.read().splitlines()
        return lines[line - 1].strip() if line <= len(lines) else ""


def _is_user_place(place, draws):
    """Return whether a place is a line of the user's, or a global generator in `draws`."""
    return is_user_line(place) or place in draws
