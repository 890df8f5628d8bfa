"""The detection of the installed TensorFlow: its version, NVIDIA's or stock, and why it may not be a known release."""

import glob
import os
import re

from .recipes import NEWEST_TENSORFLOW, OLDEST_TENSORFLOW, as_text

# Distributions that are other builds of the package `tensorflow`; for NVIDIA's see _NVIDIA.
_FORK = re.compile(r"(tf[_-]nightly\w*|tensorflow[_-](rocm|macos|directml\w*|cpu[_-]aws|aarch64|neuron\w*)"
                   r"|intel[_-]tensorflow\w*)-", re.I)
_NVIDIA = re.compile(r"nvidia[_-]tensorflow-", re.I)
NO_TENSORFLOW = ("TensorFlow is not installed here, and tfdeterminism brings none. Install the version that you "
                 "want, for example `pip install tensorflow`, and call again.")


class Build(object):
    """One build of TensorFlow.

    Attributes:
        text: its version as TensorFlow reports it.
        version: (major, minor).
        kind: 'stock', or 'ngc' for NVIDIA's images and wheels.
        image: the version of the NGC image; None outside one.
        unrecognized_reasons: why it is not a known release, as sentences; empty for a known release.
    """

    def __init__(self, text, version, kind, image, unrecognized_reasons):
        self.text = text
        self.version = version
        self.kind = kind
        self.image = image
        self.unrecognized_reasons = unrecognized_reasons


def import_tensorflow():
    """Import TensorFlow and return it; raise ImportError with advice if it is not installed."""
    try:
        import tensorflow
    except ImportError as error:
        if getattr(error, "name", None) != "tensorflow":  # it is installed but broken: its own message says more
            raise
        raise ImportError(NO_TENSORFLOW)
    return tensorflow


def detect_build():
    """Return the Build of the installed TensorFlow, which is imported."""
    tf = import_tensorflow()
    folder = os.path.dirname(os.path.dirname(os.path.abspath(tf.__file__)))
    distributions = [os.path.basename(path) for path in glob.glob(os.path.join(folder, "*-info"))]
    return describe(tf.__version__, getattr(tf.version, "GIT_VERSION", ""), os.environ, distributions)


def describe(text, git, environ, distributions):
    """Return a Build from its properties.

    Args:
        text: tf.__version__.
        git: tf.version.GIT_VERSION, bytes in some versions.
        environ: the environment variables.
        distributions: names of the *-info folders in the same site-packages.
    """
    numbers = re.match(r"(\d+)\.(\d+)(\.\d+)?(.*)$", text)
    version = (int(numbers.group(1)), int(numbers.group(2))) if numbers else NEWEST_TENSORFLOW
    kind = "ngc" if _is_nvidia(text, environ, distributions) else "stock"
    return Build(text, version, kind, environ.get("NVIDIA_TENSORFLOW_VERSION"),
                 list(_unrecognized_reasons(text, numbers, git, kind, distributions)))


def _is_nvidia(text, environ, distributions):
    return ("NVIDIA_TENSORFLOW_VERSION" in environ or environ.get("NVIDIA_PRODUCT_NAME") == "TensorFlow"
            or "+nv" in text or any(_NVIDIA.match(name) for name in distributions))


def _unrecognized_reasons(text, numbers, git, kind, distributions):
    if not numbers:
        yield "its version, {!r}, is not a number".format(text)
        return
    version, suffix = (int(numbers.group(1)), int(numbers.group(2))), numbers.group(4)
    if version > NEWEST_TENSORFLOW:
        yield "{} is newer than the newest one known here, {}".format(text, as_text(NEWEST_TENSORFLOW))
    if version < OLDEST_TENSORFLOW:
        yield "{} is older than the oldest one known here, {}".format(text, as_text(OLDEST_TENSORFLOW))
    if suffix and not (kind == "ngc" and suffix.startswith("+nv")):
        yield "{} is not a release".format(text)
    for name in sorted(distributions):
        if _FORK.match(name):
            yield "it comes from {}, not from the TensorFlow project's releases".format(name.rsplit(".", 1)[0])
    if kind == "stock" and _as_text(git) in ("", "unknown"):
        yield "it does not say from which commit it was built"


def _as_text(value):
    return value.decode("ascii", "replace") if isinstance(value, bytes) else str(value)
