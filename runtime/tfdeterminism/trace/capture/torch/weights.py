"""The trained tensors: parameters of optimizers, or, without an optimizer, leaves with their gradients."""

import gc
import itertools
import weakref

import torch
from torch.optim import optimizer as optimizers

from .. import digest
from . import digests


class Weights(object):
    """The trained tensors of a process. modules: a modules.ModulePaths, which knows names of parameters."""

    def __init__(self, recorder, modules, wrappers):
        self._recorder, self._modules = recorder, modules
        self._optimizers = []  # weak references
        self._inherited = set()  # numbers of the optimizers that the parent of this fork made, and the fork did not use
        self._final = {}       # {label: digest} of the parameters of freed optimizers
        wrappers.wrap(torch.optim.Optimizer, "__init__", self._on_optimizer_created)

    def _on_optimizer_created(self, original, optimizer, *args, **kwargs):
        original(optimizer, *args, **kwargs)
        number = len(self._optimizers)
        self._optimizers.append(weakref.ref(optimizer))
        groups = optimizer.param_groups  # kept alive until the finalizer below has run
        weakref.finalize(optimizer, self._on_optimizer_freed, number, groups).atexit = False

    def _on_optimizer_freed(self, number, groups):
        if self._recorder.active and number not in self._inherited:
            with self._recorder.unrecorded():
                self._final.update(_digests(self._label_tensors([(number, groups)])))

    def trained_values(self):
        """Return {label: array} of the trained tensors."""
        with self._recorder.unrecorded():
            return {label: digests.array_of(tensor) for label, tensor in self._label_tensors(self._live_groups())}

    def trained_digests(self):
        """Return {label: digest} of the trained tensors."""
        with self._recorder.unrecorded():
            return _digests(self._label_tensors(self._live_groups()))

    def final_digests(self):
        """Return {label: digest} of all trained tensors; those of freed optimizers as they were last."""
        return dict(self._final, **self.trained_digests())

    def on_fork(self):
        """Disregard the parent's optimizers in a fork, unless it uses them."""
        self._final = {}
        self._inherited = set(range(len(self._optimizers)))
        optimizers.register_optimizer_step_post_hook(self._on_step)

    def _on_step(self, optimizer, args, kwargs):
        self._inherited -= {number for number in self._inherited if self._optimizers[number]() is optimizer}

    def _live_groups(self):
        live = [(number, reference()) for number, reference in enumerate(self._optimizers)
                if number not in self._inherited]
        groups = [(number, optimizer.param_groups) for number, optimizer in live if optimizer is not None]
        return groups or ([] if self._optimizers else [(0, [{"params": _leaves()}])])

    def _label_tensors(self, groups):
        """Yield (label, tensor) of each parameter once."""
        ids = set()
        for number, param_groups in groups:
            for index, tensor in enumerate(itertools.chain.from_iterable(group["params"] for group in param_groups)):
                if id(tensor) not in ids:
                    ids.add(id(tensor))
                    yield self._modules.name_of(tensor) or "optimizer{}.{}".format(number, index), tensor


def _leaves():
    """Return the tensors that a program without an optimizer trains, in the order of their shapes, and their gradients.

    The gradients are included because a program that trains nothing may compute them for their own sake.
    """
    leaves = [candidate for candidate in gc.get_objects()
              if issubclass(type(candidate), torch.Tensor) and candidate.is_leaf and candidate.grad is not None]
    leaves.sort(key=lambda leaf: (tuple(leaf.shape), str(digests.digest_tensor(leaf))))
    return [tensor for leaf in leaves for tensor in (leaf, leaf.grad)]


def _digests(labeled_tensors):
    digests_by_label = {}
    for label, tensor in labeled_tensors:
        value = digests.digest_tensor(tensor)
        digests_by_label[label] = digest.digest_array(digests.array_of(tensor)) if value is None else value
    return digests_by_label
