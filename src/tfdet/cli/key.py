"""`tfdet key`: the key by which this machine signs its records."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from tfdet.base import console
from tfdet.cli.app import load


def new() -> None:
    """Make this machine's key (Ed25519): from then on `tfdet run` signs what it measures."""
    from tfdet.store import own_key

    own_key.new()
    console.note(f"wrote {own_key.path()}, for your eyes alone; whom to give the other half: tfdet key show")


def show(
    signer: Annotated[str | None, typer.Option(metavar="NAME", help="as a file of matrix/keys, held by NAME")] = None,
    device: Annotated[
        list[str] | None, typer.Option(metavar="KIND", help="with --signer: believed of this kind (again: several)")
    ] = None,
) -> None:
    """Print the public half of this machine's key."""
    from tfdet.matrix.keys import key_id
    from tfdet.store import own_key

    key = own_key.need()
    pem = own_key.public_pem(key)
    console.note(f"key {key_id(key.public_key().public_bytes_raw())}")
    console.write(_file(signer, pem, device or _kinds()) if signer else pem)


def _kinds() -> list[str]:
    return list(load()[1].devices.kinds)


def _file(signer: str, pem: str, devices: list[str]) -> str:
    """TOML quotes a string as JSON does."""
    import json

    believed = "".join(f"\n[[believed]]\ndevice = {json.dumps(kind)}\n" for kind in devices)
    return f'signer = {json.dumps(signer)}\npublic = """\n{pem}"""\nsince = {datetime.now(UTC).date()}\n{believed}'
