"""Demangling of C++ names, by `__cxa_demangle` of the system's C++ runtime library."""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Iterable
from functools import cache


def demangle(names: Iterable[str]) -> list[str]:
    """Return the demangled names, in order; a name that is not a mangled C++ name stays unchanged."""
    return [_demangle(name) for name in names]


@cache
def _demangle(name: str) -> str:
    runtime = _runtime()
    if runtime is None or not name.startswith("_Z"):
        return name
    status = ctypes.c_int()
    text = runtime.__cxa_demangle(name.encode(), None, None, ctypes.byref(status))
    if not text:
        return name
    try:
        return ctypes.string_at(text).decode("utf-8", "backslashreplace")
    finally:
        _libc().free(ctypes.c_void_p(text))


@cache
def _runtime() -> ctypes.CDLL | None:
    try:
        runtime = ctypes.CDLL(ctypes.util.find_library("stdc++") or "libstdc++.so.6")
    except OSError:
        return None
    runtime.__cxa_demangle.restype = ctypes.c_void_p
    return runtime


@cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None)
    libc.free.argtypes = [ctypes.c_void_p]
    return libc
