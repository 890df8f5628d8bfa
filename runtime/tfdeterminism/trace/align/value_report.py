"""The report on the values that two traces store: the differences, and how they grow from step to step.

A value is a tensor_values.TensorSample; its head names the tensor, its step, its role ("culprit", "loss", else "path")
and the id (`key`) of its definition in the run. pair is a table.AlignedPair of two runs; pair.group maps an id to a
number that both runs have for the definition. The culprit is the op or value at which the runs differ first.
"""

from . import value_difference

_LISTED = 80  # tensors
_GROWTH = 400  # steps in the chart


def compare_values(pair):
    """Return the dict that `diff --json` prints as "values", or None if the runs share no values.

    tensors: each that `--record-values` named, the culprit first, at the first step at which it differs. growth: the
    differences of "loss" and "weights" at the end of each stored step. nonfinite: the first NaN or infinity of each
    run, or None.
    """
    by_run = [_samples_by_key(pair, side) for side in (0, 1)]
    shared = [(name, [values[name] for values in by_run]) for name in by_run[0] if name in by_run[1]]
    if not shared:
        return None
    return {"tensors": _tensors(pair, shared), "growth": {kind + "s" * (kind == "weight"): _growth(shared, kind)
                                                          for kind in ("loss", "weight")},
            "nonfinite": [_first_nonfinite(run) for run in pair.runs]}


def merge_growth(near, far):
    """Return the values of runs about the culprit, `near`, with the growth in whole runs, `far` or None."""
    if far is None or not any(far["growth"].values()):
        return near
    earliest = [min(filter(None, candidates), key=lambda entry: entry["step"], default=None)
                for candidates in zip(near["nonfinite"], far["nonfinite"])]
    return dict(near, growth=far["growth"], nonfinite=earliest)


def _samples_by_key(pair, side):
    """Return {key: tensor_values.TensorSample} of a run. The key is the same in both runs."""
    samples = {}
    for value in pair.runs[side].values:
        head = value.head
        name = int(pair.group[side][head["key"]]) if head["kind"] == "op" else head["name"]
        samples.setdefault((head["kind"], name, head["step"], head["occurrence"]), value)
    return samples


def _tensors(pair, shared):
    tensors = {}
    for (kind, group, _, _), values in shared:
        if kind == "op":
            tensors.setdefault(group, []).append(values)
    tensor_reports = [_tensor(pair, group, values) for group, values in tensors.items()]
    return sorted(tensor_reports, key=lambda report: report.pop("order"))[:_LISTED]


def _tensor(pair, group, values):
    """Return the report on an op's output, from its first value that differs, else from its first value."""
    differences = [value_difference.measure_difference(*samples) for samples in values]
    differing = [number for number, difference in enumerate(differences)
                 if difference["differing"] or difference["shapes"]]
    position = differing[0] if differing else 0
    head = values[position][0].head
    _, definition = pair.definition(group)
    return dict(differences[position], op=definition["op"], name=definition["node"], output=definition["output"],
                file=definition["file"], line=definition["line"], dtype=head["dtype"], shape=head["shape"],
                step=head["step"], role=head["role"], order=head["order"])


def _growth(shared, kind):
    """Return a dict for each step, over all its losses or weights.

    Its keys are "step", "absolute", "ulps", "differing", "compared", "elements", and "name" of the tensor with the
    largest absolute difference.
    """
    steps = {}
    for (shared_kind, name, step, _), values in shared:
        if shared_kind == kind:
            steps.setdefault(step, []).append((name, value_difference.measure_difference(*values)))
    points = [_point(step, steps[step]) for step in sorted(steps)]
    interval = -(-len(points) // _GROWTH) or 1
    return points[::interval] + ([points[-1]] if points[::interval][-1:] != points[-1:] else [])


def _point(step, differences):
    name, largest = max(differences, key=lambda item: (item[1]["absolute"] or 0, item[1]["differing"]))
    ulps = [difference["ulps"] for _, difference in differences if difference["ulps"] is not None]
    sums = {field: sum(difference[field] for _, difference in differences)
            for field in ("differing", "compared", "elements")}
    return {"step": step, "absolute": largest["absolute"] or 0, "ulps": max(ulps) if ulps else 0, "name": name, **sums}


def _first_nonfinite(run):
    """Return a dict about the first NaN or infinity among the stored values of a run, or None."""
    heads = [value.head for value in run.values if value.head["nan"] + value.head["inf"]]
    if not heads:
        return None
    head = min(heads, key=lambda candidate: candidate["step"])
    return {"what": "NaN" if head["nan"] else "infinity", "name": head["name"], "kind": head["kind"],
            "step": head["step"], "index": head["first"], "nan": head["nan"], "inf": head["inf"],
            "elements": head["elements"]}
