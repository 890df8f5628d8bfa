"""Which advice can be taken without a change of the program: by its environment, or by calls before its first op."""

from .. import backends
from ..remedies import AUTOMATIC_FIXES, ORDERED_FIXES


def automatic_fixes(culprits):
    """(the Remedies for these, in a fixed order; the culprits that only a change of the program can mend)."""
    keys = [_key(one) for one in culprits]
    return ([one for one in ORDERED_FIXES if one.key in keys],
            [culprit for culprit, key in zip(culprits, keys) if key is None])


def _key(culprit):
    if culprit["solution"] is not None:
        return culprit["solution"] if culprit["solution"] in AUTOMATIC_FIXES else None
    lines = culprit["lines"]
    if backends.SEED_PYTHON in lines:
        return "SEED"  # generators of the program's own it does not reach: the runs will tell
    known = [backends.find(name).solution_of(lines) for name in backends.entries()]
    return next((key for key in known if key), None)
