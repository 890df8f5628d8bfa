"""The catalogue of issues and pull requests, with their state on the day of the catalogue.

The seed documents are those of NVIDIA's package tensorflow-determinism, the predecessor of this project.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any, Literal

import tomli
from pydantic import Field

from tfdet.matrix.field_types import StrictModel, Text


class Link(StrictModel):
    kind: Literal["issue", "pull request", "page"]
    address: Text = Field(pattern=r"^https://")
    title: Text
    state: Text = Field(description="as known on the day of the catalogue")
    says: str = Field(default="", description="what it means for a user who trains a network")
    sources: list[Text] = Field(default=[])
    seed: bool = Field(default=False, description="in the catalogue of the seed documents")

    def data(self) -> dict[str, Any]:
        return self.model_dump(mode="json")


class Catalogue(StrictModel):
    known_on: Text = Field(description="the day on which the states were looked up")
    links: list[Link]


@cache
def load_catalogue() -> Catalogue:
    text = (files("tfdet.site") / "content" / "links.toml").read_text("utf-8")
    return Catalogue.model_validate(tomli.loads(text))


def catalogue() -> list[Link]:
    return load_catalogue().links
