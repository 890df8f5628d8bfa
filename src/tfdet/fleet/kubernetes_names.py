"""Checks of names for Kubernetes and image registries, so that an invalid option fails before the manifest is used.

https://kubernetes.io/docs/concepts/overview/working-with-objects/names/ and .../labels/;
https://pkg.go.dev/github.com/distribution/reference for images.
"""

from __future__ import annotations

import re
from typing import Final

from tfdet.base.errors import UsageError

_LABEL: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = re.compile(rf"{_LABEL}(\.{_LABEL})*")  # RFC 1123, as Kubernetes names objects
_LABEL_VALUE: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_HOST: Final = r"[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?"
_PATH: Final = r"[a-z0-9]+((\.|__?|-+)[a-z0-9]+)*"
_PREFIX: Final = re.compile(rf"(({_HOST}(\.{_HOST})*(:[0-9]+)?/)?({_PATH}/)*)")
_MAX_LABEL, _MAX_NAME = 63, 253  # characters
_MAX_PREFIX = 200  # characters; an image's full name may have 255


def check_label_value(option: str, text: str) -> str:
    """Return the text; UsageError if it is not a valid value of a label."""
    if not _LABEL_VALUE.fullmatch(text) or len(text) > _MAX_LABEL:
        raise _invalid_name(option, text, "letters, digits, '-', '_' and '.', at most 63, as in NVIDIA-H100-80GB-HBM3")
    return text


def check_object_name(option: str, text: str, max_length: int = _MAX_NAME) -> str:
    """Return the text; UsageError if it is not a valid name of an object."""
    if not _SUBDOMAIN.fullmatch(text) or len(text) > max_length:
        rule = f"small letters, digits, '-' and '.', at most {max_length}, as in tfdet-records"
        raise _invalid_name(option, text, rule)
    return text


def check_queue_name(option: str, text: str) -> str:
    """Return the text; UsageError if it is not valid both as an object's name and as a label's value."""
    return check_object_name(option, text, _MAX_LABEL)


def check_image_prefix(option: str, text: str) -> str:
    """Return the text; UsageError if no image's name can begin with it."""
    if not _PREFIX.fullmatch(text) or len(text) > _MAX_PREFIX:
        raise _invalid_name(option, text, "a registry and a path that end with '/', as in registry.example/team/")
    return text


def _invalid_name(option: str, text: str, rule: str) -> UsageError:
    return UsageError(f"{option} {text!r} is not a valid Kubernetes name", f"Write {rule}.")
