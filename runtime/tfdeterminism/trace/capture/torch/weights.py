"""What is trained: the parameters of optimizers; without any, leaves that have got a gradient, and the gradients."""

import gc
import itertools
import weakref

import torch
from torch.optim import optimizer as optimizers

from .. import digest
from . import digests


class Weights(object):
    """modules: a modules.ModulePaths, which knows names."""

    def __init__(self, recorder, modules, wrappers):
        self._recorder, self._modules = recorder, modules
        self._optimizers = []  # weak references
        self._inherited = set()  # numbers of those that the parent of this fork made, and this process never used
        self._final = {}       # label: digest of what is gone
        wrappers.wrap(torch.optim.Optimizer, "__init__", self._on_optimizer_created)

    def _on_optimizer_created(self, original, optimizer, *args, **kwargs):
        original(optimizer, *args, **kwargs)
        number = len(self._optimizers)
        self._optimizers.append(weakref.ref(optimizer))
        groups = optimizer.param_groups  # kept alive as long as the optimizer is, and this once after it
        weakref.finalize(optimizer, self._on_optimizer_freed, number, groups).atexit = False

    def _on_optimizer_freed(self, number, groups):
        if self._recorder.active and number not in self._inherited:
            with self._recorder.unrecorded():
                self._final.update(_digests(self._labelled([(number, groups)])))

    def trained_values(self):
        """{label: array} of what is trained now."""
        with self._recorder.unrecorded():
            return {label: digests.array_of(tensor) for label, tensor in self._labelled(self._alive())}

    def trained_digests(self):
        """{label: digest} of the same."""
        with self._recorder.unrecorded():
            return _digests(self._labelled(self._alive()))

    def final_digests(self):
        """{label: digest} of all, those that are gone as they were last."""
        return dict(self._final, **self.trained_digests())

    def on_fork(self):
        """In a fork: what is inherited is the parent's, unless it trains here."""
        self._final = {}
        self._inherited = set(range(len(self._optimizers)))
        optimizers.register_optimizer_step_post_hook(self._stepped)

    def _stepped(self, optimizer, args, kwargs):
        self._inherited -= {number for number in self._inherited if self._optimizers[number]() is optimizer}

    def _alive(self):
        found = [(number, one()) for number, one in enumerate(self._optimizers) if number not in self._inherited]
        groups = [(number, optimizer.param_groups) for number, optimizer in found if optimizer is not None]
        return groups or ([] if self._optimizers else [(0, [{"params": _leaves()}])])

    def _labelled(self, groups):
        """(label, tensor) of each parameter once."""
        seen = set()
        for number, one in groups:
            for place, tensor in enumerate(itertools.chain.from_iterable(group["params"] for group in one)):
                if id(tensor) not in seen:
                    seen.add(id(tensor))
                    yield self._modules.name_of(tensor) or "optimizer{}.{}".format(number, place), tensor


def _leaves():
    """Tensors that a program without an optimizer trains: in the order of their sizes, as they have no names.

    Each with its gradient: a program that trains none computes gradients for their own sake.
    """
    found = [one for one in gc.get_objects()
             if issubclass(type(one), torch.Tensor) and one.is_leaf and one.grad is not None]
    found.sort(key=lambda one: (tuple(one.shape), str(digests.digest_tensor(one))))
    return [tensor for one in found for tensor in (one, one.grad)]


def _digests(labelled):
    found = {}
    for label, tensor in labelled:
        value = digests.digest_tensor(tensor)
        found[label] = digest.digest_array(digests.array_of(tensor)) if value is None else value
    return found
