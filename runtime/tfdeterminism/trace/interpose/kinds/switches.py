"""Kernels that have a deterministic form.

Pinned: the framework's switches. They remove other nondeterminism, too, so that finer pins are preferred.
Cannot be pinned: at a line. Example: an op that adds floats by several threads.
"""

from .base import Kind


class Switches(Kind):
    name, label, coarseness, has_places = "switches", "kernels that have a deterministic form", 3, False
    environment = {
        "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
        "TF_DETERMINISTIC_OPS": "1",
        "TF_CUDNN_DETERMINISTIC": "1",
    }
