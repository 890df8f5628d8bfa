"""Did each op of a case run, and only on the device that was asked for?"""

from .errors import WrongPlacement


def check(ops, device, placed, is_op, replaced=False):
    """Raise WrongPlacement unless each op type was seen, and only on `device`; the sorted devices they ran on.

    placed: [(op type, device)], or None.  is_op: see frameworks.base.
    replaced: the solution puts other ops in their place; where an op is missing, some op must have run on `device`.
    """
    if replaced and any(where == device for _, where in placed):
        ops = [op for op in ops if any(is_op(name, op) for name, _ in placed)]
        if not ops:
            return [device]
    where = {op: sorted({d for name, d in placed if is_op(name, op)}) for op in ops}
    missing = sorted(op for op in where if not where[op])
    if missing:
        raise WrongPlacement("not seen to run: {} (folded away or replaced?)".format(", ".join(missing)))
    strayed = sorted("{} on {}".format(op, "+".join(d)) for op, d in where.items() if d != [device])
    if strayed:
        raise WrongPlacement("asked for {}, ran {}".format(device, "; ".join(strayed)))
    return sorted({d for devices in where.values() for d in devices})
