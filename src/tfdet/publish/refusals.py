"""What the code of a build refuses by itself, held against what the documentation says that it refuses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tfdet.matrix.alerts import Meaning
from tfdet.matrix.devices import CPU, GPU
from tfdet.matrix.field_types import Device
from tfdet.matrix.ops import DocumentedEntry
from tfdet.matrix.source_readings import ReadingKind

_WORDS: dict[Device, str] = {"cpu": "CPU", "gpu": "CUDA"}


def refusals_text(refuses: Sequence[Meaning]) -> str:
    """As a table has it: histc: `_histc_cuda` (CUDA)."""
    return "; ".join(f"{', '.join(f'`{name}`' for name in one.callers)} ({_where(one)})" for one in refuses)


def _where(one: Meaning) -> str:
    return ", ".join([*(_WORDS[device] for device in one.devices), *(["backward"] if one.backward else [])])


def disagreements(
    documented: Sequence[DocumentedEntry], refuses: Sequence[Meaning], held: frozenset[str]
) -> Iterator[tuple[ReadingKind, str]]:
    """Of one op.  held: the entries that some name in that build makes true, whatever the op."""
    for device in (CPU, GPU):
        names = ", ".join(f"`{name}`" for one in refuses if device in one.devices for name in one.callers)
        says = {entry.says for entry in documented if device in entry.devices}
        code = f"its code refuses by {names} on {_WORDS[device]}"
        if names and not says:
            yield "alert-unlisted", f"{code}; the documentation names it for {'no GPU' if device == GPU else 'none'}"
        elif names and "raises" not in says:
            yield "alert-against", f"{code}; the documentation says deterministic"
    missing = [entry for entry in documented if entry.says == "raises" and entry.api not in held]
    for api in dict.fromkeys(entry.api for entry in missing):
        yield "alert-missing", f"no code of the build refuses by a name of {api}; the documentation says that it raises"
