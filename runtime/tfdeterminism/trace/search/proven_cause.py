"""The results of interventions: the causes, each with its proof, or that no pin removes the difference.

An intervention runs the program with a pin, which gives it the same value in every run for one kind of nondeterminism,
everywhere or at some lines. Runs agree if their ends, such as the final weights, are equal.
"""

from ..schema.ledger import CHILD, split_place
from . import chance

TRACE_ONLY = "only traces were asked for"
FAILED, ENDLESS = "the program fails", "the program does not end"  # ends of lines of `tried`
SAME, PROVEN, PARTLY, NOT_PROVED, NOT_TRIED = "same", "proven", "partly proven", "not proved", "not tried"
# Why a search ends without a full proof.
ALL_DIFFER, ALL_FAIL = "runs differ with all pins", "the program fails with all pins"
ALL_ENDLESS = "the program does not end with all pins"
NOT_CONFIRMED, LIMIT = "new runs did not confirm it", "limit of runs"


class Place(object):
    """A line at which a pin alone makes the runs agree.

    in_child: whether a process that the line starts does it; what: the function that is called there; text: of the
    line; path: of a file that is read there, for a cause that is a file.
    """

    def __init__(self, place, what, text, path=None):
        self.file, self.line = split_place(place)
        self.in_child = CHILD in place
        self.what, self.text, self.path = what, text, path

    def as_json(self):
        return {"file": self.file, "line": self.line, "what": self.what, "text": self.text, "path": self.path}

    def __str__(self):
        return "{}:{}".format(self.file, self.line)


class ProvenCause(object):
    """A kind of nondeterminism without which the runs agree, and with which they differ.

    kind: its class of interpose.kinds; places: the Places at which a pin alone suffices, [] if no line suffices;
    pinned_places: what the pin names for them; pins: all pins of the test, {kind: None, or its places}; runs: number
    of runs with these pins; agreed: how many of them ended alike, all unless the cause is PARTLY proven; pinned_calls:
    how often the pin gave a value in the last run with it everywhere or at some lines; first_run_only: whether only
    the first run without pins ended otherwise; place_runs, place_agreed: runs with the pin at these places alone, and
    how many of them ended alike; details: lines of text on what differs; fix: a source_fix_trial.SourceFix.
    """

    def __init__(self, kind, pins, runs, first_run_only):
        self.kind, self.pins, self.runs, self.first_run_only = kind, pins, runs, first_run_only
        self.places, self.place_runs, self.pinned_calls, self.fix = [], 0, 0, None
        self.agreed, self.place_agreed = runs, 0
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
                "equal": self.agreed,
                "pinned_calls": self.pinned_calls,
                "runs_at_places": self.place_runs,
                "equal_at_places": self.place_agreed,
            },
            "fix": self.fix and self.fix.as_json(),
        }


class Interventions(object):
    """The results of all runs with and without pins.

    verdict: SAME, PROVEN, PARTLY (a cause with which pinned more runs agree, and not all), NOT_PROVED, NOT_TRIED;
    reason: why a search ends PARTLY or NOT_PROVED: ALL_DIFFER, ALL_FAIL, ALL_ENDLESS, NOT_CONFIRMED, LIMIT; compared:
    which result of a run is compared; runs: ends of the runs without pins, as numbers of the first that each equals;
    required_runs: number of runs that must agree; also_differ: other results that differ and are not compared; causes:
    ProvenCauses; tried: lines of text; latent: kinds that make a difference if they are varied; noted: calls without a
    pin, or, of SAME, that were not varied; why: the reason of NOT_TRIED.
    """

    def __init__(self):
        self.verdict, self.compared, self.runs, self.required_runs = NOT_TRIED, None, [], 0
        self.causes, self.tried, self.latent, self.varied, self.why, self.total = [], [], [], [], None, 0
        self.noted, self.also_differ, self.reason = [], [], None

    def without_effect(self):
        """Return the lines of `tried` about whole kinds with which the runs still differ, each once."""
        return sorted({line for line in self.tried if "equal in" not in line and " at " not in line})

    def unseen_share(self):
        """Return the share of runs that another cause may change unseen, because few runs agreed; None if unproven."""
        if self.verdict != PROVEN:
            return None
        return chance.unseen_share(min(cause.place_runs or cause.runs for cause in self.causes))

    @property
    def kinds(self):
        """The names of the causes' kinds."""
        return [cause.kind.name for cause in self.causes]

    @property
    def distinct(self):
        return len(set(self.runs))

    def as_json(self):
        return {
            "verdict": self.verdict,
            "compared": self.compared,
            "runs": len(self.runs),
            "distinct": self.distinct,
            "needed": self.required_runs,
            "reason": self.reason,
            "unseen_share": self.unseen_share(),
            "tried": self.tried,
            "latent": self.latent,
            "varied": self.varied,
            "noted": self.noted,
            "also_differ": self.also_differ,
            "why": self.why,
            "total_runs": self.total,
        }
