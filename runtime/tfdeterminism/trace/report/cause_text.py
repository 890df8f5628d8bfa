"""Proven causes, for people: cause, place and fix in three lines, what they rest on below."""

from ..search.proven_cause import NOT_OURS, PROVEN, TRACE_ONLY
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
    elif tries.verdict == NOT_OURS:
        said.append(
            "Not proved: the {} differ in {}, and they still differ with every kind pinned that can be".format(
                tries.compared, _ends(tries)
            )
        )
        said.append("Tried:   " + "; ".join(tries.tried))
        if tries.noted:
            said.append("Noted:   no pin reaches the network: " + ", ".join(tries.noted))
    elif tries.why and tries.why != TRACE_ONLY:
        said.append("Not proved: no cause was taken away, because {}".format(tries.why))
    for one in tries.latent:
        said.append(
            "Latent:  {} was varied, and the {} differ{}".format(
                one["kind"], tries.compared, ": " + ", ".join(one["places"]) if one["places"] else ""
            )
        )
    if tries.varied and not tries.latent:
        said.append("Varied without a difference: " + ", ".join(tries.varied))
    return said


def _cause_lines(cause, tries):
    only = " (only the first run differs from the later ones)" if cause.first_run_only else ""
    said = [
        "Cause:   {}{}: the {} differ in {}; with {} pinned, {} of {} runs agree".format(
            cause.kind.words,
            only,
            tries.compared,
            _ends(tries),
            " and ".join(cause.pinned),
            cause.runs,
            cause.runs,
        )
    ]
    if cause.places:
        shown = [
            "{} `{}`{}".format(place, place.text, " reads " + place.path if place.path else "")
            for place in cause.places
        ]
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
    new = [line.strip() for line in cause.fix.new_lines()] if cause.fix else []
    outcome = (
        _RESULTS.get(cause.fix.result, "not tried: --fix tries it").format(cause.fix.runs)
        if cause.fix
        else ""
    )
    said.append(
        "Fix:     {}{}".format(cause.fix.words, ": `{}` ({})".format("; ".join(new), outcome) if new else "")
    )
    return said


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
