"""Check that each op of a case ran, and only on the requested device."""

from .errors import WrongPlacementError


def check(ops, device, placed, is_op, replaced=False):
    """Check the placement of the ops of a case.

    Args:
        ops: the op types that must have run.
        device: where, such as GPU:0.
        placed: [(op type, device)] of the ops that ran.
        is_op: Framework.is_op.
        replaced: the solution replaces ops by others: if an op did not run, any op on `device` is enough.

    Returns:
        The sorted devices that the ops ran on.

    Raises:
        WrongPlacementError: an op did not run, or ran on another device.
    """
    if replaced and any(where == device for _, where in placed):
        ops = [op for op in ops if any(is_op(name, op) for name, _ in placed)]
        if not ops:
            return [device]
    where = {op: sorted({d for name, d in placed if is_op(name, op)}) for op in ops}
    missing = sorted(op for op in where if not where[op])
    if missing:
        raise WrongPlacementError("not seen to run: {} (folded away or replaced?)".format(", ".join(missing)))
    strayed = sorted("{} on {}".format(op, "+".join(d)) for op, d in where.items() if d != [device])
    if strayed:
        raise WrongPlacementError("asked for {}, ran {}".format(device, "; ".join(strayed)))
    return sorted({d for devices in where.values() for d in devices})
