"""Check that each op of a case ran, and only on the requested device."""

from ..base.errors import WrongPlacementError


def check(ops, device, placed, is_op, replaced=False):
    """Check the placement of the ops of a case.

    Args:
        ops: the op types that must have run.
        device: the name of the requested device, such as GPU:0.
        placed: (op type, device name) of each op that ran.
        is_op: Framework.is_op.
        replaced: the solution replaces ops by others: if an op did not run, any op on `device` is enough.

    Returns:
        The sorted devices that the ops ran on.

    Raises:
        WrongPlacementError: an op did not run, or ran on another device.
    """
    if replaced and any(used == device for _, used in placed):
        ops = [op for op in ops if any(is_op(name, op) for name, _ in placed)]
        if not ops:
            return [device]
    devices_by_op = {op: sorted({used for name, used in placed if is_op(name, op)}) for op in ops}
    missing = sorted(op for op in devices_by_op if not devices_by_op[op])
    if missing:
        raise WrongPlacementError("not seen to run: {} (folded away or replaced?)".format(", ".join(missing)))
    misplaced = sorted("{} on {}".format(op, "+".join(used)) for op, used in devices_by_op.items() if used != [device])
    if misplaced:
        raise WrongPlacementError("asked for {}, ran {}".format(device, "; ".join(misplaced)))
    return sorted({used for devices in devices_by_op.values() for used in devices})
