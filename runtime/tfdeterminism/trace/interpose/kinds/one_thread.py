"""The threads inside of ops.

Pinned: one thread, by environment variables. Cannot be pinned: at a line; threads that the program asks for by a call.
Example: a sum over several threads' parts.
"""

from .base import Kind


class OneThread(Kind):
    name, label, coarseness, has_places = "one-thread", "the threads inside of ops", 4, False
    environment = {
        name: "1"
        for name in (
            "OMP_NUM_THREADS",
            "MKL_NUM_THREADS",
            "OPENBLAS_NUM_THREADS",
            "TF_NUM_INTRAOP_THREADS",
            "TF_NUM_INTEROP_THREADS",
        )
    }
