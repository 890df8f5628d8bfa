"""The table of the settings that make each TensorFlow deterministic, by version, for stock builds and NVIDIA's.

enable_determinism(), `tfdet recipe` and the project's README use it. Replaced ops are in `patches.PATCHES`, each with
its versions.
"""

from .patches import PATCHES
from .remaining import newest

NEWEST_TENSORFLOW = newest()


class Recipe(object):
    """One row of the table.

    Attributes:
        kind: 'stock' or 'ngc' (NVIDIA's images and wheels).
        first, last: (major, minor), both included; last is None for an open end.
        solution: its key in the project's matrix, such as TDO for TF_DETERMINISTIC_OPS or TDP for patch(); None if no
            solution is known.
        environment: variables to set, ((name, value), ...).
        call: the name of a function in tf.config.experimental, or None.
        covers_xla: whether it makes ops compiled by XLA deterministic, too.
        caveats: sentences.
    """

    def __init__(self, kind, first, last, solution, environment=(), call=None, covers_xla=False, caveats=()):
        self.kind = kind
        self.first = first
        self.last = last
        self.solution = solution
        self.environment = tuple(environment)
        self.call = call
        self.covers_xla = covers_xla
        self.caveats = tuple(caveats)

    @property
    def name(self):
        """A text such as 'stock TensorFlow 1.14 to 2.0'."""
        return self.name_for(NEWEST_TENSORFLOW)

    def name_for(self, newest):
        # type: (tuple[int, int]) -> str
        """Return the name of the row; newest: the (major, minor) that an open end stands for."""
        last = self.last or newest
        versions = [as_text(self.first)] + ([as_text(last)] if last != self.first else [])
        return "{} TensorFlow {}".format("NVIDIA's" if self.kind == "ngc" else "stock", " to ".join(versions))

    def covers(self, kind, version):
        return kind == self.kind and self.first <= version and (self.last is None or version <= self.last)

    def lines(self):
        # type: () -> list[str]
        """Return the row as lines of a Python program, without the patches."""
        lines = ["import os"] if self.environment else []
        lines += ["os.environ[{!r}] = {!r}".format(name, value) for name, value in self.environment]
        lines += ["import tensorflow as tf"]
        if self.call:
            lines.append("tf.config.experimental.{}()".format(self.call))
        return lines


def as_text(version):
    # type: (tuple[int, ...]) -> str
    return ".".join(str(number) for number in version)


_CUDNN = [("TF_CUDNN_DETERMINISTIC", "1")]
_OPS = [("TF_DETERMINISTIC_OPS", "1")]
_FRONTEND = _OPS + [("TF_CUDNN_USE_FRONTEND", "1")]

_NO_SWITCH = "It reads no determinism variable: cuDNN's convolutions and max-pooling stay nondeterministic."
_NO_ALGORITHM = "cuDNN has no deterministic algorithm for some layers: they end with \"No algorithm worked!\"."
_EAGER_FIRST = "In 1.x call tf.enable_eager_execution(), if you use it, before anything that sets a seed."
_RAISES = "Ops without a deterministic kernel raise an error, unless a patch replaces them."
_CUDNN_81 = "TF_CUDNN_USE_FRONTEND acts only in builds with cuDNN 8.1 or later."
_NO_PFOR = ("GradientTape.jacobian and tf.vectorized_map have no rule for some ops that replaced ones are made of, and "
            "raise: experimental_use_pfor=False, or tf.map_fn.")
_UNSEEDED = "Random ops without a seed raise an error from now on."
_NO_PROMISE = "TensorFlow promises nothing for tf.compat.v1.Session and ParameterServerStrategy."

RECIPES = (
    Recipe("stock", (1, 13), (1, 13), None, caveats=[_NO_SWITCH, _EAGER_FIRST]),
    Recipe("stock", (1, 14), (1, 15), "TDP", _CUDNN, caveats=[_NO_ALGORITHM, _NO_PFOR, _EAGER_FIRST]),
    Recipe("stock", (2, 0), (2, 0), "TDP", _CUDNN, caveats=[_NO_ALGORITHM, _NO_PFOR]),
    Recipe("stock", (2, 1), (2, 1), "TDO", _OPS, caveats=[_NO_ALGORITHM]),
    Recipe("stock", (2, 2), (2, 4), "TDO", _OPS),
    Recipe("stock", (2, 5), (2, 7), "TDO-FE", _FRONTEND, caveats=[_RAISES, _CUDNN_81]),
    Recipe("stock", (2, 8), None, "TEOD", call="enable_op_determinism", covers_xla=True,
           caveats=[_RAISES, _UNSEEDED, _NO_PROMISE]),
    Recipe("ngc", (1, 13), (1, 15), "TDO", _OPS, caveats=["Before image 19.12: " + _NO_ALGORITHM, _EAGER_FIRST]),
    Recipe("ngc", (2, 0), (2, 7), "TDO", _OPS,
           caveats=["Before image 19.12: " + _NO_ALGORITHM, "From 2.5 on: " + _RAISES]),
    Recipe("ngc", (2, 8), None, "TEOD", call="enable_op_determinism", covers_xla=True,
           caveats=[_RAISES, _UNSEEDED, _NO_PROMISE]),
)
OLDEST_TENSORFLOW = RECIPES[0].first

# The versions that tfdeterminism.patch() supports.
PATCHED = ((1, 14), (1, 15), (2, 0))


def recipe_for(kind, version):
    # type: (str, tuple[int, int]) -> Recipe
    """Return the row for a version (major, minor); for a version outside of the table the nearest row."""
    rows = [row for row in RECIPES if row.kind == kind and row.first <= max(version, OLDEST_TENSORFLOW)]
    return max(rows, key=lambda row: row.first)


def patches_for(kind, version):
    """Return the patches for a version (major, minor), in the order of PATCHES.

    A newer version gets those of the newest known one.
    """
    if version < OLDEST_TENSORFLOW:  # untested
        return []
    return [patch for patch in PATCHES.values() if patch.applies(min(version, NEWEST_TENSORFLOW), kind == "ngc")]
