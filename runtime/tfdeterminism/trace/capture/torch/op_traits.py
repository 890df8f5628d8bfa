"""The traits of PyTorch's ops, by their names: no PyTorch is needed to know them."""

import re

from ...schema import traits

_COPIES = re.compile(r"aten\.(clone|_to_copy|copy_|contiguous|cat|stack|_foreach_copy_)\.|Tensor\.numpy|_?c10d")
_RECEIVES = re.compile(r"_?c10d")


def traits_of(op_type):
    """The traits of an op type."""
    found = set()
    if _COPIES.match(op_type):
        found.add(traits.COPIES)
    if _RECEIVES.match(op_type):
        found.add(traits.RECEIVES)
    if op_type == "torch.load":
        found.add(traits.LOADS)
    return found
