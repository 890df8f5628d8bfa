"""Optional packages, which only some commands need: extras of the distribution."""

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
"""{package: the extra of pyproject.toml that contains it}."""


def require(package: str) -> None:
    """Raise UsageError if the package is not installed. Call it before work that needs the package at its end."""
    try:
        import_module(package)
    except ModuleNotFoundError as error:
        raise missing_extra(error) or error from None


def install_line(package: str) -> str:
    """Return the command that installs the extra with this package."""
    return f"pip install 'tfdet[{EXTRAS[package]}]'"


def missing_extra(error: ModuleNotFoundError) -> UsageError | None:
    """Return an error with the command that installs the missing package; None if no extra contains it."""
    package = (error.name or "").partition(".")[0]
    if package not in EXTRAS:
        return None
    return UsageError(f"this needs the package {package}", f"Install it: {install_line(package)}")
