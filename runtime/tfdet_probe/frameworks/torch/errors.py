"""What an exception of PyTorch means: raises, unsupported or crashed."""

import re

from tfdet_probe.frameworks.base import by_words

# Its own refusals, and cuBLAS's where its workspace is not set.
_DETERMINISM = re.compile(r"does not have a deterministic implementation|[Dd]eterministic behavior was enabled")
_NO_KERNEL = re.compile(r"not implemented for '|has no attribute '|[Nn]ot (currently |yet )?(implemented|supported)"
                        r"|[Cc]ould not run '|only supported on (CUDA|GPU)")


def classify(error):
    found = by_words(error, _DETERMINISM, _NO_KERNEL)
    return "unsupported" if found == "crashed" and _of_compiler(error) else found


def said(error):
    return "torch.compile cannot take it: {}".format(error) if _of_compiler(error) else str(error)


def _of_compiler(error):
    """Is it what torch.compile says of what it cannot take?"""
    return any(kind.__module__.startswith(("torch._dynamo.", "torch._inductor.")) for kind in type(error).__mro__)
