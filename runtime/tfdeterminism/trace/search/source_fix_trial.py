"""The fix of proven causes, as a change of the user's lines: made in the copy, run, and said to hold or not."""

import difflib
import io
import os

from ..causes import source_fixes
from ..schema.ledger import split_place

HOLDS, DIFFERS, FAILS, UNTRIED = "holds", "differs", "fails", "untried"
_CANDIDATES = 4  # ways to change the lines that are tried
_IN_MAIN, _WHERE_DRAWN = 0, 1  # numbers of those in which a global generator is seeded; later, in the task that draws


class SourceFix(object):
    """words: what to do; diff: lines of a unified diff, [] where no change of the lines is known; result: HOLDS,
    DIFFERS, FAILS or UNTRIED; runs: how many were made with it."""

    def __init__(self, kind, diff=()):
        self.diff, self.result, self.runs = list(diff), UNTRIED, 0
        self.words = source_fixes.words(kind, self.new_lines())

    def as_json(self):
        return {"words": self.words, "diff": self.diff, "result": self.result, "runs": self.runs}

    def new_lines(self):
        """The lines that the change writes."""
        return [line[1:] for line in self.diff if line.startswith("+") and not line.startswith("+++")]


class SourceFixTrial(object):
    """search: a cause_search.CauseSearch that has found causes; copy: its program_copy.ProgramCopy."""

    def __init__(self, search, copy):
        self._search, self._copy = search, copy
        self._causes = search.found.causes

    def suggest(self):
        """Give each cause its likeliest fix, untried."""
        for cause in self._causes:
            cause.fix = SourceFix(cause.kind.name, self._diff(self._changed([cause], 0)))

    def run(self):
        """Try the fixes of all causes together, the likeliest first; each cause's fix tells what came of it."""
        tried = []
        for number in range(_CANDIDATES):
            texts = self._changed(self._causes, number)
            if texts in tried or not self._covers_all(number):
                continue
            tried.append(texts)
            result, runs = self._try(texts)
            for cause in self._causes:
                if result == HOLDS or number == 0:
                    cause.fix = SourceFix(cause.kind.name, self._diff(self._changed([cause], number)))
                cause.fix.result, cause.fix.runs = result, runs
            if result == HOLDS:
                break

    def _covers_all(self, number):
        return all(self._changed([cause], number) for cause in self._causes)

    def _try(self, texts):
        self._copy.patch(texts)
        try:
            done = self._search.series({}, self._search.found.needed)
        finally:
            self._copy.unpatch()
        if done[-1].failed:
            return FAILS, len(done)
        same = len(done) == self._search.found.needed and self._search.alike(done)
        return (HOLDS if same else DIFFERS), len(done)

    # Changes

    def _changed(self, causes, number):
        """{file: text} with the causes' fixes; number: which of their candidates. Lines first: they keep their
        numbers."""
        texts = {}
        for cause in causes:
            for place in cause.places if cause.kind.name != "files" else ():
                self._change_line(texts, cause.kind.name, place, number)
        for cause in causes:
            if cause.kind.name == "random" and number > _WHERE_DRAWN:
                self._seed_in_tasks(texts, cause)
                continue
            for file, lines in self._new_lines(cause, number):
                texts[file] = source_fixes.with_lines(self._text(texts, file), lines)
        return {file: source_fixes.with_ticks(text) for file, text in texts.items()}

    def _new_lines(self, cause, number):
        """(file, statements) that a cause's fix adds: to the main script; if that does not do, to the files that draw
        from the generators, which may be another process's main script."""
        main, lines = self._main(), self._lines(cause)
        if cause.kind.name == "random" and number != _IN_MAIN:
            drawing = {one: split_place(line)[0] for one, line in self._unseeded(cause)}
            return [
                (file, source_fixes.seed_lines(one))
                for one, file in sorted(drawing.items())
                if self._text({}, file) is not None and source_fixes.seed_lines(one)
            ]
        return [(main, lines)] if main and lines else []

    def _seed_in_tasks(self, texts, cause):
        """From below, so that lines keep their numbers. A fork seeds Python's generator anew."""
        drawn = [(split_place(line), one) for one, line in self._unseeded(cause)]
        for (file, line), generator in sorted(drawn, reverse=True):
            before = self._text(texts, file)
            after = before and source_fixes.seeded_by_arguments(before, line, generator)
            if after != before:
                texts[file] = after

    def _change_line(self, texts, kind, place, number):
        if place.what == "begins" or not place.file:  # a global generator: it is seeded in the main script
            return
        before = self._text(texts, place.file)
        if before is None:
            return
        candidates = [{place.file: one} for one in source_fixes.changes_of_line(kind, before, place.line)]
        if kind == "addresses" and len(candidates) <= number:
            candidates += self._sets_elsewhere(texts, source_fixes.names_in_line(before, place.line))
        if candidates:
            texts.update(candidates[min(number, len(candidates) - 1)])

    def _sets_elsewhere(self, texts, names):
        """[{file: text}] with what the program's files keep in sets of these names in an order; [] if they do not."""
        changed = {}
        for file in self._copy.python_files():
            before = self._text(texts, file) or ""
            after = source_fixes.sets_as_dicts(before, names) if any(name in before for name in names) else before
            changed.update({file: after} if after != before else {})
        return [changed] if changed else []

    def _lines(self, cause):
        """Statements for the main script."""
        name, framework = cause.kind.name, self._framework()
        if name == "random":
            return [line for one, _ in self._unseeded(cause) for line in source_fixes.seed_lines(one)]
        if name == "files":
            paths = [os.path.relpath(place.path, self._copy.root) for place in cause.places if place.path]
            return [
                line
                for path in paths
                if not path.startswith(os.pardir) and not self._copy.was_there(path)
                for line in source_fixes.remove_file_lines(path)
            ]
        if name == "tensor-fusion":
            return source_fixes.fusion_lines()
        if name in ("switches", "schedule"):
            return source_fixes.switch_lines(framework)
        return source_fixes.thread_lines(framework) if name == "one-thread" else []

    def _unseeded(self, cause):
        """(name, line of the first draw) of the global generators among the places of a cause; all that were drawn from
        where no place is known."""
        lines = {str(place) for place in cause.places}
        return sorted(one for one in self._search.first_draws().items() if not lines or one[1] in lines)

    def _framework(self):
        """The name of the module, as the ledger tells it, or None."""
        found = {row.place.partition(":")[2] for row in self._search.events("random") if row.is_global}
        return next((name for name in ("torch", "tensorflow") if name in found), None)

    def _main(self):
        """The main script's name in the program's folder, or None. Of a launcher (-m torch.distributed.run train.py)
        it is the first script that it is given."""
        words = self._copy.program
        for path in [one for one in words[2:] if one.endswith(".py")] if words[0] == "-m" else words[:1]:
            full = os.path.join(self._copy.cwd, path)
            inside = os.path.relpath(full, self._copy.work)
            if not inside.startswith(os.pardir) and os.path.isfile(full):
                return inside
        return None

    def _text(self, texts, file):
        if file in texts:
            return texts[file]
        path = os.path.join(self._copy.work, file)
        if os.path.isabs(file) or not os.path.isfile(path):
            return None
        with io.open(path, encoding="utf-8", errors="surrogateescape", newline="") as source:
            return source.read()

    def _diff(self, texts):
        found = []
        for file, text in sorted(texts.items()):
            before = self._text({}, file)
            found += [
                line.rstrip("\n")
                for line in difflib.unified_diff(
                    before.splitlines(), text.splitlines(), file, file, lineterm="", n=0
                )
            ]
        return found
