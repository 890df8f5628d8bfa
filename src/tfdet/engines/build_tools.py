"""The tools that compile packages without wheels."""

from __future__ import annotations

import shutil

from tfdet.matrix.models import CompiledPackages


def missing_tools(compiled: CompiledPackages) -> list[str]:
    """Return the tools for these packages that are not on PATH."""
    return [tool for tool in compiled.tools if shutil.which(tool) is None]
