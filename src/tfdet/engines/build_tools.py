"""What packages without wheels are compiled with."""

from __future__ import annotations

import shutil

from tfdet.matrix.models import CompiledPackages


def missing_tools(compiled: CompiledPackages) -> list[str]:
    """The commands that are not on PATH."""
    return [tool for tool in compiled.tools if shutil.which(tool) is None]
