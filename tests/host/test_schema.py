"""matrix/schema is what the models say, and real data fits it."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable

import jsonschema

from tfdet.base.paths import Project
from tfdet.publish.schema import schemas


def test_the_exported_schemas_are_current(checkout: Project) -> None:
    folder = checkout.matrix / "schema"
    assert {path.name: path.read_text("utf-8") for path in folder.glob("*.json")} == schemas(), "run scripts/schema"


def test_every_file_fits_its_schema(checkout: Project) -> None:
    for kind in ("environment", "source", "solution"):
        validator = jsonschema.Draft202012Validator(json.loads(schemas()[f"{kind}.json"]))
        for path in (checkout.matrix / f"{kind}s").glob("*.toml"):
            assert not list(validator.iter_errors(tomllib.loads(path.read_text("utf-8")))), path


def test_a_record_fits_and_a_broken_one_does_not(line: Callable[..., bytes]) -> None:
    validator = jsonschema.Draft202012Validator(json.loads(schemas()["record.json"]))
    assert not list(validator.iter_errors(json.loads(line())))
    assert list(validator.iter_errors(json.loads(line(schema=3))))
