"""Signing keys for tests, their holders, and what they sign."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from records import STACK, device_of

from tfdet.base.paths import Project
from tfdet.store.records import Record, read_records
from tfdet.store.signing import attest, key_signer
from tfdet.store.signing_key import public_pem

# The fields by which a record names an H100; nothing but a signature tells a true record from an invented one.
H100 = {
    "device": device_of("nvidia-h100"),
    "ran_on": ["GPU:0"],
    "stack": {**STACK, "gpu": "NVIDIA H100", "driver": "550.54", "compute_capability": "9.0"},
}
# A file of matrix/keys; signer: the holder of the key; trusted_for: the devices whose records the key may sign.
FILE = """
signer = "{signer}"
public = '''
{pem}'''
since = {since}
{rest}
[[trusted_for]]
device = "{device}"
"""


@dataclass(frozen=True)
class Signer:
    """A key pair, under the name that its file in matrix/keys has."""

    name: str
    key: Ed25519PrivateKey = field(default_factory=Ed25519PrivateKey.generate, repr=False)

    @property
    def id(self) -> str:
        """Return the SHA-256 of the public key, as records of signatures name it."""
        return hashlib.sha256(self.key.public_key().public_bytes_raw()).hexdigest()

    @property
    def private_pem(self) -> bytes:
        return self.key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())

    def trust_in(
        self,
        project: Project,
        device: str = "nvidia",
        extra_lines: str = "",
        holder: str = "",
        since: str = "2026-01-01",
    ) -> Path:
        """Write the signer's file of matrix/keys; `extra_lines`: more lines before its tables, then more tables.

        holder: the signer's name in the file, if it is not the file's name.
        """
        top, _, tables = extra_lines.partition("\n\n")
        text = FILE.format(signer=holder or self.name, pem=public_pem(self.key), since=since, rest=top, device=device)
        path = project.matrix / "keys" / f"{self.name}.toml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text + tables, "utf-8")
        return path

    def write_revoked_key(self, project: Project, device: str = "nvidia") -> None:
        """Write the signer's key file with a revocation."""
        self.trust_in(project, device, '\n\n[revoked]\non = 2026-11-22\nwhy = "stolen"\n')

    def sign(self, project: Project, records: Iterable[Record]) -> list[str]:
        """Return the envelopes (lines of JSON) that attest the records."""
        return attest(project, records, key_signer(self.key))


def write_bundle(project: Project, name: str, records: Sequence[Record], envelopes: Iterable[str] = ()) -> Path:
    """Write a file of records with the envelopes beside it; return its path."""
    path = project.root / name
    path.write_text("".join(record.line() for record in records), "ascii")
    Path(f"{path}.intoto.jsonl").write_text("".join(envelopes), "ascii")
    return path


def write_attestations(project: Project, path: Path, signer: Signer) -> None:
    """Write the envelope of a file of records beside it, signed by a signer whom the project then trusts."""
    signer.trust_in(project)
    Path(f"{path}.intoto.jsonl").write_text("".join(signer.sign(project, list(read_records(path)))), "ascii")


def run_tfdet(project: Project, *arguments: str | Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run `python -m tfdet`; keys are read from the project's own folder, so that the tester's key signs nothing."""
    return subprocess.run(
        [sys.executable, "-m", "tfdet", *map(str, arguments)],
        env={**os.environ, "TFDET_ROOT": str(project.root), "XDG_CONFIG_HOME": str(project.root / "config"), **environ},
        cwd=project.root,
        capture_output=True,
        text=True,
        timeout=300,
    )
