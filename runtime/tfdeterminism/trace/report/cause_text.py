"""Proven causes, for people: cause, place and fix in three lines, what they rest on below."""

from ..search.interposed_runs import PRINTED
from ..search.proven_cause import NOT_PROVED, PROVEN, SAME, TRACE_ONLY
from ..search.source_fix_trial import DIFFERS, FAILS, HOLDS

_RESULTS = {
    HOLDS: "tried: {0} of {0} runs agree",
    DIFFERS: "tried: the runs still differ",
    FAILS: "tried: the program fails",
}


def lines(found):
    """found: a search.result.SearchResult with interventions."""
    tries = found.interventions
    said = []
    for cause in tries.causes:
        said += _cause_lines(cause, tries)
    if tries.verdict == PROVEN:
        said += [""] + _entry_lines(found)
        said.append("Tried:   {}".format("; ".join(tries.without_effect()) or "nothing else"))
    elif tries.verdict == NOT_PROVED:
        said.append(
            "Not proved: the {} in {}, and they still differ with every kind pinned that can be".format(
                _differ(tries), _ends(tries)
            )
        )
        said.append("Tried:   " + "; ".join(tries.tried))
        if tries.noted:
            said.append("Noted:   no pin reaches what comes from outside: " + ", ".join(tries.noted))
    elif tries.why and tries.why != TRACE_ONLY:
        said.append("Not proved: no cause was taken away, because {}".format(tries.why))
    for one in tries.latent:
        said.append(
            "Latent:  {} was varied, and the end differs{}".format(
                one["kind"], ": " + ", ".join(one["places"]) if one["places"] else ""
            )
        )
    if tries.verdict == SAME and tries.also_differ:
        said.append("Beside:  the {} are equal; not so: {}".format(tries.compared, ", ".join(tries.also_differ)))
    if tries.varied and not tries.latent:
        said.append("Varied without a difference: " + ", ".join(tries.varied))
    if tries.verdict == SAME and tries.noted:
        said.append("Noted:   not varied, and another machine may answer otherwise: " + ", ".join(tries.noted))
    return said


def _cause_lines(cause, tries):
    only = " (only the first run differs from the later ones)" if cause.first_run_only else ""
    said = [
        "Cause:   {}{}: the {} in {}; with {} pinned, {} of {} runs agree".format(
            cause.kind.words,
            only,
            _differ(tries),
            _ends(tries),
            " and ".join(cause.pinned),
            cause.runs,
            cause.runs,
        )
    ]
    if cause.places:
        shown = [_shown(place) for place in cause.places]
        said.append(
            "Place:   {}: pinned {} alone, {} of {} runs agree".format(
                "; ".join(shown),
                "there" if cause.kind.name != "files" else "that file",
                cause.place_runs,
                cause.place_runs,
            )
        )
    else:
        said.append("Place:   no line alone")
    said += ["Details: " + one for one in cause.details]
    return said + _fix_lines(cause.fix)


def _shown(place):
    if not place.path:
        return "{} `{}`".format(place, place.text)
    if not place.file:
        return place.path
    return "{} `{}` uses {}".format(place, place.text, place.path)


def _fix_lines(fix):
    """What to do; a line that it writes stands behind, several below."""
    new = fix.new_lines() if fix else []
    if not new:
        return ["Fix:     " + fix.words] if fix else []
    if fix.result in (DIFFERS, FAILS):
        return ["Fix:     {} (a change of the line was {})".format(fix.words, _RESULTS[fix.result])]
    outcome = _RESULTS.get(fix.result, "not tried: --fix tries it").format(fix.runs)
    if len(new) == 1:
        return ["Fix:     {}: `{}` ({})".format(fix.words, new[0].strip(), outcome)]
    return ["Fix:     {} ({}):".format(fix.words, outcome)] + ["           " + line for line in new]


def _differ(tries):
    return tries.compared + (" differs" if tries.compared == PRINTED else " differ")


def _ends(tries):
    return "{} runs ({} different ends)".format(len(tries.runs), tries.distinct)


def _entry_lines(found):
    """Where the difference enters the tensors, and what it reaches."""
    if not found.culprits:
        return ["Enters:  no recorded op shows it"]
    first = found.culprits[0]
    where = " ({}:{})".format(first["file"], first["line"]) if first["file"] else ""
    said = ["Enters:  {} at step {}{}".format(first["op_type"], first["step"], where)]
    return said + ["Reaches: the {}".format(found.interventions.compared)]
