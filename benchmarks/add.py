"""tfdet evidence add on generated records of one environment (promise: <= 0.5 GiB, however many there are).

Usage: python benchmarks/add.py [RECORDS ...]     default: 310000 1000000
Twice each: all new, and all known already.  Signed by a key that is believed.
"""

from __future__ import annotations

import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from status import generate, measure

from tfdet.base.paths import Project
from tfdet.store.records import read_records
from tfdet.store.signing import add_to_bundle, attest, key_signer
from tfdet.store.signing_key import public_pem

KEY = """
signer = "Example Lab"
since = 2026-01-01
public = '''
{pem}'''
[[trusted_for]]
device = "cpu"
"""


def sent(root: Path, count: int) -> Path:
    """A project without evidence, and a signed file of records of one of its environments."""
    generate(root, count, ["tf2.0"])
    (lying,) = (root / "matrix" / "evidence" / "cpu").glob("*.jsonl")
    path = lying.rename(root / "sent.jsonl")
    key = Ed25519PrivateKey.generate()
    (root / "matrix" / "keys").mkdir()
    (root / "matrix" / "keys" / "lab.toml").write_text(KEY.format(pem=public_pem(key)), "utf-8")
    add_to_bundle(path, attest(Project(root), read_records(path), key_signer(key)))
    return path


def main() -> None:
    for count in [int(text) for text in sys.argv[1:]] or [310_000, 1_000_000]:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            # Linux counts what a process was before it ran another program as that one: so this one stays small.
            with ProcessPoolExecutor(1, get_context("spawn")) as other:
                path = other.submit(sent, root, count).result()
            size = path.stat().st_size / 2**20
            for what in ("new", "known"):
                command = [sys.executable, "-m", "tfdet", "evidence", "add", "--yes", str(path)]
                seconds, cpu, gib = measure(command, root)
                print(f"{count:,} records ({size:,.0f} MiB), all {what}: {seconds:.1f} s ({cpu:.1f} s of CPU), "
                      f"{gib:.2f} GiB")  # fmt: skip


if __name__ == "__main__":
    main()
