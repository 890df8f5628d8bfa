"""The adapters of the frameworks, a folder each; no other part of the probe depends on the framework.

The variable TFDET_FRAMEWORKS lists more folders to search, with a package `<name>` for each framework.
"""

import importlib
import os
import pkgutil
from typing import TYPE_CHECKING

from tfdet_common.variables import FRAMEWORKS

if TYPE_CHECKING:  # for type comments alone
    from .base import Framework  # noqa: F401

__path__ = __path__ + [folder for folder in os.environ.get(FRAMEWORKS, "").split(os.pathsep) if folder]


class NoAdapterError(Exception):
    """The probe has no adapter of that name."""


def names():
    # type: () -> list[str]
    """The names of the frameworks that have an adapter, sorted."""
    return sorted(name for _, name, is_package in pkgutil.iter_modules(__path__) if is_package)


def load_adapter(name):
    # type: (str) -> Framework
    """Load the adapter of a framework; NoAdapterError if there is none."""
    if name not in names():
        raise NoAdapterError("no adapter for the framework {!r}; there are: {} (more folders: {})".format(
            name, ", ".join(names()), FRAMEWORKS))
    return importlib.import_module("{}.{}".format(__name__, name)).Adapter()
