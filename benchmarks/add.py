"""Memory and time of `tfdet evidence add` on generated records of one environment (promise: always <= 0.5 GiB).

Usage: python benchmarks/add.py [RECORDS ...]     default: 310000 1000000
Each file is added twice: first all records are new, then all are known.  A trusted key signs them.
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


def create_signed_records(root: Path, count: int) -> Path:
    """Create a project without evidence; return a signed file of generated records of one environment."""
    generate(root, count, ["tf2.0"])
    (generated,) = (root / "matrix" / "evidence" / "cpu").glob("*.jsonl")
    path = generated.rename(root / "sent.jsonl")
    key = Ed25519PrivateKey.generate()
    (root / "matrix" / "keys").mkdir()
    (root / "matrix" / "keys" / "lab.toml").write_text(KEY.format(pem=public_pem(key)), "utf-8")
    add_to_bundle(path, attest(Project(root), read_records(path), key_signer(key)))
    return path


def main() -> None:
    for count in [int(text) for text in sys.argv[1:]] or [310_000, 1_000_000]:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            # Linux counts the memory that a child had before exec as its peak, so this process must stay small.
            with ProcessPoolExecutor(1, get_context("spawn")) as executor:
                path = executor.submit(create_signed_records, root, count).result()
            size = path.stat().st_size / 2**20
            for state in ("new", "known"):
                command = [sys.executable, "-m", "tfdet", "evidence", "add", "--yes", str(path)]
                seconds, cpu, gib = measure(command, root, root / "cache")
                print(f"{count:,} records ({size:,.0f} MiB), all {state}: {seconds:.1f} s ({cpu:.1f} s of CPU), "
                      f"{gib:.2f} GiB")  # fmt: skip


if __name__ == "__main__":
    main()
