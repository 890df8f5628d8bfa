"""The attributes in which the probes store the origin of a tensor. They are removed when a tensor is saved."""

import torch

_NAMES = frozenset(("_tfdet_view", "_tfdet_key", "_tfdet_from"))


class Provenance(tuple):
    """(recorder, key). A deep copy of a tensor shares it, because a recorder must not be copied."""

    def __deepcopy__(self, memo):
        return self


def hide_on_save(wrappers):
    """Remove the attributes of the probes from what PyTorch saves of a tensor."""
    if hasattr(torch._utils, "_get_obj_state"):
        wrappers.wrap(torch._utils, "_get_obj_state", lambda original, value: _strip_attributes(original(value)))


def _strip_attributes(state):
    if isinstance(state, dict):
        return {name: value for name, value in state.items() if name not in _NAMES} or None
    if isinstance(state, tuple) and state and isinstance(state[0], dict):
        return (_strip_attributes(state[0]),) + state[1:]
    return state
