"""Proven causes as text: cause, place and fix in three lines, and below them the evidence."""

import collections

from ..search.interposed_runs import ERRORS, PRINTED, WEIGHTS
from ..search.proven_cause import (
    ALL_DIFFER,
    ALL_ENDLESS,
    ALL_FAIL,
    LIMIT,
    NOT_CONFIRMED,
    NOT_PROVED,
    PARTLY,
    PROVEN,
    SAME,
    TRACE_ONLY,
)
from ..search.source_fix_trial import DIFFERS, DOES_LESS, FAILS, HOLDS

_OUTCOMES = {DIFFERS: "the runs still differ", FAILS: "the program {}", DOES_LESS: "the runs agree, but {}"}

_REASONS = {  # of a search that ends without a full proof
    ALL_DIFFER: "they still differ with every kind pinned that can be",
    ALL_FAIL: "the program fails with every kind pinned that can be",
    ALL_ENDLESS: "the program does not end with every kind pinned that can be",
    NOT_CONFIRMED: "of the pins with which runs agreed, none held in new runs",
    LIMIT: "no pins were proved within the limit of runs",
}


def lines(result):
    """Return the lines of the report.

    result: a search.result.SearchResult with interventions: the proven causes, and the runs with and without pins. A
    pin gives the program the same value in every run, for one kind of nondeterminism. An end is what a run is compared
    by: its final weights, written files or printed text.
    """
    interventions = result.interventions
    report = []
    for cause in interventions.causes:
        report += _cause_lines(cause, interventions)
    if interventions.verdict == PROVEN:
        report += [""] + _entry_lines(result)
        report.append("Tried:   {}".format("; ".join(interventions.without_effect()) or "nothing else"))
        report.append(
            "Unseen:  something else that changes fewer than {:.0f} % of the runs, because so few runs agreed; "
            "--agree-runs N makes it less".format(100 * interventions.unseen_share())
        )
    elif interventions.verdict == PARTLY:
        report += [""] + _entry_lines(result)
        report.append("Unknown: what makes the other runs differ: {}".format(_REASONS[interventions.reason]))
        report.append("Tried:   " + "; ".join(interventions.tried))
    elif interventions.verdict == NOT_PROVED:
        report.append(
            "Not proved: the {} in {}, and {}".format(
                _differ(interventions), _ends(interventions), _REASONS[interventions.reason]
            )
        )
        report.append("Tried:   " + "; ".join(interventions.tried))
    elif interventions.why and interventions.why != TRACE_ONLY:
        report.append("Not proved: no cause was taken away, because {}".format(interventions.why))
    if interventions.verdict in (NOT_PROVED, PARTLY) and interventions.noted:
        report.append("Noted:   not examined, because no pin reaches it: " + ", ".join(interventions.noted))
    for latent in interventions.latent:
        report.append(
            "Latent:  {} was varied, and the end differs{}".format(
                latent["kind"], ": " + ", ".join(latent["places"]) if latent["places"] else ""
            )
        )
    if interventions.verdict == SAME and interventions.also_differ:
        report.append("Beside:  the {} are equal; not so: {}".format(
            interventions.compared, ", ".join(interventions.also_differ)))
    if interventions.varied and not interventions.latent:
        report.append("Varied without a difference: " + ", ".join(interventions.varied))
    if interventions.verdict == SAME and interventions.noted:
        report.append(
            "Noted:   not varied, and another machine may answer otherwise: " + ", ".join(interventions.noted))
    return report


def _cause_lines(cause, interventions):
    restriction = " (only the first run differs from the later ones)" if cause.first_run_only else ""
    report = [
        "Cause:   {}{}: the {} in {}; with {} pinned, {} of {} runs agree".format(
            cause.kind.label,
            restriction,
            _differ(interventions),
            _ends(interventions),
            " and ".join(cause.pinned),
            cause.agreed,
            cause.runs,
        )
    ]
    if cause.places:
        places = [_place_text(place) for place in cause.places]
        others = [name for name in cause.pinned if name != cause.kind.name]
        report.append(
            "Place:   {}: pinned {} alone{}, {} of {} runs agree".format(
                "; ".join(places),
                "there" if cause.kind.name != "files" else "that file",
                " with {} pinned, too".format(" and ".join(others)) if others else "",
                cause.place_agreed,
                cause.place_runs,
            )
        )
    else:
        is_part = interventions.verdict == PARTLY
        report.append("Place:   " + ("the line is not known" if is_part else "no line was found"))
    report += ["Details: " + detail for detail in cause.details]
    return report + _fix_lines(cause)


def _place_text(place):
    if not place.path:
        line = "{} `{}`".format(place, place.text)
        return "a process that {} starts".format(line) if place.in_child else line
    if not place.file:
        return place.path
    return "{} `{}` uses {}".format(place, place.text, place.path)


def _fix_lines(cause):
    """Return what to do, then the new lines; and where they go, unless the only one is at the cause's place."""
    fix = cause.fix
    edits = fix.edits() if fix else []
    if not edits:
        return ["Fix:     " + fix.advice] if fix else []
    pinned = " with {} pinned".format(" and ".join(fix.pinned)) if fix.pinned else ""
    if fix.result in _OUTCOMES:
        return ["Fix:     {} ({})".format(fix.advice, _attempts_text(fix, pinned))]
    outcome = "tried{1}: {0} of {0} runs agree" if fix.result == HOLDS else "not tried: --fix tries it"
    outcome = outcome.format(fix.runs, pinned)
    places = {str(place) for place in cause.places}
    if len(edits) == 1 and len(edits[0][1]) == 1:
        place, (line,) = edits[0]
        where = "" if place in places else place + " "
        return ["Fix:     {}: {}`{}` ({})".format(fix.advice, where, line.strip(), outcome)]
    report = ["Fix:     {} ({}):".format(fix.advice, outcome)]
    for place, lines in edits:
        report += ["         {}:".format(place)] + ["           " + line for line in lines]
    return report


def _attempts_text(fix, pinned):
    """Return what the edits did of which none is offered."""
    counts = collections.Counter(_OUTCOMES[result].format(less) for result, less in fix.attempts)
    if len(fix.attempts) == 1:
        return "a change was tried{}, and rejected: {}".format(pinned, *counts)
    outcomes = ("{} ({})".format(words, number) for words, number in counts.items())
    return "{} changes were tried{}, and rejected: {}".format(len(fix.attempts), pinned, "; ".join(outcomes))


def _differ(interventions):
    return interventions.compared + (" differs" if interventions.compared in (PRINTED, ERRORS) else " differ")


def _ends(interventions):
    return "{} runs ({} different ends)".format(len(interventions.runs), interventions.distinct)


def _entry_lines(result):
    """Return lines about where the difference enters the tensors, and what it reaches."""
    if not result.culprits:
        return ["Enters:  " + _describe_unseen_entry(result)]
    culprit = result.culprits[0]
    location = " ({}:{})".format(culprit["file"], culprit["line"]) if culprit["file"] else ""
    line = ["Enters:  {} at step {}{}".format(culprit["op_type"], culprit["step"], location)]
    return line + ["Reaches: the {}".format(result.interventions.compared)]


def _describe_unseen_entry(result):
    """Return what the traces show of a difference that no op of them does."""
    compared = result.interventions.compared
    if result.difference and result.difference.end_mismatch:
        return "one run goes farther than the other: {}".format(result.difference.end_mismatch)
    if result.traced_alike and compared != WEIGHTS:
        return "no tensor: the runs recorded the same ops and values, only the {}".format(_differ(result.interventions))
    return "no recorded op shows it"
