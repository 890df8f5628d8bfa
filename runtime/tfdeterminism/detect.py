"""Which TensorFlow this is: its version, NVIDIA's or stock, and what makes us doubt it is a known release."""

import glob
import os
import re

from .recipes import FIRST, LAST, as_text

# Distributions that bring a package `tensorflow` of their own making; NVIDIA's are told apart below.
_FORK = re.compile(r"(tf[_-]nightly\w*|tensorflow[_-](rocm|macos|directml\w*|cpu[_-]aws|aarch64|neuron\w*)"
                   r"|intel[_-]tensorflow\w*)-", re.I)
_NVIDIA = re.compile(r"nvidia[_-]tensorflow-", re.I)
NO_TENSORFLOW = ("TensorFlow is not installed here, and tfdeterminism brings none. Install the version that you "
                 "want, for example `pip install tensorflow`, and call again.")


class Build(object):
    """text: TensorFlow's version as it says it.  version: (major, minor).  kind: 'stock' or 'ngc'.

    image: the version of the NGC image, None outside one.  doubts: sentences, none for a known release.
    """

    def __init__(self, text, version, kind, image, doubts):
        self.text = text
        self.version = version
        self.kind = kind
        self.image = image
        self.doubts = doubts


def tensorflow():
    """TensorFlow itself; ImportError with advice where there is none."""
    try:
        import tensorflow
    except ImportError as error:
        if getattr(error, "name", None) != "tensorflow":  # it is there, and broken: its own words say more
            raise
        raise ImportError(NO_TENSORFLOW)
    return tensorflow


def here():
    """The Build that this process would use (it is imported for that)."""
    tf = tensorflow()
    folder = os.path.dirname(os.path.dirname(os.path.abspath(tf.__file__)))
    beside = [os.path.basename(path) for path in glob.glob(os.path.join(folder, "*-info"))]
    return describe(tf.__version__, getattr(tf.version, "GIT_VERSION", ""), os.environ, beside)


def describe(text, git, environ, distributions):
    """A Build from what was found.

    git: tf.version.GIT_VERSION, bytes in some versions.  distributions: names of the folders with
    the metadata of what is installed beside TensorFlow.
    """
    numbers = re.match(r"(\d+)\.(\d+)(\.\d+)?(.*)$", text)
    version = (int(numbers.group(1)), int(numbers.group(2))) if numbers else LAST
    kind = "ngc" if _is_nvidia(text, environ, distributions) else "stock"
    return Build(text, version, kind, environ.get("NVIDIA_TENSORFLOW_VERSION"),
                 list(_doubts(text, numbers, git, kind, distributions)))


def _is_nvidia(text, environ, distributions):
    return ("NVIDIA_TENSORFLOW_VERSION" in environ or environ.get("NVIDIA_PRODUCT_NAME") == "TensorFlow"
            or "+nv" in text or any(_NVIDIA.match(name) for name in distributions))


def _doubts(text, numbers, git, kind, distributions):
    if not numbers:
        yield "its version, {!r}, is no number".format(text)
        return
    version, rest = (int(numbers.group(1)), int(numbers.group(2))), numbers.group(4)
    if version > LAST:
        yield "{} is newer than the newest one known here, {}".format(text, as_text(LAST))
    if version < FIRST:
        yield "{} is older than the oldest one known here, {}".format(text, as_text(FIRST))
    if rest and not (kind == "ngc" and rest.startswith("+nv")):
        yield "{} is no release".format(text)
    for name in sorted(distributions):
        if _FORK.match(name):
            yield "it comes from {}, not from the TensorFlow project's releases".format(name.rsplit(".", 1)[0])
    if kind == "stock" and _as_text(git) in ("", "unknown"):
        yield "it does not say from which commit it was built"


def _as_text(value):
    return value.decode("ascii", "replace") if isinstance(value, bytes) else str(value)
