"""The warning categories of this package, for warnings.filterwarnings()."""

import sys
import warnings

_INTERNAL_PACKAGES = ("tfdeterminism", "tensorflow", "tensorflow_core", "keras", "tf_keras")


class DeterminismWarning(UserWarning):
    """Something keeps TensorFlow from being deterministic."""


class EnabledTooLateWarning(DeterminismWarning):
    """Determinism was enabled after TensorFlow had started: what it has read or chosen before stays."""


class XlaWarning(DeterminismWarning):
    """XLA's JIT compilation is on in a version where no setting makes it deterministic."""


class AutotuneWarning(DeterminismWarning):
    """TF_CUDNN_USE_AUTOTUNE is set, which prevents the choice of deterministic algorithms."""


class UnknownBuildWarning(DeterminismWarning):
    """This TensorFlow is not one of the releases that the recipes were made for."""


class SavedGradientWarning(DeterminismWarning):
    """A saved model has an op whose gradient only this process knows; in another process it raises LookupError."""


class CostWarning(UserWarning):
    """Determinism is more expensive here than usual."""


def warn_cost(text):
    """Issue a CostWarning at the first caller outside of this package, TensorFlow and Keras."""
    depth, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in _INTERNAL_PACKAGES:
        depth, frame = depth + 1, frame.f_back
    warnings.warn(text, CostWarning, stacklevel=depth)
