"""One folder a framework, found by its name: nothing else in the probe knows any.

More folders to look in, with a package `<name>` each, are named in the variable TFDET_FRAMEWORKS.
"""

import importlib
import os
import pkgutil

from tfdet_common.variables import FRAMEWORKS

__path__ = __path__ + [folder for folder in os.environ.get(FRAMEWORKS, "").split(os.pathsep) if folder]


class NoAdapter(Exception):
    """The probe has no adapter of that name."""


def names():
    """Of the frameworks that there are adapters for."""
    return sorted(name for _, name, is_package in pkgutil.iter_modules(__path__) if is_package)


def find(name):
    """The adapter of this framework: see base.Framework."""
    if name not in names():
        raise NoAdapter("no adapter for the framework {!r}; there are: {} (more folders: {})".format(
            name, ", ".join(names()), FRAMEWORKS))
    return importlib.import_module("{}.{}".format(__name__, name)).Adapter()
