"""The report of a comparison or a search as text.

A culprit is a cause as the report names it: a dict of an op or value that differs first, its line, class and advice.
"""

from ..untrusted import sanitize_line
from . import cause_text, value_text


def diff_text(difference):
    """Return the report of a TraceDiff."""
    lines = [_headline(difference)]
    for number, culprit in enumerate(difference.culprits):
        lines += [""] + _culprit_lines(culprit, number, len(difference.culprits))
    lines += _with_blank_lines(value_text.report_lines(difference.values))
    lines += [""] if difference.unordered else []
    lines += ["left open: {op} ({file}:{line}): {why}".format(**entry) for entry in difference.unordered]
    if difference.notes:
        lines.append("")
    lines += ["note: " + note for note in difference.notes]
    return "\n".join(sanitize_line(line) for line in lines)


def search_text(result):
    """Return the report of a SearchResult: the verdict, and its evidence."""
    lines = cause_text.lines(result) if result.interventions else []
    if result.causes:
        return "\n".join(sanitize_line(line) for line in lines)
    lines += [""] if lines else []
    if result.masked_by_tracing:
        for number, culprit in enumerate(result.culprits):
            lines += _culprit_lines(culprit, number, len(result.culprits), "Suspect") + [""]
    elif result.difference:
        lines += diff_text(result.difference).split("\n") + [""]
    lines += _with_blank_lines(value_text.report_lines(result.values))[1:] + [""] if result.values else []
    lines += ["Verdict: " + result.verdict()] + ["  " + line for line in result.findings]
    if result.culprits and result.culprits[0]["lines"]:
        lines.append("Change:")
        lines += ["    " + line for line in result.culprits[0]["lines"]]
    if result.fix:
        lines += ["Fix:"] + ["  " + line for line in result.fix.lines()]
    return "\n".join(sanitize_line(line) for line in lines)


def _with_blank_lines(lines):
    return [""] + lines if lines else []


def count(number):
    return "{:,}".format(number)


def _headline(difference):
    text = {"same": "The runs are the same", "diverged": "The runs differ from step {} on",
            "structure": "The runs do not do the same things, from step {} on"}[difference.result]
    if difference.result == "structure" and not difference.culprits:
        text = "The runs do not do the same things"
        if difference.end_mismatch:
            text = "One run goes farther than the other: {}".format(difference.end_mismatch)
    if difference.result == "diverged" and difference.first_step is None:
        text = "The runs differ in their final weights"
    head = text.format(difference.first_step) + ": {} records compared".format(count(difference.compared))
    if difference.differing:
        head += ", {} differ".format(count(difference.differing))
    if difference.end_mismatch and not difference.differing:
        head += ", all agree"
    if difference.missing:
        head += ", {} are in one run only".format(count(difference.missing))
    if difference.reordered:
        head += "; {} keys have their values in another order, values equal".format(count(difference.reordered))
    return head + "."


def _culprit_lines(culprit, number, total, heading="Culprit"):
    name = culprit["op_type"]
    if "@" not in culprit["op_name"] and culprit["op_name"] != name:  # an eager op's name is its line
        name += " ({})".format(culprit["op_name"])
    title = heading if total == 1 else "{} {} of {}".format(heading, number + 1, total)
    lines = ["{}: {}".format(title, name)]
    lines.append("  class    {}: {}".format(culprit["class"], culprit["why"]))
    location = "step {}".format(culprit["step"])
    location += ", process {}".format(culprit["rank"]) if culprit["rank"] != "0" else ""
    for label, value in (("on", culprit["device"]), ("in", culprit["function"]), ("layer", culprit["layer"])):
        location += ", {} {}".format(label, value) if value else ""
    lines.append("  where    " + location)
    if culprit["used_by"] and culprit["op_type"] == "Python":
        lines.append("  used by  " + ", ".join(culprit["used_by"]))
    if culprit["forward_op"]:
        lines.append("  gradient of {} ({})".format(culprit["forward_op"], culprit["forward_name"]))
    if culprit["file"]:
        lines.append("  line     {}:{}".format(culprit["file"], culprit["line"]))
        lines += ["             " + line.strip() for number, line in culprit["snippet"] if number == culprit["line"]]
    if culprit["source"]:  # key of a known source of nondeterminism in matrix/sources
        lines.append("  matrix   {}".format(culprit["source"]))
    advised = culprit["advice"].split("; ")[0]
    lines.append("  solution " + ("see below" if culprit["lines"] and not culprit["solution"] else advised))
    return lines + ["             " + line for line in culprit["lines"]]
