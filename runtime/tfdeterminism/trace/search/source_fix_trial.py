"""The trial of edits of the user's lines that fix proven causes: they are made in the copy, which is then run.

A cause is a kind of nondeterminism. A pin gives a kind the same value in every run, without an edit.
"""

import difflib
import io
import os
import re

from ..causes import source_fixes
from ..schema.ledger import split_place
from .work import fewer_steps, shortfall

HOLDS, DIFFERS, FAILS, DOES_LESS, UNTRIED = "holds", "differs", "fails", "does less", "untried"
_WORTH = (HOLDS, DOES_LESS, DIFFERS, FAILS)  # the first of them that any of the edits had is the result
_CANDIDATES = 6  # alternative edits that are tried
# Numbers of the candidates by where they seed; later ones seed in the function that a pool runs and that draws.
_IN_MAIN, _WHERE_DRAWN = 0, 1


# The header of a part of a diff: the first old line, and the number of old lines if it is not 1.
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? ")


def _place_of_hunk(file, line, adds):
    if not adds:
        return "{}:{}".format(file, line)
    return "behind {}:{}".format(file, line) if line else "at the top of {}".format(file)


class SourceFix(object):
    """An edit of the program's source.

    advice: one line; diff: lines of a unified diff, [] if no edit is known; result: HOLDS, DOES_LESS (the runs agree,
    because the program does less), DIFFERS, FAILS or UNTRIED; runs: number of runs with the edit; pinned: the kinds
    that were pinned in these runs, because no edit is known for them; attempts: [(result, what the program did less, or
    how it failed, or None)] of all edits that were tried.
    """

    def __init__(self, kind, diff=(), calls=()):
        self.diff, self.result, self.runs, self.pinned = list(diff), UNTRIED, 0, []  # type: tuple[list, str, int, list]
        self.attempts = []  # type: list[tuple[str, str | None]]
        self.advice = source_fixes.advice(kind, self.new_lines(), calls)

    def as_json(self):
        return {"words": self.advice, "diff": self.diff, "result": self.result, "runs": self.runs,
                "pinned": self.pinned, "does_less": [words for result, words in self.attempts if result == DOES_LESS]}

    def new_lines(self):
        """Return the lines that the edit writes."""
        return [line for _, lines in self.edits() for line in lines]

    def edits(self):
        """Return [(place, lines)]: the lines that the edit writes, and where.

        place: "FILE:LINE" of the line that they replace, or "behind FILE:LINE"; "at the top of FILE".
        """
        edits, file = [], ""  # type: tuple[list, str]
        for line in self.diff:
            hunk = _HUNK.match(line)
            if line.startswith("+++ "):
                file = line[4:]
            elif hunk:
                edits.append((_place_of_hunk(file, int(hunk.group(1)), hunk.group(2) == "0"), []))
            elif line.startswith("+"):
                edits[-1][1].append(line[1:])
        return edits


def _calls_of(cause):
    return [call for place in cause.places for call in place.what.split(", ")]


class SourceFixTrial(object):
    """The trial of the edits for the causes of one program.

    search: a cause_search.CauseSearch that has found causes; copy: its program_copy.ProgramCopy.
    """

    def __init__(self, search, copy):
        self._search, self._copy = search, copy
        self._causes = search.interventions.causes
        self._counted = []  # Work of runs without an edit whose traces count steps, None for one that failed

    def suggest(self):
        """Give each cause its likeliest fix, untried."""
        for cause in self._causes:
            cause.fix = SourceFix(cause.kind.name, self._diff(self._edit_files([cause], 0)), _calls_of(cause))
            if any(place.in_child for place in cause.places):
                cause.fix.advice += ", in the process that is started there"

    def run(self):
        """Try the fixes together, the likeliest first, and record the results in the fixes.

        Causes for which no edit is known are pinned meanwhile.
        """
        causes = [cause for cause in self._causes if self._edit_files([cause], 0)]
        pins = {cause.kind.name: None for cause in self._causes if cause not in causes}
        needed_pins = {name for cause in self._causes if cause not in causes for name in cause.kind.required_pins}
        if any(cause.kind.name in needed_pins for cause in causes):  # the pin would hide what the fix does
            return
        tried, attempts = [], []  # type: tuple[list, list]
        for number in range(_CANDIDATES):
            texts = self._edit_files(causes, number)
            if texts in tried or not texts or not all(self._edit_files([cause], number) for cause in causes):
                continue
            tried.append(texts)
            result, less, runs = self._try(texts, dict(pins, **dict.fromkeys(needed_pins)))
            attempts.append((result, less))
            for cause in causes:
                if result == HOLDS or number == 0:
                    diff = self._diff(self._edit_files([cause], number))
                    cause.fix = SourceFix(cause.kind.name, diff, _calls_of(cause))
                cause.fix.result = min((attempt for attempt, _ in attempts), key=_WORTH.index)
                cause.fix.attempts, cause.fix.runs, cause.fix.pinned = attempts, runs, sorted(pins)
            if result == HOLDS:
                return
        for cause in causes if attempts else ():  # what was rejected is not advised
            cause.fix.advice = source_fixes.advice(cause.kind.name, calls=_calls_of(cause))

    def _try(self, texts, pins):
        """Return (result, what the program does less with these texts, how it fails, or None; number of runs)."""
        required = self._search.interventions.required_runs
        self._copy.patch(texts)
        try:
            runs = self._search.run_series(pins, required, doing="with the fix")
            if runs[-1].failed:
                return FAILS, "does not end" if runs[-1].failed.is_late else "fails", len(runs)
            if len(runs) < required or not self._search.have_equal_ends(runs):
                return DIFFERS, None, len(runs)
            less = shortfall(runs[0].work, [run.work for run in self._search.baseline])
            counted = None if less else self._search.counted_work(pins, "steps with the fix")
        finally:
            self._copy.unpatch()
        less = less or counted and self._fewer_steps(counted)
        return (DOES_LESS if less else HOLDS), less, len(runs)

    def _fewer_steps(self, counted):
        """Return in words how many steps, or values, fewer there are with an edit; None if there are as many.

        A second run without the edit shows whether their number varies.
        """
        less = None
        for number in (1, 2):
            if len(self._counted) < number:
                self._counted.append(self._search.counted_work({}, "steps without the fix"))
            less = fewer_steps(counted, [work for work in self._counted if work])
            if not less:
                break
        return less

    # Changes

    def _edit_files(self, causes, number):
        """Return {file: text} with the causes' fixes. number: which of their candidates to use.

        Edits of lines come first, because they keep the numbers of lines.
        """
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
        # with_counters() adds the definitions of counters that edits use in place of a clock or of random names.
        return {file: source_fixes.with_counters(text) for file, text in texts.items()}

    def _new_lines(self, cause, number):
        """Return [(file, statements)] that a cause's fix adds to files.

        They go into the main script first. A later candidate seeds generators in the files that draw from them, which
        may be the main scripts of other processes.
        """
        main, lines = self._main(), self._lines(cause)
        if cause.kind.name == "random" and number != _IN_MAIN:
            files = {generator: split_place(line)[0] for generator, line in self._unseeded(cause)}
            return [
                (file, source_fixes.seed_lines(generator))
                for generator, file in sorted(files.items())
                if self._text({}, file) is not None and source_fixes.seed_lines(generator)
            ]
        return [(main, lines)] if main and lines else []

    def _seed_in_tasks(self, texts, cause):
        """Seed generators in the functions that draw from them, since a fork reseeds Python's generator.

        The edits go from the last line to the first, so that lines keep their numbers.
        """
        draws = [(split_place(line), generator) for generator, line in self._unseeded(cause)]
        for (file, line), generator in sorted(draws, reverse=True):
            text = self._text(texts, file)
            new_text = text and source_fixes.seeded_by_arguments(text, line, generator)
            if new_text != text:
                texts[file] = new_text

    def _change_line(self, texts, kind, place, number):
        # "begins" marks a global generator of random numbers, which is seeded in the main script.
        if place.what == "begins" or not place.file or place.in_child:
            return
        text = self._text(texts, place.file)
        if text is None:
            return
        processes = {row.position for row in self._search.ledger_rows(kind) if row.place == str(place)}
        new_texts = source_fixes.changes_of_line(kind, text, place.line, len(processes) > 1)
        candidates = [{place.file: new_text} for new_text in new_texts]
        if kind == "addresses" and len(candidates) <= number:
            candidates += self._sets_elsewhere(texts, source_fixes.names_in_line(text, place.line))
        if candidates:
            texts.update(candidates[min(number, len(candidates) - 1)])

    def _sets_elsewhere(self, texts, names):
        """Return [{file: text}] in which sets of these names keep insertion order, or []."""
        texts_with_dicts = {}
        for file in self._copy.python_files():
            text = self._text(texts, file) or ""
            new_text = source_fixes.sets_as_dicts(text, names) if any(name in text for name in names) else text
            texts_with_dicts.update({file: new_text} if new_text != text else {})
        return [texts_with_dicts] if texts_with_dicts else []

    def _lines(self, cause):
        """Return the statements that a cause's fix adds to the main script."""
        name, framework = cause.kind.name, self._framework()
        if name == "random":
            return [line for generator, _ in self._unseeded(cause) for line in source_fixes.seed_lines(generator)]
        if name == "files":
            paths = [os.path.relpath(place.path, self._copy.root) for place in cause.places if place.path]
            return [
                line
                for path in paths
                if not path.startswith(os.pardir) and not self._copy.existed_before(path)
                for line in source_fixes.remove_file_lines(path)
            ]
        if name == "tensor-fusion":
            return source_fixes.fusion_lines()
        if name in ("switches", "schedule"):
            return source_fixes.switch_lines(framework)
        return source_fixes.thread_lines(framework) if name == "one-thread" else []

    def _unseeded(self, cause):
        """Return (name, line of the first draw) of the global generators among the places of a cause.

        All generators that were drawn from are returned if the cause has no places.
        """
        lines = {str(place) for place in cause.places}
        return sorted(draw for draw in self._search.first_draws().items() if not lines or draw[1] in lines)

    def _framework(self):
        """Return the name of the framework's module in the ledger, or None."""
        modules = {row.place.partition(":")[2] for row in self._search.ledger_rows("random") if row.is_global}
        return next((name for name in ("torch", "tensorflow") if name in modules), None)

    def _main(self):
        """Return the main script's name in the program's folder, or None.

        For a launcher (-m torch.distributed.run train.py) it is the launcher's first argument that is a script.
        """
        arguments = self._copy.program
        is_module = arguments[0] == "-m"
        for path in [path for path in arguments[2:] if path.endswith(".py")] if is_module else arguments[:1]:
            full = os.path.join(self._copy.cwd, path)
            name = os.path.relpath(full, self._copy.work)
            if not name.startswith(os.pardir) and os.path.isfile(full):
                return name
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
        lines = []
        for file, text in sorted(texts.items()):
            old_text = self._text({}, file)
            lines += [
                line.rstrip("\n")
                for line in difflib.unified_diff(
                    old_text.splitlines(), text.splitlines(), file, file, lineterm="", n=0
                )
            ]
        return lines
