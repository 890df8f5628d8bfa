"""What was found, in words for people."""

from ..untrusted import sanitize_line
from . import cause_text, value_text


def diff_text(difference):
    """The report for people."""
    lines = [_headline(difference)]
    for number, culprit in enumerate(difference.culprits):
        lines += [""] + _culprit_lines(culprit, number, len(difference.culprits))
    lines += _with_blank_lines(value_text.report_lines(difference.values))
    lines += [""] if difference.unordered else []
    lines += ["left open: {op} ({file}:{line}): {why}".format(**one) for one in difference.unordered]
    if difference.notes:
        lines.append("")
    lines += ["note: " + note for note in difference.notes]
    return "\n".join(sanitize_line(line) for line in lines)


def search_text(found):
    """The verdict for people, with what it rests on."""
    lines = cause_text.lines(found) if found.interventions else []
    if found.causes:
        return "\n".join(sanitize_line(line) for line in lines)
    lines += [""] if lines else []
    if found.masked_by_tracing:
        for number, culprit in enumerate(found.culprits):
            lines += _culprit_lines(culprit, number, len(found.culprits), "Suspect") + [""]
    elif found.difference:
        lines += diff_text(found.difference).split("\n") + [""]
    lines += _with_blank_lines(value_text.report_lines(found.values))[1:] + [""] if found.values else []
    lines += ["Verdict: " + found.verdict()] + ["  " + line for line in found.findings]
    if found.culprits and found.culprits[0]["lines"]:
        lines.append("Change:")
        lines += ["    " + line for line in found.culprits[0]["lines"]]
    if found.fix:
        lines += ["Fix:"] + ["  " + line for line in found.fix.lines()]
    return "\n".join(sanitize_line(line) for line in lines)


def _with_blank_lines(lines):
    return [""] + lines if lines else []


def count(number):
    return "{:,}".format(number)


def _headline(found):
    words = {"same": "The runs are the same", "diverged": "The runs differ from step {} on",
             "structure": "The runs do not do the same things, from step {} on"}[found.result]
    if found.result == "structure" and not found.culprits:
        words = "The runs do not do the same things"
        if found.end_mismatch:
            words = "One run goes farther than the other: {}".format(found.end_mismatch)
    if found.result == "diverged" and found.first_step is None:
        words = "The runs differ in their final weights"
    head = words.format(found.first_step) + ": {} records compared".format(count(found.compared))
    if found.differing:
        head += ", {} differ".format(count(found.differing))
    if found.end_mismatch and not found.differing:
        head += ", all agree"
    if found.missing:
        head += ", {} are in one run only".format(count(found.missing))
    if found.reordered:
        head += "; {} keys have their values in another order, values equal".format(count(found.reordered))
    return head + "."


def _culprit_lines(culprit, number, total, what="Culprit"):
    name = culprit["op_type"]
    if "@" not in culprit["op_name"] and culprit["op_name"] != name:  # an eager op's name is its line
        name += " ({})".format(culprit["op_name"])
    title = what if total == 1 else "{} {} of {}".format(what, number + 1, total)
    lines = ["{}: {}".format(title, name)]
    lines.append("  class    {}: {}".format(culprit["class"], culprit["why"]))
    where = "step {}".format(culprit["step"])
    where += ", process {}".format(culprit["rank"]) if culprit["rank"] != "0" else ""
    for label, value in (("on", culprit["device"]), ("in", culprit["function"]), ("layer", culprit["layer"])):
        where += ", {} {}".format(label, value) if value else ""
    lines.append("  where    " + where)
    if culprit["used_by"] and culprit["op_type"] == "Python":
        lines.append("  used by  " + ", ".join(culprit["used_by"]))
    if culprit["forward_op"]:
        lines.append("  gradient of {} ({})".format(culprit["forward_op"], culprit["forward_name"]))
    if culprit["file"]:
        lines.append("  line     {}:{}".format(culprit["file"], culprit["line"]))
        lines += ["             " + line.strip() for number, line in culprit["snippet"] if number == culprit["line"]]
    if culprit["source"]:
        lines.append("  matrix   {}".format(culprit["source"]))
    advised = culprit["advice"].split("; ")[0]
    lines.append("  solution " + ("see below" if culprit["lines"] and not culprit["solution"] else advised))
    return lines + ["             " + line for line in culprit["lines"]]
