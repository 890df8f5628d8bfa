"""`tfdet key`: the key by which this machine signs its records."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from tfdet.base import console
from tfdet.base.errors import UsageError, unknown
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

    holder = None if signer is None else _holder(signer)
    if device and holder is None:
        raise UsageError("--device says of what a signer is believed", "Add --signer NAME.")
    key = own_key.need()
    pem = own_key.public_pem(key)
    text = pem if holder is None else _file(holder, pem, _kinds(device or []))
    console.note(f"key {key_id(key.public_key().public_bytes_raw())}")
    console.write(text)


def _holder(text: str) -> str:
    from tfdet.matrix.keys import signer_name

    try:
        return signer_name(text)
    except ValueError as error:
        raise UsageError(f"--signer {text!r}: {error}", 'For example: --signer "Example Lab".') from None


def _kinds(asked: list[str]) -> list[str]:
    """Those that were asked for, or all."""
    known = load()[1].devices.kinds
    for kind in asked:
        if kind not in known:
            raise unknown("kind of device", kind, known)
    return list(dict.fromkeys(asked)) or list(known)


def _file(signer: str, pem: str, devices: list[str]) -> str:
    """Quoted as JSON does it, TOML understands a string that has no control characters."""
    import json

    believed = "".join(f'\n[[believed]]\ndevice = "{kind}"\n' for kind in devices)
    quoted = json.dumps(signer, ensure_ascii=False)
    return f'signer = {quoted}\npublic = """\n{pem}"""\nsince = {datetime.now(UTC).date()}\n{believed}'
