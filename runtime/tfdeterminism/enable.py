"""The functions enable_determinism, disable and patch.

Their state is the process's, as are the environment variables and TensorFlow's flags and modules that they change.
"""

import importlib
import os
import sys
import warnings
from collections import OrderedDict

from . import detect, preconditions, recipes, seeds, warning_categories
from .patches import PATCHES, Replacements
from .report import Report
from .version import __version__

_TRUE = ("1", "true")
_BIAS_ADD = "bias-add"


class _State(object):
    """The enabled settings, and what disable() restores."""

    def __init__(self):
        self.saved_variables = OrderedDict()  # environment variables; None: it was unset
        self.installed = OrderedDict()  # patch key -> Replacements
        self.op_determinism_enabled = False  # whether enable_determinism() called enable_op_determinism()
        self.report = None  # of enable_determinism


_state = _State()


def patch():
    # type: () -> None
    """Make cuDNN and bias_add deterministic in stock TensorFlow 1.14, 1.15 or 2.0 on a GPU.

    Call it before a graph is built.  `enable_determinism()` does more, and supports every version.

    Raises:
        TypeError: for other versions, and in NVIDIA's NGC images.
    """
    build = detect.detect_build()
    _reject_unsupported(build)
    _warn_of_unrecognized_build(build, None)
    _set_variables(recipes.recipe_for(build.kind, build.version).environment)
    _install([PATCHES[_BIAS_ADD]], build, None)
    print("TensorFlow version {} has been patched by tfdeterminism version {}".format(build.text, __version__))
    sys.stdout.flush()


def enable_determinism(seed=None):
    # type: (int | None) -> Report
    """Make the installed TensorFlow as deterministic as its version allows.

    Call it once, near the start of the program, before or after `import tensorflow`; a further call changes the seeds
    only.

    Args:
        seed: if given, also seed Python, NumPy, TensorFlow and Keras with it, see set_seeds.

    Returns:
        A Report, printable: what was done, what remains nondeterministic, and what is left to the user.

    Raises:
        ImportError: TensorFlow is not installed.
        TypeError, ValueError: the seed is not an int from 0 to 2**32 - 1.

    Warns:
        DeterminismWarning: something defeats determinism.
    """
    if seed is not None:
        seed = seeds.check_seed(seed)
    report = _state.report or _enable()
    _warn_of_overrides(report)
    if seed is not None:
        report.seeded(seed, seeds.set_seeds(seed))
    return report


def disable():
    # type: () -> None
    """Restore the replaced functions, TensorFlow's own switch and the environment variables.

    Without effect if nothing is enabled.  Values that TensorFlow has read or cached stay until the process ends, and so
    do the seeds.
    """
    for replacements in reversed(list(_state.installed.values())):
        replacements.restore()
    if _state.op_determinism_enabled:
        _config().disable_op_determinism()
    for name, value in _state.saved_variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    if _state.report is not None:
        _state.report.active = False
    _state.__init__()  # type: ignore[misc]  # of no other class


def _enable():
    build = detect.detect_build()
    recipe = recipes.recipe_for(build.kind, build.version)  # the settings for this version
    report = Report(build, recipe, disable)
    _warn_of_unrecognized_build(build, report)
    for sentence in preconditions.runtime_started():
        _warn(sentence + ". Call enable_determinism() before: what is built, read or chosen by now stays as it is.",
              warning_categories.EnabledTooLateWarning, report)
    report.done += _set_variables(recipe.environment)
    if recipe.call:
        report.done.append(_switch_on(recipe.call))
    _install(recipes.patches_for(build.kind, build.version), build, report)
    report.patches = [PATCHES[key] for key in _state.installed]
    report.old_references = sorted(set(  # [0]: references that still call an original op
        name for replacements in _state.installed.values() for name in replacements.user_references()[0]))
    _state.report = report
    return report


def _reject_unsupported(build):
    if build.kind == "ngc":
        raise TypeError("tfdeterminism.patch() is not for NVIDIA's TensorFlow: it is deterministic with the "
                        "environment variable TF_DETERMINISTIC_OPS=1. tfdeterminism.enable_determinism() sets it.")
    if build.version not in recipes.PATCHED:
        raise TypeError("No patch available for version {} of TensorFlow: tfdeterminism.patch() is for stock {} only. "
                        "Call tfdeterminism.enable_determinism() instead, which knows every version.".format(
                            build.text, ", ".join(recipes.as_text(version) for version in recipes.PATCHED)))


def _set_variables(variables):
    """Set the variables that are not set yet, and return what was done, as sentences."""
    sentences = []
    for name, value in variables:
        old_value = os.environ.get(name)
        if old_value in _TRUE:
            sentences.append("environment variable {}={} was set already".format(name, old_value))
            continue
        _state.saved_variables.setdefault(name, old_value)
        os.environ[name] = value
        sentences.append("set environment variable {}={}{}".format(
            name, value, "" if old_value is None else " (it was {!r})".format(old_value)))
    return sentences


def _switch_on(call):
    if _config().is_op_determinism_enabled():
        return "tf.config.experimental.{}() was in force already".format(call)
    getattr(detect.import_tensorflow().config.experimental, call)()
    _state.op_determinism_enabled = True
    return "called tf.config.experimental.{}()".format(call)


def _config():
    """Return TensorFlow's module whose disable_op_determinism() undoes the public enable_op_determinism()."""
    return importlib.import_module("tensorflow.python.framework.config")


def _install(patches, build, report):
    for patch_ in patches:
        if patch_.key in _state.installed:
            continue
        replacements = Replacements()
        try:
            replacements.install(patch_)
        except Exception as error:
            replacements.restore()
            if not build.unrecognized_reasons:
                raise
            _warn("the patch {} does not fit this TensorFlow and was left out: {}: {}".format(
                patch_.key, type(error).__name__, error), warning_categories.UnknownBuildWarning, report)
        else:
            _state.installed[patch_.key] = replacements


def _warn_of_unrecognized_build(build, report):
    if build.unrecognized_reasons:
        _warn("tfdeterminism does not know this TensorFlow ({}); it does what is best for {} and proves nothing "
              "here".format("; ".join(build.unrecognized_reasons), recipes.recipe_for(build.kind, build.version).name),
              warning_categories.UnknownBuildWarning, report)


def _warn_of_overrides(report):
    cause = preconditions.xla_enabled_by()
    if cause and not report.recipe.covers_xla:
        _warn("{}: what XLA compiles is not deterministic in TensorFlow {}. Leave XLA's JIT off.".format(
            cause, report.build.text), warning_categories.XlaWarning, report)
    value = preconditions.autotune_override()
    if value is not None:
        _warn("TF_CUDNN_USE_AUTOTUNE is set (to {!r}): leave it unset. With 0 or false cuDNN's algorithms are not "
              "selected at all, deterministic or not.".format(value), warning_categories.AutotuneWarning, report)


def _warn(text, category, report):
    """Warn at the user's line that called this package, and add the text to the report."""
    if report is not None and text not in report.warnings:
        report.warnings.append(text)
    depth, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__package__") == __package__:
        depth, frame = depth + 1, frame.f_back
    warnings.warn(text, category, stacklevel=depth)
