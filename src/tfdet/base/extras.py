"""Packages that some commands need and the others do not: extras of the distribution."""

from __future__ import annotations

from importlib import import_module
from typing import Final

from tfdet.base.errors import UsageError

EXTRAS: Final = {
    "docker": "docker",
    "lz4": "audit",
    "matplotlib": "site",
    "sigstore": "keyless",
    "submitit": "fleet",
    "zstandard": "audit",
}
"""{package: the extra of pyproject.toml that has it}."""


def require(package: str) -> None:
    """UsageError where it is not installed: before any work is begun that would need it later."""
    try:
        import_module(package)
    except ModuleNotFoundError as error:
        raise missing_extra(error) or error from None


def install_line(package: str) -> str:
    return f"pip install 'tfdet[{EXTRAS[package]}]'"


def missing_extra(error: ModuleNotFoundError) -> UsageError | None:
    """The line that installs what is missing; None if it is of no extra."""
    package = (error.name or "").partition(".")[0]
    if package not in EXTRAS:
        return None
    return UsageError(f"this needs the package {package}", f"Install it: {install_line(package)}")
