"""The record of one call of an op: its inputs and its outputs."""

import torch

from .. import digest, pool_tasks, user_frames
from ..eager_keys import CallerIdentity
from . import digests, ops, tensor_provenance
from . import internals as pt
from .storage import covers_storage, is_contiguous_storage

_MAX_IDENTITIES = 4096
_identities = {}  # {name of a thread: CallerIdentity}


class DispatchedOp(object):
    """One call of an op, before it runs.

    probe: the dispatch.OpDispatchMode that intercepted it; op: an ops.OpSchema. A key is the id of an op's output in
    the trace. A `storage` is a storage.StorageProvenance: the keys of the ops that wrote a tensor's storage, and its
    origin, (op, stack) of what made it before recording began. Attributes of a tensor:
    _tfdet_key, of one without storage: (recorder, key); _tfdet_view: (recorder, key of the numbers that define the
    view); _tfdet_from: (op, kind, stack, attributes) of a value that comes from a file or a DataLoader.
    """

    __slots__ = ("_probe", "_recorder", "_op", "_args", "_kwargs", "_tensors", "_caller", "_place", "_nth",
                 "_numbers_key", "_inputs", "_inputs_kept")

    def __init__(self, probe, op, args, kwargs):
        self._probe, self._recorder, self._op = probe, probe.recorder, op
        self._args, self._kwargs = args, kwargs
        self._tensors = pt.tensors_in((args, kwargs) if kwargs else args)
        self._caller = caller_identity()
        self._place = user_frames.location_of_caller()
        self._nth = None if op.is_view else self._recorder.eager.next_occurrence(self._caller, op.name, self._place)
        self._numbers_key = None  # the key of the record of its arguments that are Python numbers
        self._inputs = self._input_keys()
        self._inputs_kept = None if probe.capture is None or op.is_view else self._capture_inputs()

    def on_result(self, result):
        if self._op.is_view:
            self._record_view(result)
        else:
            self._record_output(self._op.outputs(self._args, self._kwargs, result), result)

    def _input_keys(self):
        """Return the keys of the op's inputs."""
        tensors = self._tensors
        if not self._op.reads_all:
            unread = {id(ignored) for ignored in self._op.ignored_inputs(self._args, self._kwargs)}
            tensors = [tensor for tensor in tensors if id(tensor) not in unread]
        keys, partial_views = [], []  # type: list[int], list[torch.Tensor]
        for tensor in tensors:
            keys += self._keys(tensor)
            if not is_contiguous_storage(tensor):
                partial_views.append(tensor)
        if partial_views or ops.has_numbers(self._args) or self._kwargs and ops.has_numbers(self._kwargs.values()):
            if tensors is not self._tensors:
                partial_views = [tensor for tensor in self._tensors if not is_contiguous_storage(tensor)]
            self._numbers_key = self._record_numbers(keys, partial_views)
            keys.append(self._numbers_key)
        return keys

    def _keys(self, tensor):
        """Return the keys of the ops that wrote this tensor, which is recorded now if no recorded op wrote it."""
        view = getattr(tensor, "_tfdet_view", None)
        view_keys = [view[1]] if view is not None and view[0] is self._recorder else []  # type: list[int]
        storage = self._probe.storages.find(tensor)
        if storage is None:
            provenance = getattr(tensor, "_tfdet_key", None)
            return view_keys + ([provenance[1]] if provenance is not None and provenance[0] is self._recorder else [])
        if not storage.keys:
            storage.keys = [self._unrecorded_key(tensor, storage)]
            storage.may_change_unseen = storage.origin is None
        may_be_unrecorded = storage.may_change_unseen or storage.origin is not None
        if may_be_unrecorded and not self._op.is_view:  # a view reads nothing
            self._record_if_changed(tensor, storage)
            storage.may_change_unseen = storage.origin is None
        return storage.keys + view_keys if view_keys else storage.keys

    def _unrecorded_key(self, tensor, storage):
        """Return the key of a value that no recorded op produced."""
        if storage.origin is not None:
            return self._key(storage.origin[0], 0, [], tensor, stack=storage.origin[1], kind="op",
                             attrs={"preexisting": True})
        source, kind, stack, attrs = getattr(tensor, "_tfdet_from", None) or \
            ("Python", "feed", user_frames.stack_of_caller(), {})
        return self._key(source, 0, [], tensor, stack=stack, kind=kind, attrs=attrs)

    def _record_if_changed(self, tensor, storage):
        """Record a tensor's value unless it is that of the last read: code that is not recorded may have written it."""
        read = storage.key_and_digest(tensor, self._recorder.eager)
        if read is not None:
            self._emit(read[0], tensor, read[1])

    def _record_numbers(self, fed, partial_views):
        """Record the op's arguments that are not tensors, and return the key of this record.

        Such arguments may depend on earlier host reads. fed: keys of the input tensors; partial_views: the input
        tensors that are a part of a storage, whose layout is recorded as well.
        """
        host_read_keys = self._probe.host_reads.latest_keys()
        key = self._key("Python", 0, fed + host_read_keys if host_read_keys else fed, None, kind="feed")
        layouts = [_layout_of(tensor) for tensor in partial_views]
        arguments = ops.plain_arguments(self._args), ops.plain_arguments(self._kwargs), layouts
        self._recorder.emit_one(key, digest.digest_bytes(repr(arguments).encode("utf-8", "backslashreplace")))
        return key

    def _record_view(self, result):
        """Record a view, so that its users depend on the numbers that define it."""
        number_keys = [] if self._numbers_key is None else [self._numbers_key]
        inherited = [tensor._tfdet_view[1] for tensor in self._tensors
                     if hasattr(tensor, "_tfdet_view") and tensor._tfdet_view[0] is self._recorder]
        for key in (number_keys + inherited)[:1]:
            for tensor in pt.tensors_in(result):
                tensor._tfdet_view = tensor_provenance.Provenance((self._recorder, key))

    def _record_output(self, tensors, result):
        keys = []
        for number, tensor in enumerate(tensors):
            storage = self._probe.storages.find(tensor)
            is_uninitialized = self._op.is_empty or len(tensors) > 1 and self._is_workspace(tensor)
            key = self._key(self._op.name, number, self._inputs, tensor,
                            attrs={"uninitialized": True} if is_uninitialized else None)
            keys.append(key)
            if storage is None:
                tensor._tfdet_key = tensor_provenance.Provenance((self._recorder, key))
            else:
                storage.on_write(key, covers_storage(tensor), self._op)
                if storage.uninitialized_key is not None and self._op.is_written_later:  # it may read unwritten memory
                    self._recorder.eager.add_attrs(key, uninitialized=True)
            if storage is None or not self._op.is_written_later:
                self._emit(key, tensor, digests.digest_tensor(tensor), number)
        if not tensors and isinstance(result, (bool, int, float, complex)):
            keys.append(self._key(self._op.name, 0, self._inputs, None))
            self._probe.host_reads.record_scalar(keys[0], result)
        if keys:
            self._probe.gradients.on_op_run(keys[0])
            if self._inputs_kept is not None:
                self._probe.capture.save(keys[0], self._inputs_kept)

    def _is_workspace(self, tensor):
        """Return whether an output is a workspace: bytes of which a kernel fills a part for its gradient."""
        return tensor.dtype is torch.uint8 and not any(argument.dtype is torch.uint8 for argument in self._tensors)

    def _capture_inputs(self):
        """Return what replay needs, before the op may write into its inputs."""
        place = "{}:{}".format(*self._place) if self._place else "?"
        node = "{}@{}#{}".format(self._op.name, place, self._nth)
        return self._probe.capture.snapshot(node, self._op.name, self._args, self._kwargs)

    def _key(self, op, output, inputs, tensor, stack=None, kind=None, attrs=None):
        eager, place = self._recorder.eager, self._place
        if stack is not None:
            place = tuple(stack[0][:2]) if stack else ()
        nth = self._nth if op == self._op.name else eager.next_occurrence(self._caller, op, place)
        known_key = eager.find_known((self._caller, op, place, nth, output), inputs)
        if known_key is not None:
            return known_key

        def make_fields():
            has_tensor = tensor is not None
            forward, forward_stack = self._probe.gradients.forward_op()
            return dict(kind=kind or self._op.kind, attrs=attrs or {},
                        dtype=digests.dtype_of(tensor) if has_tensor else "",
                        device=str(tensor.device) if has_tensor else "", layer=self._probe.modules.current_path(),
                        forward=forward, forward_stack=forward_stack)

        return eager.key_at(op, place, output, self._caller, inputs, nth,
                            user_frames.stack_of_caller if stack is None else lambda: stack, make_fields)

    def _emit(self, key, tensor, value, output=0):
        if value is None:
            return
        self._recorder.emit_one(key, value, digest.digest_shape(tensor.shape))
        self._recorder.mark_loaded(key, value)
        if self._recorder.values is not None:
            node, _ = self._recorder.eager.describe(key)
            for entry in self._recorder.values.entries_for("", 0, node):
                if entry["output"] == output:
                    self._recorder.values.record_op(entry, key, digests.array_of(tensor))


def _layout_of(tensor):
    return tensor.storage_offset(), tuple(tensor.shape), tensor.stride()


def caller_identity():
    """Return the CallerIdentity of this thread."""
    name = pool_tasks.thread_name()
    identity = _identities.get(name)
    if identity is None:
        if len(_identities) > _MAX_IDENTITIES:
            _identities.clear()
        identity = _identities[name] = CallerIdentity(name, 0, "", 0)
    return identity
