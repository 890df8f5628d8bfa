"""The switch itself: one for the process, since variables, TensorFlow's flags and its modules are the process's."""

import importlib
import os
import sys
import warnings
from collections import OrderedDict

from . import checks, detect, recipes, seeds, warned
from .patches import PATCHES, Replacements
from .report import Report
from .version import __version__

_TRUE = ("1", "true")
_BIAS_ADD = "bias-add"


class _State(object):
    """What is in force, and how it was before."""

    def __init__(self):
        self.former = OrderedDict()  # environment variables; None: it was unset
        self.installed = OrderedDict()  # patch key -> Replacements
        self.turned_on = False  # did we switch TensorFlow's own switch?
        self.report = None  # of enable_determinism


_state = _State()


def patch():
    # type: () -> None
    """Make stock TensorFlow 1.14, 1.15 or 2.0 deterministic on a GPU, as far as cuDNN and bias_add go.

    Call it before a graph is built.  TypeError on other versions and inside NVIDIA's NGC images.
    `enable_determinism()` does more, and in every version.
    """
    build = detect.here()
    _refuse(build)
    _warn_of_doubts(build, None)
    _set_variables(recipes.recipe_for(build.kind, build.version).environment)
    _install([PATCHES[_BIAS_ADD]], build, None)
    print("TensorFlow version {} has been patched by tfdeterminism version {}".format(build.text, __version__))
    sys.stdout.flush()


def enable_determinism(seed=None):
    # type: (int | None) -> Report
    """Do what makes this TensorFlow deterministic; a printable Report of what was done and what is left.

    seed: also seed Python, NumPy, TensorFlow and Keras with it.  Call it once, near the start of the
    program, before or after `import tensorflow`; calling it again changes nothing but the seeds.
    Warns (DeterminismWarning) of what defeats it.  ImportError where there is no TensorFlow.
    """
    if seed is not None:
        seed = seeds.check_seed(seed)
    report = _state.report or _enable()
    _warn_of_what_defeats(report)
    if seed is not None:
        report.seeded(seed, seeds.set_seeds(seed))
    return report


def disable():
    # type: () -> None
    """Put back every function, TensorFlow's own switch and the environment variables; nothing where nothing is on.

    What TensorFlow has read from the variables, and choices that it has cached, stay until the process
    ends.  So do seeds.
    """
    for replacements in reversed(list(_state.installed.values())):
        replacements.restore()
    if _state.turned_on:
        _config().disable_op_determinism()
    for name, value in _state.former.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    if _state.report is not None:
        _state.report.active = False
    _state.__init__()  # type: ignore[misc]  # of no other class


def _enable():
    build = detect.here()
    recipe = recipes.recipe_for(build.kind, build.version)
    report = Report(build, recipe, disable)
    _warn_of_doubts(build, report)
    for sentence in checks.started():
        _warn(sentence + ". Call enable_determinism() before: what is built, read or chosen by now stays as it is.",
              warned.TooLateWarning, report)
    report.done += _set_variables(recipe.environment)
    if recipe.call:
        report.done.append(_switch_on(recipe.call))
    _install(recipes.patches_for(build.kind, build.version), build, report)
    report.patches = [PATCHES[key] for key in _state.installed]
    report.old_references = sorted(set(name for r in _state.installed.values() for name in r.user_references()[0]))
    _state.report = report
    return report


def _refuse(build):
    if build.kind == "ngc":
        raise TypeError("tfdeterminism.patch() is not for NVIDIA's TensorFlow: it is deterministic with the "
                        "environment variable TF_DETERMINISTIC_OPS=1. tfdeterminism.enable_determinism() sets it.")
    if build.version not in recipes.PATCHED:
        raise TypeError("No patch available for version {} of TensorFlow: tfdeterminism.patch() is for stock {} only. "
                        "Call tfdeterminism.enable_determinism() instead, which knows every version.".format(
                            build.text, ", ".join(recipes.as_text(version) for version in recipes.PATCHED)))


def _set_variables(wanted):
    """Set what is not set so already; what was done, in sentences."""
    done = []
    for name, value in wanted:
        before = os.environ.get(name)
        if before in _TRUE:
            done.append("environment variable {}={} was set already".format(name, before))
            continue
        _state.former.setdefault(name, before)
        os.environ[name] = value
        done.append("set environment variable {}={}{}".format(
            name, value, "" if before is None else " (it was {!r})".format(before)))
    return done


def _switch_on(call):
    if _config().is_op_determinism_enabled():
        return "tf.config.experimental.{}() was in force already".format(call)
    getattr(detect.tensorflow().config.experimental, call)()
    _state.turned_on = True
    return "called tf.config.experimental.{}()".format(call)


def _config():
    """TensorFlow's module that can switch off again what its public function switches on."""
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
            if not build.doubts:
                raise
            _warn("the patch {} does not fit this TensorFlow and was left out: {}: {}".format(
                patch_.key, type(error).__name__, error), warned.UnknownBuildWarning, report)
        else:
            _state.installed[patch_.key] = replacements


def _warn_of_doubts(build, report):
    if build.doubts:
        _warn("tfdeterminism does not know this TensorFlow ({}); it does what is best for {} and proves nothing "
              "here".format("; ".join(build.doubts), recipes.recipe_for(build.kind, build.version).name),
              warned.UnknownBuildWarning, report)


def _warn_of_what_defeats(report):
    how = checks.xla()
    if how and not report.recipe.covers_xla:
        _warn("{}: what XLA compiles is not deterministic in TensorFlow {}. Leave XLA's JIT off.".format(
            how, report.build.text), warned.XlaWarning, report)
    value = checks.autotune()
    if value is not None:
        _warn("TF_CUDNN_USE_AUTOTUNE is set (to {!r}): leave it unset. With 0 or false cuDNN's algorithms are not "
              "selected at all, deterministic or not.".format(value), warned.AutotuneWarning, report)


def _warn(text, category, report):
    """Warn where the user's own line called us, and keep it in the report."""
    if report is not None and text not in report.warnings:
        report.warnings.append(text)
    depth, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__package__") == __package__:
        depth, frame = depth + 1, frame.f_back
    warnings.warn(text, category, stacklevel=depth)
