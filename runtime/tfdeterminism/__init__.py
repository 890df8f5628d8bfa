"""tfdeterminism: make TensorFlow deterministic, each version by what that version needs.

    import tfdeterminism
    print(tfdeterminism.enable_determinism(seed=1))

Imports nothing of TensorFlow until one of its functions is called.
"""

from .report import Report
from .seeds import set_seeds
from .switch import disable, enable_determinism, patch
from .version import __version__
from .warned import (
    AutotuneWarning,
    CostWarning,
    DeterminismWarning,
    SavedGradientWarning,
    TooLateWarning,
    UnknownBuildWarning,
    XlaWarning,
)

__all__ = [
    "AutotuneWarning", "CostWarning", "DeterminismWarning", "Report", "SavedGradientWarning", "TooLateWarning",
    "UnknownBuildWarning", "XlaWarning", "__version__", "disable", "enable_determinism", "patch", "set_seeds",
]
