"""Copies of the checkout's data, for tests to break."""

from __future__ import annotations

import shutil
from pathlib import Path

from tfdet.base.paths import Project
from tfdet.publish.render import write
from tfdet.verdicts.status_loading import load_status

ROOT = Path(__file__).resolve().parent.parent
PARTS = ("matrix", "tests/suite", "tests/runtime/upstream", "docs", "runtime", "docker", "vgpu")
# The environments of TensorFlow that tests name, and one of each kind of solution.
# STOCK: built by TensorFlow's project; IMAGES: by NVIDIA.
STOCK = ("tf1.13.1", "tf1.14", "tf1.15", "tf2.0", "tf2.1", "tf2.6", "tf2.8", "tf2.21")
IMAGES = ("ngc19.06-py3", "ngc20.03-tf2", "ngc23.03-tf1")
EMULATED = ("tf2.0", "tf2.1")  # the environments whose records of the virtual GPU are copied


def copy_project(source: Path, root: Path) -> Project:
    """Copy the data of a checkout into a folder."""
    for folder in PARTS:
        shutil.copytree(source / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__", "*.lock"))
    shutil.copy(source / "README.md", root / "README.md")
    return Project(root)


def few_environments(root: Path) -> Project:
    """Copy the data of `STOCK` and `IMAGES` alone, of the virtual GPU of `EMULATED`; write their tables anew."""
    project = copy_project(ROOT, root)
    for path in project.matrix.glob("environments/*/*.toml"):
        if path.stem not in STOCK + IMAGES:
            _remove_data_of(project, path.stem)
            path.unlink()
    for path in project.matrix.glob("evidence/vgpu-*/*.jsonl"):
        if path.stem not in EMULATED:
            path.unlink()
    for folder in project.matrix.glob("environments/*"):
        if not any(folder.iterdir()):
            folder.rmdir()
    for name in ("ops", "alerts", "batches"):  # data of PyTorch alone
        shutil.rmtree(project.matrix / name)
    write(project, load_status(project))
    return project


def _remove_data_of(project: Project, environment: str) -> None:
    for kind in ("evidence/*", "audits", "costs/*", "signatures/*"):
        for suffix in ("json", "jsonl", "intoto.jsonl"):
            for path in project.matrix.glob(f"{kind}/{environment}.{suffix}"):
                path.unlink()
