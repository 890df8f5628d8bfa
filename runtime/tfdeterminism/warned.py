"""What this package warns of, each a class of its own: filter them as you like."""


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
