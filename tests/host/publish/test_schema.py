"""matrix/schema is generated from the models, and real data are valid by it."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path

import jsonschema
from synthetic import write_trace

from tfdet.base.paths import Project
from tfdet.publish.schema import schemas
from tfdeterminism.trace.causes import trace_diff


def test_the_exported_schemas_are_current(checkout: Project) -> None:
    folder = checkout.matrix / "schema"
    assert {path.name: path.read_text("utf-8") for path in folder.glob("*.json")} == schemas(), "scripts/export-schema"


def test_every_file_fits_its_schema(checkout: Project) -> None:
    for kind in ("environment", "source", "solution"):
        validator = jsonschema.Draft202012Validator(json.loads(schemas()[f"{kind}.json"]))
        files = list((checkout.matrix / f"{kind}s").rglob("*.toml"))
        assert len(files) > 10, f"no {kind} is where it was looked for"
        for path in files:
            assert not list(validator.iter_errors(tomllib.loads(path.read_text("utf-8")))), path


def test_files_of_ops_are_valid_by_their_schema(checkout: Project) -> None:
    ops_validator = jsonschema.Draft202012Validator(json.loads(schemas()["ops.json"]))
    names_validator = jsonschema.Draft202012Validator(json.loads(schemas()["names.json"]))
    files = list((checkout.matrix / "ops").glob("*/*.json"))
    assert files
    for path in files:
        content = json.loads(path.read_text("utf-8"))
        assert not list(ops_validator.iter_errors(content)), path
        assert list(ops_validator.iter_errors({**content, "commit": "main"}))
    for path in (checkout.matrix / "ops").glob("*/names.toml"):
        assert not list(names_validator.iter_errors(tomllib.loads(path.read_text("utf-8")))), path


def test_a_record_is_valid_by_its_schema_and_a_broken_one_is_not(record_line: Callable[..., bytes]) -> None:
    validator = jsonschema.Draft202012Validator(json.loads(schemas()["record.json"]))
    assert not list(validator.iter_errors(json.loads(record_line())))
    assert list(validator.iter_errors(json.loads(record_line(schema=3))))


def test_output_of_the_debug_tool_is_valid_by_its_schema(tmp_path: Path) -> None:
    """Additional fields are valid; a field of another type or a missing field is not."""
    paths = [str(tmp_path / name) for name in ("a.tfdt", "b.tfdt")]
    for seed, path in enumerate(paths):
        write_trace(path, differs=[(7, 13)], seed=seed)
    report = trace_diff.compare(paths).as_json()
    validator = jsonschema.Draft202012Validator(json.loads(schemas()["trace-report.json"]))
    plain = json.loads(json.dumps(report))
    assert list(validator.iter_errors(plain)) == []
    assert list(validator.iter_errors({**plain, "first_step": "7"}))
    assert list(validator.iter_errors({name: value for name, value in plain.items() if name != "culprits"}))
