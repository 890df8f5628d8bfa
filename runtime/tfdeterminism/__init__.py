"""tfdeterminism: make TensorFlow deterministic, each version by what that version needs.

    import tfdeterminism
    print(tfdeterminism.enable_determinism(seed=1))

Imports nothing of TensorFlow until one of its functions is called.
"""

from .enable import disable, enable_determinism, patch
from .report import Report
from .seeds import set_seeds
from .version import __version__
from .warning_categories import (
    AutotuneWarning,
    CostWarning,
    DeterminismWarning,
    EnabledTooLateWarning,
    SavedGradientWarning,
    UnknownBuildWarning,
    XlaWarning,
)

__all__ = [
    "AutotuneWarning", "CostWarning", "DeterminismWarning", "Report", "SavedGradientWarning", "EnabledTooLateWarning",
    "UnknownBuildWarning", "XlaWarning", "__version__", "disable", "enable_determinism", "patch", "set_seeds",
]
