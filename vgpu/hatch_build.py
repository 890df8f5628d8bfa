"""Build hook of the wheel tfdet-vgpu, which compiles its libraries."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Libraries(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        builder = runpy.run_path(str(Path(self.root) / "build.py"))
        libraries = builder["build"](builder["cache"](), portable=True)
        build_data["force_include"][str(libraries)] = "tfdet_vgpu/lib"
        build_data["pure_python"] = False
        build_data["tag"] = "py3-none-manylinux_2_17_x86_64"  # the platform of build.py --portable
