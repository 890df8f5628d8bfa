"""The traits of PyTorch's ops by their names, without importing PyTorch."""

import re

from ...schema import traits

_COPIES = re.compile(r"aten\.(clone|_to_copy|copy_|contiguous|cat|stack|_foreach_copy_)\.|Tensor\.numpy|_?c10d")
_RECEIVES = re.compile(r"_?c10d")


def traits_of(op_type):
    """Return the traits of an op type."""
    op_traits = set()
    if _COPIES.match(op_type):
        op_traits.add(traits.COPIES)
    if _RECEIVES.match(op_type):
        op_traits.add(traits.RECEIVES)
    if op_type == "torch.load":
        op_traits.add(traits.LOADS)
    return op_traits
