"""The project that the end-to-end tests build: names, and a copy of the files of the images."""

from __future__ import annotations

import shutil
from pathlib import Path

from tfdet.base.paths import Project

ROOT = Path(__file__).resolve().parents[2]
BASE = "tfdet-base:py3.7"
KEY = "tf2.0"


def copy_project(root: Path, target: Path) -> Project:
    """Copy the files of the images to a folder, and return the project there."""
    for name in ("docker", "matrix", "runtime", "tests/suite/tensorflow", "vgpu"):
        shutil.copytree(root / name, target / name, ignore=shutil.ignore_patterns("__pycache__"))
    return Project(target)
