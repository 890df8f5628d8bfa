"""A small project with a site: few pages of every kind."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

from copies import ROOT

from tfdet.base.paths import Project

# What the small project copies from the checkout.
ENVIRONMENTS = ("tf1.15", "tf2.0", "tf2.1", "tf2.8", "tf2.21", "ngc20.03-tf2")  # of TensorFlow
AUDITED = ("tf2.0", "tf2.1", "tf2.21")  # of them, those whose stored audits of binaries are copied
OPS = "torch2.13"  # of a framework whose ops are sources
RAN = ("torch-index-put", "torch-cumsum", "torch-empty", "torch-linalg-lstsq")  # ops of OPS whose records are copied
EVIDENCE = ("cpu/tf2.0", "cpu/tf2.8", "cpu/tf2.21", "vgpu-sm70/tf2.0")


def small_project(root: Path) -> Project:
    """Return a project with some environments and some of their evidence."""
    for name in ("frameworks", "devices", "sources", "solutions"):
        shutil.copytree(ROOT / "matrix" / name, root / "matrix" / name)
    for name in ("docs", "tests", "runtime", "docker", "vgpu"):
        (root / name).symlink_to(ROOT / name)
    environments = root / "matrix" / "environments" / "tensorflow"
    environments.mkdir(parents=True)
    for key in ENVIRONMENTS:
        shutil.copy(ROOT / "matrix" / "environments" / "tensorflow" / f"{key}.toml", environments)
    _with_ops(root)
    shutil.copytree(ROOT / "matrix" / "batches", root / "matrix" / "batches")
    parts = [f"audits/{key}.json" for key in AUDITED] + [f"evidence/{key}.jsonl" for key in EVIDENCE]
    for name in (*parts, "evidence/earlier-hashes.json", "costs/cpu/tf2.0.jsonl"):
        (root / "matrix" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "matrix" / name, root / "matrix" / name)
    return Project(root)


def _with_ops(root: Path) -> None:
    """Copy the environment OPS, the lists of its ops, and the records of the ops in RAN."""
    for name in (
        f"environments/torch/{OPS}.toml",
        "ops/torch/names.toml",
        "ops/torch/confirmed.toml",
        f"ops/torch/{OPS}.json",
    ):
        (root / "matrix" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "matrix" / name, root / "matrix" / name)
    lines = (ROOT / "matrix" / "evidence" / "cpu" / f"{OPS}.jsonl").read_text("utf-8").splitlines(keepends=True)
    path = root / "matrix" / "evidence" / "cpu" / f"{OPS}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(line for line in lines if json.loads(line)["source"] in RAN), "utf-8", newline="")


def pages(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.html"))


class PageParser(HTMLParser):
    """Collects the links, tags and anchors of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))

    def ids(self) -> list[str]:
        """Return the ids of all elements."""
        return [str(attributes["id"]) for _, attributes in self.tags if "id" in attributes]

    def links(self) -> Iterator[str]:
        """Return the targets of all links, scripts and images."""
        for tag, attributes in self.tags:
            named = attributes.get("href") or attributes.get("src")
            if named and tag in ("a", "link", "script", "img", "use"):
                yield named
