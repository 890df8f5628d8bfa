"""Which TensorFlow the patches are in."""


def version():
    """TensorFlow's (major, minor)."""
    from tensorflow.python.framework import versions
    return tuple(int(part) for part in versions.__version__.split(".")[:2])
