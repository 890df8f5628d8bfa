"""The trained tensors: parameters of optimizers, or, without an optimizer, leaves with their gradients.

A leaf is a tensor for which autograd computes a gradient, and which no op has computed.
"""

import gc
import itertools
import threading
import weakref

import torch
from torch.optim import optimizer as optimizers

from .. import digest
from . import digests
from . import internals as pt


class Weights(object):
    """The trained tensors of a process. modules: a modules.ModulePaths, which knows names of parameters."""

    def __init__(self, recorder, modules, wrappers):
        self._recorder, self._modules = recorder, modules
        self._optimizers = []  # weak references
        self._inherited = set()  # numbers of the optimizers that the parent of this fork made, and the fork did not use
        self._final = {}       # {label: digest} of the parameters of freed optimizers
        self._last_leaves = {}  # {thread: the leaves of its last gradient}, while the program has no optimizer
        wrappers.wrap(torch.optim.Optimizer, "__init__", self._on_optimizer_created)
        wrappers.wrap(torch.autograd, "backward", self._on_gradient)
        wrappers.wrap(torch.autograd, "grad", self._on_gradient)

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

    def _on_gradient(self, original, *args, **kwargs):
        """Keep the leaves, which a function without an optimizer frees when it returns."""
        if not self._optimizers and self._recorder.active:
            self._last_leaves[threading.get_ident()] = list(_leaves_of(pt.differentiated(args, kwargs)))
        return original(*args, **kwargs)

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
        self._final, self._last_leaves = {}, {}
        self._inherited = set(range(len(self._optimizers)))
        optimizers.register_optimizer_step_post_hook(self._on_step)

    def _on_step(self, optimizer, args, kwargs):
        self._inherited -= {number for number in self._inherited if self._optimizers[number]() is optimizer}

    def _live_groups(self):
        live = [(number, reference()) for number, reference in enumerate(self._optimizers)
                if number not in self._inherited]
        groups = [(number, optimizer.param_groups) for number, optimizer in live if optimizer is not None]
        return groups or ([] if self._optimizers else [(0, [{"params": self._leaves()}])])

    def _leaves(self):
        """Return the tensors that a program without an optimizer trains, sorted by shape, each with its gradient.

        The gradients are included because a program that trains nothing may compute them for their own sake.
        """
        leaves = {id(leaf): leaf for kept in list(self._last_leaves.values()) for leaf in kept}
        leaves.update((id(candidate), candidate) for candidate in gc.get_objects() if _is_leaf_with_gradient(candidate))
        ordered = sorted(leaves.values(), key=lambda leaf: (tuple(leaf.shape), str(digests.digest_tensor(leaf))))
        return [tensor for leaf in ordered for tensor in (leaf, leaf.grad) if tensor is not None]

    def _label_tensors(self, groups):
        """Yield (label, tensor) of each parameter once."""
        ids = set()
        for number, param_groups in groups:
            for index, tensor in enumerate(itertools.chain.from_iterable(group["params"] for group in param_groups)):
                if id(tensor) not in ids:
                    ids.add(id(tensor))
                    yield self._modules.name_of(tensor) or "optimizer{}.{}".format(number, index), tensor


def _is_leaf_with_gradient(candidate):
    return issubclass(type(candidate), torch.Tensor) and candidate.is_leaf and candidate.grad is not None


def _leaves_of(tensors):
    """Yield the leaves from which these tensors were computed."""
    nodes, seen = [tensor.grad_fn for tensor in pt.tensors_in(tensors)], set()
    while nodes:
        node = nodes.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            yield node.variable
        nodes.extend(function for function, _ in node.next_functions)


def _digests(labeled_tensors):
    digests_by_label = {}
    for label, tensor in labeled_tensors:
        value = digests.digest_tensor(tensor)
        digests_by_label[label] = digest.digest_array(digests.array_of(tensor)) if value is None else value
    return digests_by_label
