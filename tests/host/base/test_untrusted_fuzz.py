"""Readers of untrusted bytes return a result or raise their own error. TFDET_FUZZ=20000: a long run."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import zipfile
import zlib
from pathlib import Path

import numpy
import pytest
from hostile import block, blocks, damaged, documents, fuzzed
from hypothesis import given
from hypothesis import strategies as st
from records import make_record
from signers import Signer
from synthetic import write_trace
from test_trust_keyless import BUNDLE, keyring

from tfdet.audit import wheels
from tfdet.base import untrusted
from tfdet.base.errors import DataError, TfdetError
from tfdet.base.paths import Project
from tfdet.engines import locate
from tfdet.fleet.folder import FleetFolder
from tfdet.matrix.keys import Keyring, PublicKey
from tfdet.matrix.load import load_file
from tfdet.matrix.models import Environment
from tfdet.publish import locate_page, terminal_views
from tfdet.store import audits, dsse, in_toto, keyless, signing_key
from tfdet.store.fast_records import read_record_lines
from tfdet.store.records import read_records
from tfdet.store.signatures import unverified_signers
from tfdet.verdicts import programs
from tfdet_common import journal
from tfdeterminism.trace import errors
from tfdeterminism.trace.capture import input_capture, replay, value_recorder
from tfdeterminism.trace.commands import diff
from tfdeterminism.trace.schema import format as trace_format
from tfdeterminism.trace.schema.reader import load

RECORD = make_record("differs")
SIGNER = Signer("lab")
STATEMENT = {
    "_type": "https://in-toto.io/Statement/v1",
    "subject": [{"name": "records", "digest": {"sha256": "0" * 64}}],
    "predicateType": "https://example.org/x",
    "predicate": {"result": "PASSED"},
}
ENVELOPE = json.loads(dsse.sign_payload(json.dumps(STATEMENT).encode(), SIGNER.key))
CELL = {"cell_type": "code", "source": ["import tensorflow as tf\n", "tf.nn.bias_add(x, y)"]}
NOTEBOOK = {"nbformat": 4, "metadata": {"kernelspec": {"language": "python"}}, "cells": [CELL]}
PROGRAM = b"import tensorflow as tf\nx = tf.nn.bias_add([[1.0]], [1.0])\nprint(f'{x!r}', lambda: (yield))\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzzed")


@fuzzed
@given(line=documents(RECORD))
def test_a_record(folder: Path, line: bytes) -> None:
    """Test the strict reader, the fast reader and the probe's reader."""
    path = folder / "records.jsonl"
    path.write_bytes(line + b"\n")
    for read in (read_records, read_record_lines):
        try:
            list(read(path))
        except DataError as error:
            assert f"{path}:1: " in error.cause
    try:
        journal.parse(io.BytesIO(line + b"\n"), str(path))
    except journal.JournalUnusableError as error:
        assert f"{path}:1" in str(error)


@fuzzed
@given(line=documents(ENVELOPE), body=documents(STATEMENT))
def test_an_envelope(line: bytes, body: bytes) -> None:
    text = line.decode("utf-8", "replace")
    key = PublicKey.model_validate_json(json.dumps(
        {"signer": "lab", "since": "2026-01-01", "trusted_for": [{"device": "cpu"}],
         "public": signing_key.public_pem(SIGNER.key)}))  # fmt: skip
    for read in (lambda: dsse.verify_envelope(text, Keyring({"lab": key})), lambda: dsse.parse_unverified(text),
                 lambda: in_toto.parse_statement(body)):  # fmt: skip
        with contextlib.suppress(ValueError):
            read()
    unverified_signers([text, dsse.sign_payload(body, SIGNER.key)])


@fuzzed
@given(line=documents(BUNDLE))
def test_a_bundle_of_sigstore(line: bytes) -> None:
    with contextlib.suppress(ValueError):
        keyless.verify_sigstore_bundle(line.decode("utf-8", "replace"), keyring())


@fuzzed
@given(data=st.data())
def test_a_certificate(data: st.DataObject) -> None:
    raw = base64.b64decode(BUNDLE["verificationMaterial"]["certificate"]["rawBytes"])
    forged = base64.b64encode(data.draw(damaged(raw))).decode()
    material = {**BUNDLE["verificationMaterial"], "certificate": {"rawBytes": forged}}
    with contextlib.suppress(ValueError):
        keyless.parse_unverified(json.dumps({**BUNDLE, "verificationMaterial": material}))


@pytest.fixture(scope="module")
def trace(folder: Path) -> bytes:
    write_trace(str(folder / "trace-0.tfdt"), steps=3, ops=5)
    return (folder / "trace-0.tfdt").read_bytes()


@fuzzed
@given(data=st.data())
def test_a_trace(folder: Path, trace: bytes, data: st.DataObject) -> None:
    """Only the content is damaged, the checksums are right. Traces that can be read can be compared and shown."""
    trace_blocks = blocks(trace)
    number = data.draw(st.integers(0, len(trace_blocks) - 1))
    tag, payload = trace_blocks[number]
    # DEFS, the definitions: zlib of JSON.  RECS, the records: binary.  The other blocks are JSON.
    if tag == b"DEFS":
        payload = zlib.compress(data.draw(documents(json.loads(zlib.decompress(payload)))))
    elif tag == b"RECS":
        payload = data.draw(damaged(payload))
    else:
        payload = data.draw(documents(json.loads(payload)))
    trace_blocks[number] = tag, payload
    path, other = folder / "changed.tfdt", folder / "other.tfdt"
    path.write_bytes(trace[:16] + b"".join(block(*parts) for parts in trace_blocks))  # after the file's prefix
    other.write_bytes(trace)
    try:
        load(str(path))
        message = locate.compare([str(path), str(other)])
    except (trace_format.TraceFormatError, DataError) as error:
        assert str(path) in str(error) or "different" in str(error)
        return
    terminal_views.cause_report(message)
    locate_page.html(message).encode()
    out = io.StringIO()
    diff.main(["--json", str(path), str(other)], out)
    json.dumps(json.loads(out.getvalue()), ensure_ascii=False).encode()  # no half of a surrogate pair
    diff.main([str(path), str(other)], io.TextIOWrapper(io.BytesIO(), "utf-8"))


@fuzzed
@given(data=st.data())
def test_kept_inputs(folder: Path, data: st.DataObject) -> None:
    meta = {"op": "MatMul", "dtypes": ["float32"], "shapes": [[2]], "outputs": 1}
    path, content = folder / "capture-0.npz", io.BytesIO()
    header = numpy.frombuffer(data.draw(documents(meta)), numpy.uint8)
    numpy.savez(content, meta=header, input_0=numpy.zeros(8, numpy.uint8))
    path.write_bytes(data.draw(st.one_of(st.just(content.getvalue()), damaged(content.getvalue()))))
    try:
        replay.replay(str(path), 2)
    except (errors.UsageError, trace_format.TraceFormatError) as error:
        assert str(path) in str(error)


@fuzzed
@given(text=documents([{"function": "", "trace": 0, "node": "a", "occurrence": 0, "rank": None}]))
def test_damaged_tensor_selections_are_usage_errors(text: bytes) -> None:
    for read in (value_recorder.parse, input_capture.parse):
        with contextlib.suppress(errors.UsageError):
            read(text.decode("utf-8", "replace"))


@fuzzed
@given(content=documents(NOTEBOOK), program=damaged(PROGRAM))
def test_a_program(folder: Path, content: bytes, program: bytes) -> None:
    for name, text in (("a.ipynb", content), ("a.py", program)):
        (folder / name).write_bytes(text)
        try:
            programs.parse_programs([folder / name])
        except DataError as error:
            assert str(folder / name) in error.cause


@fuzzed
@given(data=st.data())
def test_a_file_of_the_matrix(folder: Path, checkout: Project, data: st.DataObject) -> None:
    original, path = checkout.matrix / "environments" / "tensorflow" / "tf2.0.toml", folder / "file.toml"
    path.write_bytes(data.draw(damaged(original.read_bytes())))
    try:
        load_file(path, Environment, "tensorflow")
    except DataError as error:
        assert all(line.startswith(f"{path}:") for line in error.cause.split("\n")), error.cause


@fuzzed
@given(content=documents({"schema": 1, "name": "f", "root": "/", "cluster": "slurm", "options": {"device": "cpu"},
                          "tasks": [{"environment": "tf2.0", "sources": ["a"], "seconds": 1.0}]}))  # fmt: skip
def test_the_plan_of_a_fleet(folder: Path, content: bytes) -> None:
    (folder / "fleet.json").write_bytes(content)
    try:
        _ = FleetFolder(folder).fleet
    except TfdetError as error:
        assert str(folder) in error.cause


@fuzzed
@given(content=documents({"schema": 4, "environment": "tf2.0", "wheel": {"file": "a.whl", "sha256": "0"},
                          "libraries": {"a.so": {"kernel_counts": {"sm_70": 1}, "kernels": []}}}))  # fmt: skip
def test_an_audit(folder: Path, content: bytes) -> None:
    (folder / "tf2.0.json").write_bytes(content)
    try:
        audits.load(folder / "tf2.0.json")
    except DataError as error:
        assert str(folder) in error.cause


@fuzzed
@given(data=st.data())
def test_a_wheel(folder: Path, data: st.DataObject) -> None:
    content, path = io.BytesIO(), folder / "a-1-py3-none-any.whl"
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("a/lib.so", "a/b.cubin", "a/__init__.py"):
            archive.writestr(name, b"content " * 20)
    path.write_bytes(data.draw(damaged(content.getvalue())))
    try:
        wheels.unpack(wheels.Wheel(path, untrusted.sha256(path)))
    except TfdetError as error:
        assert str(path) in error.cause


@fuzzed
@given(data=st.data())
def test_a_key(folder: Path, data: st.DataObject) -> None:
    path = folder / "key.pem"
    path.write_bytes(data.draw(damaged(SIGNER.private_pem)))
    path.chmod(0o600)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TFDET_KEY", str(path))
        try:
            signing_key.load()
        except DataError as error:
            assert str(path) in error.cause


@fuzzed
@given(text=documents({"result": "same", "first_step": None, "culprits": [], "traces": [{"argv": ["a"]}]}))
def test_output_of_the_trace_commands(text: bytes) -> None:
    try:
        result = locate.parse_result(text)
    except DataError:
        return
    terminal_views.cause_report(result)
    locate_page.html(result).encode()
