"""The results of interventions: the causes, each with its proof, or that no pin removes the difference."""

from ..schema.ledger import split_place

TRACE_ONLY = "only traces were asked for"
FAILED = "the program fails"  # the end of a line of `tried`
SAME, PROVEN, NOT_PROVED, NOT_TRIED = "same", "proven", "not proved", "not tried"


class Place(object):
    """A line at which a pin alone makes the runs agree.

    what: the function that is called there; text: of the line; path: of a file that is read there, for a cause that is
    a file.
    """

    def __init__(self, place, what, text, path=None):
        self.file, self.line = split_place(place)
        self.what, self.text, self.path = what, text, path

    def as_json(self):
        return {"file": self.file, "line": self.line, "what": self.what, "text": self.text, "path": self.path}

    def __str__(self):
        return "{}:{}".format(self.file, self.line)


class ProvenCause(object):
    """A kind of nondeterminism without which the runs agree, and with which they differ.

    kind: its class of interpose.kinds; places: the Places at which a pin alone suffices, [] if no line suffices;
    pinned_places: what the pin names for them; pins: all pins of the test, {kind: None, or its places}; runs: number
    of runs with these pins, which all ended alike; pinned_calls: how often the pin gave a value in the last run with
    it everywhere or at some lines; first_run_only: whether only the first run without pins ended otherwise;
    place_runs: number of runs with the pin at these places alone, which all ended alike; details: lines of text on
    what differs; fix: a source_fix_trial.SourceFix.
    """

    def __init__(self, kind, pins, runs, first_run_only):
        self.kind, self.pins, self.runs, self.first_run_only = kind, pins, runs, first_run_only
        self.places, self.place_runs, self.pinned_calls, self.fix = [], 0, 0, None
        self.details, self.pinned_places = [], []  # type: tuple[list[str], list[str]]

    @property
    def pinned(self):
        """The sorted names of all pins of the test."""
        return sorted(self.pins)

    def as_json(self):
        return {
            "kind": self.kind.name,
            "words": self.kind.label,
            "places": [place.as_json() for place in self.places],
            "first_run_only": self.first_run_only,
            "details": self.details,
            "proof": {
                "pinned": self.pinned,
                "runs": self.runs,
                "equal": self.runs,
                "pinned_calls": self.pinned_calls,
                "runs_at_places": self.place_runs,
            },
            "fix": self.fix and self.fix.as_json(),
        }


class Interventions(object):
    """The results of all runs with and without pins.

    verdict: SAME, PROVEN, NOT_PROVED (with all pins the runs still differ, or the program fails), NOT_TRIED; compared:
    which result of a run is compared; runs: ends of the runs without pins, as numbers of the first that each equals;
    needed: number of runs that must agree; also_differ: other results that differ and are not compared; causes:
    ProvenCauses; tried: lines of text; latent: kinds that make a difference if they are varied; noted: calls without a
    pin, or, of SAME, that were not varied; why: the reason of NOT_TRIED.
    """

    def __init__(self):
        self.verdict, self.compared, self.runs, self.needed = NOT_TRIED, None, [], 0
        self.causes, self.tried, self.latent, self.varied, self.why, self.total = [], [], [], [], None, 0
        self.noted, self.also_differ = [], []

    def without_effect(self):
        """Return the lines of `tried` about whole kinds with which the runs still differ, each once."""
        return sorted({line for line in self.tried if "equal in" not in line and " at " not in line})

    @property
    def fails_with_all(self):
        """Whether the last test, with every kind pinned, ended in a failure of the program."""
        return bool(self.tried) and self.tried[-1].endswith(FAILED)

    @property
    def distinct(self):
        return len(set(self.runs))

    def as_json(self):
        return {
            "verdict": self.verdict,
            "compared": self.compared,
            "runs": len(self.runs),
            "distinct": self.distinct,
            "needed": self.needed,
            "tried": self.tried,
            "latent": self.latent,
            "varied": self.varied,
            "noted": self.noted,
            "also_differ": self.also_differ,
            "why": self.why,
            "total_runs": self.total,
        }
