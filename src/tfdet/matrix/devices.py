"""The registry of devices, which knows the kind of each device, and what its records may be evidence of.

A record is the result of one case on one device, with the versions of its software stack. A claim is what a document
says of a source of nondeterminism. Evidence is measured on real hardware, or emulated by the virtual GPU.

A device has three names.  Its model is the key in evidence and cells: `cpu`, `nvidia-h200`.  Its kind is the name of a
file in matrix/devices: `cpu`, `nvidia`.  Its claim device is the name that claims use: `cpu` or `gpu`.

Docstrings and descriptions of DeviceKind are part of matrix/schema.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, Literal

from pydantic import Field

from tfdet.matrix.field_types import Device, StrictModel, Text
from tfdet_common import virtual_gpu
from tfdet_common.machine import device_key

CPU: Final = "cpu"
GPU: Final = "gpu"
EvidenceKind = Literal["measured", "emulated"]


class DeviceKind(StrictModel):
    """A kind of device.  The key of a model is the name of the kind's file, or begins with that name and a dash."""

    name: Text
    cli_name: Text = Field(description="name of the kind for `--device`")
    placement: Text = Field(
        description="prefix of the device name with which frameworks report where an op ran, as in GPU:0"
    )
    claim_device: Device = Field(description="name of the device in sources, solutions and claims")
    evidence_kind: EvidenceKind = Field(
        description="kind of evidence of its records; only measured ones can support or contradict a claim"
    )
    has_model_name: bool = Field(
        default=False, description="whether its records name the GPU (stack.gpu), from which the model's key is derived"
    )
    needs_driver: bool = Field(
        default=False, description="whether a run needs NVIDIA's driver, and NVIDIA's runtime in a container"
    )
    requires_signature: bool = Field(
        default=False,
        description="whether its records count only if signed by a key of matrix/keys, since few can repeat them",
    )
    virtual: bool = Field(default=False, description="whether the folder vgpu/ replaces the vendor's libraries")
    models: Text | None = Field(
        default=None, description="pattern of the keys of its models; absent: has_model_name decides"
    )
    details: list[Text] = Field(
        default=[], description="keys of device.details; records of a virtual device have all of them"
    )
    optional_details: list[Text] = Field(default=[], description="further keys that device.details may have")
    capabilities: dict[Text, Text] = Field(
        default={}, description="{part of a model's key between dashes: compute capability}"
    )

    def has_model(self, key: str, model: str) -> bool:
        """Return whether `model` is valid for this kind.  key: the kind's name, which is its only model by default."""
        return re.fullmatch(self.models, model) is not None if self.models else self.has_model_name or model == key

    def capability(self, model: str) -> str | None:
        """Return the compute capability of a model; None if it is not known."""
        return next((self.capabilities[word] for word in model.split("-") if word in self.capabilities), None)


@dataclass(frozen=True, eq=False)
class DeviceRegistry:
    """All kinds of devices.  kinds: {name of the file in matrix/devices: kind}."""

    kinds: dict[str, DeviceKind]
    _by_model: dict[str, DeviceKind | None] = field(default_factory=dict, init=False, repr=False)

    def kind(self, model: str) -> DeviceKind | None:
        """Return the kind of a model such as nvidia-h200; None if it is unknown."""
        if model not in self._by_model:
            self._by_model[model] = next((kind for key, kind in self.kinds.items() if is_model(model, key)), None)
        return self._by_model[model]

    def find_by_cli_name(self, cli_name: str) -> DeviceKind:
        """Return the kind with this name for `--device`."""
        return next(kind for kind in self.kinds.values() if kind.cli_name == cli_name)

    def evidence_kind(self, device: str) -> EvidenceKind:
        """Return whether records of this model are measured, or emulated and so never evidence about a GPU."""
        kind = self.kind(device)
        return kind.evidence_kind if kind else "measured"

    def requires_signature(self, device: str) -> bool:
        """Return whether records of this model count only if a trusted key signed them."""
        kind = self.kind(device)
        return kind is None or kind.requires_signature

    def claim_device(self, device: str) -> Device | None:
        """Return the name that claims use for this model; None for an unknown model.

        "cpu" and "gpu" themselves are accepted: they stand for a claimed cell that no such device has measured.
        """
        if device in (CPU, GPU):
            return CPU if device == CPU else GPU
        kind = self.kind(device)
        return kind.claim_device if kind else None

    def find_faults(self, key: str, model: str, gpu: str | None) -> tuple[str, ...]:
        """Return why a record's device is invalid.  key: its kind.  gpu: the GPU's name in the record's stack."""
        kind = self.kinds.get(key)
        if kind is None:
            return (f"{key!r} is not a kind of device; matrix/devices has {', '.join(self.kinds)}",)
        rules = [
            ("a GPU's record names no GPU", kind.has_model_name and gpu is None),
            (f"device is {kind.name}, but the record names a GPU", not kind.has_model_name and gpu is not None),
            (f"{kind.name} has no model {model}", not kind.has_model(key, model)),
            ("the record names the virtual GPU as a card", gpu is not None and gpu.startswith(virtual_gpu.NAME)),
            (
                f"{model} is not the device of a {gpu!r}",
                kind.has_model_name and gpu is not None and device_key(gpu) != model,
            ),
        ]
        return tuple(text for text, is_violated in rules if is_violated)


def is_model(model: str, kind: str) -> bool:
    """Return whether this is the key of a model of that kind."""
    return model == kind or model.startswith(f"{kind}-")
