"""What is noted on tensors, in attributes of theirs. It is of this process alone: nothing that is saved has it."""

import torch

_NAMES = frozenset(("_tfdet_view", "_tfdet_key", "_tfdet_from"))


class Provenance(tuple):
    """(recorder, key). A copy of a tensor has the same: a recorder is not to be copied."""

    def __deepcopy__(self, memo):
        return self


def hide_on_save(wrappers):
    """What PyTorch saves of a tensor's attributes are the program's own."""
    if hasattr(torch._utils, "_get_obj_state"):
        wrappers.wrap(torch._utils, "_get_obj_state", lambda original, value: _without(original(value)))


def _without(state):
    if isinstance(state, dict):
        return {name: value for name, value in state.items() if name not in _NAMES} or None
    if isinstance(state, tuple) and state and isinstance(state[0], dict):
        return (_without(state[0]),) + state[1:]
    return state
