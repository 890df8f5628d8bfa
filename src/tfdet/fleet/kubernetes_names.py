"""What Kubernetes, and a registry of images, take for a name: refused here, before a cluster refuses the manifest.

https://kubernetes.io/docs/concepts/overview/working-with-objects/names/ and .../labels/;
https://pkg.go.dev/github.com/distribution/reference for images.
"""

from __future__ import annotations

import re
from typing import Final

from tfdet.base.errors import UsageError

_LABEL: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = re.compile(rf"{_LABEL}(\.{_LABEL})*")  # RFC 1123, as Kubernetes names objects
_VALUE: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")  # of a label
_HOST: Final = r"[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?"
_PATH: Final = r"[a-z0-9]+((\.|__?|-+)[a-z0-9]+)*"
_PREFIX: Final = re.compile(rf"(({_HOST}(\.{_HOST})*(:[0-9]+)?/)?({_PATH}/)*)")
_LABEL_MOST, _NAME_MOST, _IMAGE_MOST = 63, 253, 200  # of 255 for an image, ours behind it


def check_label_value(option: str, text: str) -> str:
    """UsageError where no label can have it."""
    if not _VALUE.fullmatch(text) or len(text) > _LABEL_MOST:
        raise _invalid_name(option, text, "letters, digits, '-', '_' and '.', at most 63, as in NVIDIA-H100-80GB-HBM3")
    return text


def check_object_name(option: str, text: str, most: int = _NAME_MOST) -> str:
    """UsageError where no object can be called so."""
    if not _SUBDOMAIN.fullmatch(text) or len(text) > most:
        raise _invalid_name(option, text, f"small letters, digits, '-' and '.', at most {most}, as in tfdet-records")
    return text


def check_queue_name(option: str, text: str) -> str:
    """Of an object, and the value of a label, too."""
    return check_object_name(option, text, _LABEL_MOST)


def check_image_prefix(option: str, text: str) -> str:
    """UsageError where an image's name cannot begin so."""
    if not _PREFIX.fullmatch(text) or len(text) > _IMAGE_MOST:
        raise _invalid_name(option, text, "a registry and a path that end with '/', as in registry.example/team/")
    return text


def _invalid_name(option: str, text: str, rule: str) -> UsageError:
    return UsageError(f"{option} {text!r} is not a valid Kubernetes name", f"Write {rule}.")
