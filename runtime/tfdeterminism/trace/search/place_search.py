"""The lines of a proven cause: the pin told to hold at some of them only."""

import io
import os

from ..interpose import kinds
from ..schema.ledger import is_users_line, split_place
from .minimize import ddmin
from .proven_cause import Place

_STARTS = ("start", "submit", "apply_async")  # calls of the kind completion that start a task
_ALONE = 2  # lines that are tried alone first


class PlaceSearch(object):
    """search: a cause_search.CauseSearch that has found causes; copy: its program_copy.ProgramCopy."""

    def __init__(self, search, copy):
        self._search, self._copy = search, copy

    def find(self, cause):
        """Fill in the places of a ProvenCause, if some lines alone suffice."""
        name = cause.kind.name
        if not cause.kind.has_places:
            self._only_line(cause)
            return
        candidates = self.candidates(name)
        if not candidates:
            return
        whole = cause.pins

        def test(part):
            return self._search.agree(dict(whole, **{name: sorted(part)}))

        found = next(([one] for one in candidates[:_ALONE] if test([one])), None)
        drawn = self._search.first_draws()
        likely = [one for one in candidates if name == "files" or _is_users(one, drawn)]
        for some in (likely, candidates):
            if found is None and some and test(some):
                found = ddmin(some, test)
        if found is not None:
            cause.place_runs = self._search.found.needed
            cause.places = [self._place(name, one) for one in found]

    def _only_line(self, cause):
        """A pin that holds everywhere holds at one line alone where no other line asks."""
        lines = self._search.users_lines(cause.kind.name)
        if len(lines) == 1:
            cause.place_runs = cause.runs
            cause.places = [self._place(cause.kind.name, one) for one in lines]

    def candidates(self, name):
        """Places of a kind, the likeliest first."""
        if not kinds.BY_NAME[name].has_places:
            return []
        return self._files() if name == "files" else self._ranked(name)

    def _files(self):
        """Paths of files that an earlier run left, those that were read first."""
        read = sorted(self._search.read_files())
        return read or sorted(self._search.carried_files())

    def _ranked(self, name):
        """Places: the user's lines first, of them those whose values differ; lines that take results before lines that
        start tasks."""
        rows = [row for row in self._search.events(name) if row.what not in ("process", kinds.FIRST_DRAW)]
        differing = set(self._search.differing_places(name))
        starts = {row.place for row in rows if row.what in _STARTS}
        drawn = self._search.first_draws()

        def unlikeliness(place):
            return (
                not _is_users(place, drawn),
                place not in differing and place not in drawn,
                place in starts,
                place,
            )

        return sorted({row.place for row in rows}, key=unlikeliness)

    def _place(self, name, place):
        if name == "files":
            line, how = self._search.read_files().get(place, ("", ""))
            return Place(line, how, self._text(line), self._copy.out_of_copy(place))
        line = self._search.first_draws().get(place, place)
        what = sorted(
            {
                row.what
                for row in self._search.events(name)
                if row.place == place and row.what != kinds.FIRST_DRAW
            }
        )
        return Place(line, ", ".join(what), self._text(line))

    def _text(self, place):
        """The line of the user's program, "" where it cannot be read."""
        file, line = split_place(place)
        path = os.path.join(self._copy.root, file)
        if not file or not os.path.isfile(path):
            return ""
        with io.open(path, encoding="utf-8", errors="replace") as source:
            lines = source.read().splitlines()
        return lines[line - 1].strip() if line <= len(lines) else ""


def _is_users(place, drawn):
    """Is it a line of the user's, or a global generator that one drew from? drawn: those that any drew from."""
    return is_users_line(place) or place in drawn
