"""How much differs, in words and in few columns."""


def report_lines(values):
    """The lines about `Difference.values`: [] where nothing was kept, or nothing of it differs."""
    if values is None:
        return []
    found = [_tensor(one) for one in values["tensors"]]
    found += [_series(kind, values["growth"][kind]) for kind in ("loss", "weights") if _grows(values["growth"][kind])]
    found += _nonfinite(values["nonfinite"])
    return ["By how much:"] + ["  " + line for line in found] if found else []


def summary_text(one):
    """"4,012 of 4,096 elements differ, by at most 0.00066 (63,127,299 ulps, relative 0.99)" of a tensor."""
    if one["shapes"]:
        return "the shapes differ: {} and {}".format(*one["shapes"])
    total = "{:,}".format(one["compared"])
    if one["compared"] < one["elements"]:
        total += " looked at of {:,}".format(one["elements"])
    if not one["differing"]:
        return "all {} elements agree".format(total) if one["elements"] > 1 else "it agrees"
    said = "{:,} of {} elements differ".format(one["differing"], total) if one["elements"] > 1 else "it differs"
    if one["absolute"] is not None:
        said += ", by at most {}{}".format(format_number(one["absolute"]), _nonfinite_note(one))
    return said + "".join(_nonfinite_text(name, bad) for name, bad in zip("AB", one["nonfinite"]))


def format_number(value):
    """Few digits: 0.00066, 1.2e-07, 12."""
    return "{:,}".format(value) if isinstance(value, int) else "{:.3g}".format(value)


def _nonfinite_note(one):
    beside = [] if one["ulps"] is None else ["{:,} ulp{}".format(one["ulps"], "s" * (one["ulps"] != 1))]
    if one["relative"] is not None:
        beside.append("relative {:.2g}".format(one["relative"]))
    return " ({})".format(", ".join(beside)) if beside else ""


def _nonfinite_text(run, bad):
    if bad is None:
        return ""
    found = ["{:,} {}".format(bad[key], word) for key, word in (("nan", "NaN"), ("inf", "infinite")) if bad[key]]
    return "; {} has {}".format(run, " and ".join(found))


def _tensor(one):
    where = {"culprit": "culprit", "loss": "loss"}.get(one["role"], "then")
    return "{:7}  {} at step {}: {}".format(where, one["op"], one["step"], summary_text(one))


def _grows(points):
    return any(point["differing"] for point in points)


def _series(kind, points):
    """First, some between, last."""
    count = len(points)
    shown = sorted({0, count // 3, 2 * count // 3, count - 1}) if count > 4 else range(count)
    told = ", ".join("step {} {}".format(points[at]["step"], format_number(points[at]["absolute"])) for at in shown)
    worst = max(points, key=lambda point: point["absolute"])
    part = points[-1]["compared"], points[-1]["elements"]
    sample = ", in a sample of {:,} of {:,} elements".format(*part) if part[0] < part[1] else ""
    return "{:7}  by step: {}; at most {} ({:,} ulps) at step {}{}".format(
        kind, told, format_number(worst["absolute"]), worst["ulps"], worst["step"], sample)


def _nonfinite(both):
    """Where a NaN or an infinity comes first: of both runs in one line where it is the same."""
    said = ["the first {what} is in {name} at step {step}, index {index:,}: {nan:,} NaN and {inf:,} infinite "
            "of {elements:,}".format(**one) if one else None for one in both]
    if said[0] == said[1]:
        return ["both runs: " + said[0]] if said[0] else []
    return ["run {}: {}".format(name, one) for name, one in zip("AB", said) if one]
