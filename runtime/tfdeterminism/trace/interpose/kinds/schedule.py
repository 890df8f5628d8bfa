"""The order in which the virtual GPU executes a kernel's threads.

Pinned: from outside, by VGPU_SCHEDULE. Cannot be pinned: at a line; on a card.
Example: ``torch.index_add`` on "cuda".
"""

from .base import Kind


class Schedule(Kind):
    name, label, coarseness, has_places = "schedule", "the order in which the device executes threads", 3, False
    environment = {"VGPU_SCHEDULE": "serial"}
