"""The version of TensorFlow in which the patches are installed."""


def version():
    """Return TensorFlow's (major, minor)."""
    from tensorflow.python.framework import versions
    return tuple(int(number) for number in versions.__version__.split(".")[:2])
