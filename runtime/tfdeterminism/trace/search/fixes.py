"""The advice that can be applied without editing the program: by its environment, or by calls before its first op."""

from .. import backends
from ..remedies import AUTOMATIC_FIXES, ORDERED_FIXES


def automatic_fixes(culprits):
    """Return (the AutomaticFixes for these culprits in a fixed order, the culprits that need an edit of the program).

    culprits: dicts about causes, as causes.describe makes them.
    """
    keys = [_key(culprit) for culprit in culprits]
    return ([remedy for remedy in ORDERED_FIXES if remedy.key in keys],
            [culprit for culprit, key in zip(culprits, keys) if key is None])


def _key(culprit):
    """Return the key of the AutomaticFix for a culprit, None if it needs an edit of the program."""
    if culprit["solution"] is not None:
        return culprit["solution"] if culprit["solution"] in AUTOMATIC_FIXES else None
    lines = culprit["lines"]
    if backends.SEED_PYTHON in lines:  # the line that seeds the generators of Python and NumPy
        return "SEED"  # does not seed generators that the program creates itself: the runs will show it
    keys = [backends.find(name).solution_of(lines) for name in backends.entries()]
    return next((key for key in keys if key), None)
