"""The differences of values as text."""


def report_lines(values):
    """Return the lines about the result of align.value_report.compare_values(), [] if nothing differs.

    values: None if no values were stored. A dict about a tensor says in how many elements two runs differ and by how
    much at most, one about a loss or the weights the same of each step.
    """
    if values is None:
        return []
    lines = [_tensor(tensor) for tensor in values["tensors"]]
    lines += [_series(kind, values["growth"][kind]) for kind in ("loss", "weights") if _grows(values["growth"][kind])]
    lines += _nonfinite(values["nonfinite"])
    return ["By how much:"] + ["  " + line for line in lines] if lines else []


def summary_text(difference):
    """Return "4,012 of 4,096 elements differ, by at most 0.00066 (63,127,299 ulps, relative 0.99)" of a tensor."""
    if difference["shapes"]:
        return "the shapes differ: {} and {}".format(*difference["shapes"])
    total = "{:,}".format(difference["compared"])
    if difference["compared"] < difference["elements"]:
        total += " looked at of {:,}".format(difference["elements"])
    if not difference["differing"]:
        return "all {} elements agree".format(total) if difference["elements"] > 1 else "it agrees"
    text = "it differs"
    if difference["elements"] > 1:
        text = "{:,} of {} elements differ".format(difference["differing"], total)
    if difference["absolute"] is not None:
        text += ", by at most {}{}".format(format_number(difference["absolute"]), _ulps_note(difference))
    return text + "".join(_nonfinite_text(name, nonfinite) for name, nonfinite in zip("AB", difference["nonfinite"]))


def format_number(value):
    """Return a number with few digits: 0.00066, 1.2e-07, 12."""
    return "{:,}".format(value) if isinstance(value, int) else "{:.3g}".format(value)


def _ulps_note(difference):
    ulps = difference["ulps"]
    details = [] if ulps is None else ["{:,} ulp{}".format(ulps, "s" * (ulps != 1))]
    if difference["relative"] is not None:
        details.append("relative {:.2g}".format(difference["relative"]))
    return " ({})".format(", ".join(details)) if details else ""


def _nonfinite_text(run, counts):
    if counts is None:
        return ""
    parts = ["{:,} {}".format(counts[key], name) for key, name in (("nan", "NaN"), ("inf", "infinite")) if counts[key]]
    return "; {} has {}".format(run, " and ".join(parts))


def _tensor(tensor):
    # The other role is "path": a tensor between the culprit and the loss.
    label = {"culprit": "culprit", "loss": "loss"}.get(tensor["role"], "then")
    return "{:7}  {} at step {}: {}".format(label, tensor["op"], tensor["step"], summary_text(tensor))


def _grows(points):
    return any(point["differing"] for point in points)


def _series(kind, points):
    """Return a line about the first step, some between, and the last."""
    count = len(points)
    indices = sorted({0, count // 3, 2 * count // 3, count - 1}) if count > 4 else range(count)
    steps = ", ".join("step {} {}".format(points[index]["step"], format_number(points[index]["absolute"]))
                      for index in indices)
    worst = max(points, key=lambda point: point["absolute"])
    sizes = points[-1]["compared"], points[-1]["elements"]
    sample = ", in a sample of {:,} of {:,} elements".format(*sizes) if sizes[0] < sizes[1] else ""
    return "{:7}  by step: {}; at most {} ({:,} ulps) at step {}{}".format(
        kind, steps, format_number(worst["absolute"]), worst["ulps"], worst["step"], sample)


def _nonfinite(entries):
    """Return lines about the first NaN or infinity: one line for both runs if it is the same."""
    texts = ["the first {what} is in {name} at step {step}, index {index:,}: {nan:,} NaN and {inf:,} infinite "
             "of {elements:,}".format(**entry) if entry else None for entry in entries]
    if texts[0] == texts[1]:
        return ["both runs: " + texts[0]] if texts[0] else []
    return ["run {}: {}".format(name, text) for name, text in zip("AB", texts) if text]
