"""What the values that two traces keep say: how much what differs, and how the difference grows from step to step."""

from . import value_difference

_LISTED = 80  # tensors
_GROWTH = 400  # steps of the picture


def compare_values(pair):
    """The dict that `diff --json` gives as "values", or None where the runs share none.

    tensors: each that `--record-values` named, the culprit first, at the first step at which it differs. growth: of
    "loss" and "weights" what differs at the end of each step that was kept. nonfinite: the first NaN or infinity of
    each run, or None.
    """
    kept = [_named(pair, side) for side in (0, 1)]
    both = [(name, [one[name] for one in kept]) for name in kept[0] if name in kept[1]]
    if not both:
        return None
    return {"tensors": _tensors(pair, both), "growth": {kind + "s" * (kind == "weight"): _growth(both, kind)
                                                        for kind in ("loss", "weight")},
            "nonfinite": [_first_nonfinite(run) for run in pair.runs]}


def merge_growth(near, far):
    """What runs about the culprit say, `near`, with the growth that whole runs show, `far` or None."""
    if far is None or not any(far["growth"].values()):
        return near
    first = [min(filter(None, both), key=lambda one: one["step"], default=None)
             for both in zip(near["nonfinite"], far["nonfinite"])]
    return dict(near, growth=far["growth"], nonfinite=first)


def _named(pair, side):
    """{what it is: tensor_values.TensorSample} of a run; what it is: the same in both."""
    found = {}
    for value in pair.runs[side].values:
        head = value.head
        what = int(pair.group[side][head["key"]]) if head["kind"] == "op" else head["name"]
        found.setdefault((head["kind"], what, head["step"], head["occurrence"]), value)
    return found


def _tensors(pair, both):
    tensors = {}
    for (kind, group, _, _), values in both:
        if kind == "op":
            tensors.setdefault(group, []).append(values)
    found = [_tensor(pair, group, values) for group, values in tensors.items()]
    return sorted(found, key=lambda one: one.pop("order"))[:_LISTED]


def _tensor(pair, group, values):
    """Of one op's output: the first of its values that differ, else the first."""
    amounts = [value_difference.measure_difference(*one) for one in values]
    differing = [number for number, one in enumerate(amounts) if one["differing"] or one["shapes"]]
    at = differing[0] if differing else 0
    head = values[at][0].head
    _, one = pair.definition(group)
    return dict(amounts[at], op=one["op"], name=one["node"], output=one["output"], file=one["file"], line=one["line"],
                dtype=head["dtype"], shape=head["shape"], step=head["step"], role=head["role"], order=head["order"])


def _growth(both, kind):
    """Over all losses, or weights, of each step: [{"step", "absolute", "ulps", "differing", "compared", "elements",
    "name" of what has the largest absolute difference}]."""
    steps = {}
    for (found, name, step, _), values in both:
        if found == kind:
            steps.setdefault(step, []).append((name, value_difference.measure_difference(*values)))
    points = [_point(step, steps[step]) for step in sorted(steps)]
    every = -(-len(points) // _GROWTH) or 1
    return points[::every] + ([points[-1]] if points[::every][-1:] != points[-1:] else [])


def _point(step, named):
    name, largest = max(named, key=lambda one: (one[1]["absolute"] or 0, one[1]["differing"]))
    ulps = [one["ulps"] for _, one in named if one["ulps"] is not None]
    return {"step": step, "absolute": largest["absolute"] or 0, "ulps": max(ulps) if ulps else 0, "name": name,
            **{what: sum(one[what] for _, one in named) for what in ("differing", "compared", "elements")}}


def _first_nonfinite(run):
    """Where a NaN or an infinity is first among what a run kept: by step, then as it was recorded."""
    bad = [value.head for value in run.values if value.head["nan"] + value.head["inf"]]
    if not bad:
        return None
    head = min(bad, key=lambda one: one["step"])
    return {"what": "NaN" if head["nan"] else "infinity", "name": head["name"], "kind": head["kind"],
            "step": head["step"], "index": head["first"], "nan": head["nan"], "inf": head["inf"],
            "elements": head["elements"]}
