"""Compare the ops whose code in a build raises a determinism error with those that the documentation lists."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tfdet.matrix.alerts import Meaning
from tfdet.matrix.devices import CPU, GPU
from tfdet.matrix.field_types import Device
from tfdet.matrix.ops import DocumentedEntry
from tfdet.matrix.source_readings import ReadingKind

_DEVICE_TEXTS: dict[Device, str] = {"cpu": "CPU", "gpu": "CUDA"}


def refusals_text(refusals: Sequence[Meaning]) -> str:
    """Return the callers of alerts as a table shows them: `_histc_cuda` (CUDA).

    A caller is the name that the code passes to the function that raises.
    """
    return "; ".join(
        f"{', '.join(f'`{name}`' for name in meaning.callers)} ({_scope(meaning)})" for meaning in refusals
    )


def _scope(meaning: Meaning) -> str:
    backward = ["backward"] if meaning.backward else []
    return ", ".join([*(_DEVICE_TEXTS[device] for device in meaning.devices), *backward])


def disagreements(
    documented: Sequence[DocumentedEntry], refusals: Sequence[Meaning], confirmed: frozenset[str]
) -> Iterator[tuple[ReadingKind, str]]:
    """Yield (kind, text) of each disagreement between the documentation and the code of one op.

    refusals: the alerts by which its code raises.  confirmed: the entries that an alert in the build confirms.
    """
    for device in (CPU, GPU):
        names = ", ".join(f"`{name}`" for meaning in refusals if device in meaning.devices for name in meaning.callers)
        says = {entry.says for entry in documented if device in entry.devices}
        code = f"its code refuses by {names} on {_DEVICE_TEXTS[device]}"
        if names and not says:
            yield "alert-unlisted", f"{code}; the documentation names it for {'no GPU' if device == GPU else 'none'}"
        elif names and "raises" not in says:
            yield "alert-against", f"{code}; the documentation says deterministic"
    missing = [entry for entry in documented if entry.says == "raises" and entry.api not in confirmed]
    for api in dict.fromkeys(entry.api for entry in missing):
        yield "alert-missing", f"no code of the build refuses by a name of {api}; the documentation says that it raises"
