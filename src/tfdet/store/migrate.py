"""Records of schema 1 as records of schema 2: they are read as they are, and never rewritten."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from tfdet_common.journal import SCHEMA

MIN_SCHEMA = 1


def upgrade(content: Mapping[str, Any]) -> dict[str, Any]:
    """The same statement in today's schema; ValueError where schema 1 had no such record.

    What is missing or of a wrong type is left to the model, which says so.
    """
    if content["schema"] == SCHEMA:
        return dict(content)
    if "framework" in content:
        raise ValueError("framework: a record of schema 1 has no such field")
    stack, device = content.get("stack"), str(content.get("device"))
    return {
        **content,
        "schema": SCHEMA,
        "framework": {"name": "tensorflow", "version": stack.get("tensorflow") if isinstance(stack, dict) else None},
        "device": {"kind": schema1_device_kind(device), "model": device},
        "stack": {k: v for k, v in stack.items() if k != "tensorflow"} if isinstance(stack, dict) else stack,
    }


@lru_cache(maxsize=64)  # a million records name few
def schema1_device_kind(device: str) -> str:
    """The kind of a device as schema 1 names it; it knew no other, and TensorFlow alone."""
    if device == "cpu":
        return "cpu"
    if device.startswith("nvidia-"):
        return "nvidia"
    raise ValueError(f"device is neither cpu nor nvidia-MODEL: {device!r}")
