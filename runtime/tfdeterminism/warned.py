"""What this package warns of, each a class of its own: filter them as you like."""

import sys
import warnings

_INSIDE = ("tfdeterminism", "tensorflow", "tensorflow_core", "keras", "tf_keras")


class DeterminismWarning(UserWarning):
    """Something here keeps TensorFlow from being deterministic."""


class TooLateWarning(DeterminismWarning):
    """TensorFlow had started already: what it has read or chosen by then stays."""


class XlaWarning(DeterminismWarning):
    """XLA's JIT compilation is on in a version where no switch reaches it."""


class AutotuneWarning(DeterminismWarning):
    """TF_CUDNN_USE_AUTOTUNE is set, which defeats the choice of deterministic algorithms."""


class UnknownBuildWarning(DeterminismWarning):
    """This TensorFlow is not one of the releases that the recipes were made for."""


class SavedGradientWarning(DeterminismWarning):
    """What was just saved has an op whose gradient is known to this process only: elsewhere it raises LookupError."""


class CostWarning(UserWarning):
    """Determinism takes more here than it does elsewhere."""


def of_cost(text):
    """Warn of it where the first line stands that is neither ours nor TensorFlow's."""
    depth, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in _INSIDE:
        depth, frame = depth + 1, frame.f_back
    warnings.warn(text, CostWarning, stacklevel=depth)
