"""The commands `tfdet key new` and `show`, for the key with which this machine signs its records."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from tfdet.base import console
from tfdet.base.errors import UsageError, unknown_name_error
from tfdet.cli.app import load_project


def new() -> None:
    """Create this machine's signing key (Ed25519): from then on `tfdet run` signs its records."""
    from tfdet.store import signing_key

    signing_key.generate()
    console.print_note(
        f"wrote {signing_key.path()} (private: keep it secret). Print the public key to share: tfdet key show"
    )


def show(
    signer: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="print a file for matrix/keys with this signer's name; default: none"),
    ] = None,
    device: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND", help="with --signer: trusted for this device kind (repeatable); default: all"),
    ] = None,
) -> None:
    """Print the public key of this machine's signing key."""
    from tfdet.matrix.keys import key_id
    from tfdet.store import signing_key

    signer_name = None if signer is None else _signer_name(signer)
    if device and signer_name is None:
        raise UsageError("--device requires --signer", "Add --signer NAME.")
    key = signing_key.require()
    pem = signing_key.public_pem(key)
    text = pem if signer_name is None else _key_toml(signer_name, pem, _device_kinds(device or []))
    console.print_note(f"key {key_id(key.public_key().public_bytes_raw())}")
    console.write(text)


def _signer_name(text: str) -> str:
    from tfdet.matrix.keys import normalize_signer_name

    try:
        return normalize_signer_name(text)
    except ValueError as error:
        raise UsageError(f"--signer {text!r}: {error}", 'For example: --signer "Example Lab".') from None


def _device_kinds(requested: list[str]) -> list[str]:
    """Return the requested device kinds without duplicates, by default all; UsageError for an unknown one."""
    known = load_project()[1].devices.kinds
    for kind in requested:
        if kind not in known:
            raise unknown_name_error("device kind", kind, known)
    return list(dict.fromkeys(requested)) or list(known)


def _key_toml(signer: str, pem: str, devices: list[str]) -> str:
    """Return a file for matrix/keys. A JSON string without control characters is also valid TOML."""
    import json

    trusted_for = "".join(f'\n[[trusted_for]]\ndevice = "{kind}"\n' for kind in devices)
    quoted = json.dumps(signer, ensure_ascii=False)
    return f'signer = {quoted}\npublic = """\n{pem}"""\nsince = {datetime.now(UTC).date()}\n{trusted_for}'
