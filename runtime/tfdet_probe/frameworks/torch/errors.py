"""Classify PyTorch's exceptions: raises, unsupported or crashed."""

import re

from tfdet_probe.frameworks.base import classify_by_text

# PyTorch refuses nondeterminism, also of cuBLAS without CUBLAS_WORKSPACE_CONFIG.
_DETERMINISM = re.compile(r"does not have a deterministic implementation|[Dd]eterministic behavior was enabled")
_NO_KERNEL = re.compile(r"not implemented for '|has no attribute '|[Nn]ot (currently |yet )?(implemented|supported)"
                        r"|[Cc]ould not run '|only supported on (CUDA|GPU)")


def classify(error):
    kind = classify_by_text(error, refusal=_DETERMINISM, no_kernel=_NO_KERNEL)
    return "unsupported" if kind == "crashed" and _is_compiler_error(error) else kind


def error_text(error):
    return "torch.compile cannot take it: {}".format(error) if _is_compiler_error(error) else str(error)


def _is_compiler_error(error):
    """Whether torch.compile raised it."""
    return any(base.__module__.startswith(("torch._dynamo.", "torch._inductor.")) for base in type(error).__mro__)
