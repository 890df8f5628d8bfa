"""Classify JAX's exceptions: raises (JAX refuses nondeterminism), unsupported or crashed."""

import re

from tfdet_probe.frameworks.base import classify_by_text

# XLA's messages about ops without a deterministic implementation.
_DETERMINISM = re.compile(r"[Dd]eterministic (ops|implementation)|not deterministic|nondeterministic")
# The virtual GPU is this project's emulator of a GPU (vgpu/).
_NO_KERNEL = re.compile(r"UNIMPLEMENTED|is not (supported )?on the virtual GPU")


def classify(error):
    return classify_by_text(error, refusal=_DETERMINISM, no_kernel=_NO_KERNEL)
