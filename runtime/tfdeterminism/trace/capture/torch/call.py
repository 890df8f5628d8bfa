"""Records one call of an op: its inputs and its outputs."""

import torch

from .. import digest, pool_tasks, user_frames
from ..eager_keys import CallerIdentity
from . import digests, ops, tensor_provenance
from . import internals as pt
from .memory import covers_storage, is_contiguous_storage

_MAX_IDENTITIES = 4096
_identities = {}  # by the names of threads


class DispatchedOp(object):
    """One call of an op, before it runs. probe: the dispatch.OpDispatchMode that intercepted it."""

    __slots__ = ("_probe", "_recorder", "_op", "_args", "_kwargs", "_tensors", "_who", "_place", "_nth", "_told",
                 "_inputs", "_inputs_kept")

    def __init__(self, probe, op, args, kwargs):
        self._probe, self._recorder, self._op = probe, probe.recorder, op
        self._args, self._kwargs = args, kwargs
        self._tensors = pt.tensors_in((args, kwargs) if kwargs else args)
        self._who = caller_identity()
        self._place = user_frames.location_of_caller()
        self._nth = None if op.is_view else self._recorder.eager.next_occurrence(self._who, op.name, self._place)
        self._told = None  # the key of its arguments that are Python numbers
        self._inputs = self._input_keys()
        self._inputs_kept = None if probe.capture is None or op.is_view else self._capture_inputs()

    def on_result(self, result):
        if self._op.is_view:
            self._record_view(result)
        else:
            self._record_output(self._op.outputs(self._args, self._kwargs, result), result)

    def _input_keys(self):
        """Keys of its inputs."""
        given = self._tensors
        if not self._op.reads_all:
            unread = {id(one) for one in self._op.ignored_inputs(self._args, self._kwargs)}
            given = [one for one in given if id(one) not in unread]
        found = []  # type: list[int]
        for tensor in given:
            found += self._keys(tensor)
        parts = [one for one in given if not is_contiguous_storage(one)]
        if parts or ops.has_numbers(self._args) or self._kwargs and ops.has_numbers(self._kwargs.values()):
            if given is not self._tensors:
                parts = [one for one in self._tensors if not is_contiguous_storage(one)]
            self._told = self._numbers(found, parts)
            found.append(self._told)
        return found

    def _keys(self, tensor):
        """Keys of the ops that wrote this tensor; a tensor that no recorded op wrote is recorded now."""
        view = getattr(tensor, "_tfdet_view", None)
        through = [view[1]] if view is not None and view[0] is self._recorder else []  # type: list[int]
        memory = self._probe.memories.find(tensor)
        if memory is None:
            known = getattr(tensor, "_tfdet_key", None)
            return through + ([known[1]] if known is not None and known[0] is self._recorder else [])
        if not memory.keys:
            memory.keys = [self._unrecorded_key(tensor, memory)]
            memory.may_change_unseen = memory.origin is None
        if (memory.may_change_unseen or memory.origin is not None) and not self._op.is_view:  # a view reads nothing
            self._find_origin(tensor, memory)
            memory.may_change_unseen = memory.origin is None
        return memory.keys + through if through else memory.keys

    def _unrecorded_key(self, tensor, memory):
        """The key of a value that no recorded op produced."""
        if memory.origin is not None:
            return self._key(memory.origin[0], 0, [], tensor, stack=memory.origin[1], kind="op",
                             attrs={"preexisting": True})
        source, kind, stack, attrs = getattr(tensor, "_tfdet_from", None) or \
            ("Python", "feed", user_frames.stack_of_caller(), {})
        return self._key(source, 0, [], tensor, stack=stack, kind=kind, attrs=attrs)

    def _find_origin(self, tensor, memory):
        read = memory.key_and_digest(tensor, self._recorder.eager)
        if read is not None:
            self._emit(read[0], tensor, read[1])

    def _numbers(self, fed, parts):
        """The key of what Python tells this op beside its tensors. It may come of what Python was told before. parts:
        those of its tensors that show a part of a memory, as nothing else says which."""
        told = self._probe.host_reads.latest_keys()
        key = self._key("Python", 0, fed + told if told else fed, None, kind="feed")
        said = ops.plain_arguments(self._args), ops.plain_arguments(self._kwargs), list(map(_form, parts))
        self._recorder.emit_one(key, digest.digest_bytes(repr(said).encode("utf-8", "backslashreplace")))
        return key

    def _record_view(self, result):
        """Record a view, so that its users depend on the numbers that define it."""
        told = [] if self._told is None else [self._told]
        inherited = [one._tfdet_view[1] for one in self._tensors
                     if hasattr(one, "_tfdet_view") and one._tfdet_view[0] is self._recorder]
        for key in (told + inherited)[:1]:
            for tensor in pt.tensors_in(result):
                tensor._tfdet_view = tensor_provenance.Provenance((self._recorder, key))

    def _record_output(self, made, result):
        keys = []
        for number, tensor in enumerate(made):
            memory = self._probe.memories.find(tensor)
            nobodys = self._op.is_empty or len(made) > 1 and self._is_workspace(tensor)
            key = self._key(self._op.name, number, self._inputs, tensor,
                            attrs={"uninitialized": True} if nobodys else None)
            keys.append(key)
            if memory is None:
                tensor._tfdet_key = tensor_provenance.Provenance((self._recorder, key))
            else:
                memory.on_write(key, covers_storage(tensor), self._op)
                if memory.uninitialized_key is not None and self._op.is_async:  # what is read here may be nobody's
                    self._recorder.eager.add_attrs(key, uninitialized=True)
            if memory is None or not self._op.is_async:
                self._emit(key, tensor, digests.digest_tensor(tensor), number)
        if not made and isinstance(result, (bool, int, float, complex)):
            keys.append(self._key(self._op.name, 0, self._inputs, None))
            self._probe.host_reads.record_scalar(keys[0], result)
        if keys:
            self._probe.gradients.on_op_run(keys[0])
            if self._inputs_kept is not None:
                self._probe.capture.save(keys[0], self._inputs_kept)

    def _is_workspace(self, tensor):
        """Bytes beside other outputs, of no bytes: what a kernel keeps for its gradient, of which it fills a part."""
        return tensor.dtype is torch.uint8 and not any(one.dtype is torch.uint8 for one in self._tensors)

    def _capture_inputs(self):
        """What replay needs, before the op may write into it."""
        place = "{}:{}".format(*self._place) if self._place else "?"
        node = "{}@{}#{}".format(self._op.name, place, self._nth)
        return self._probe.capture.snapshot(node, self._op.name, self._args, self._kwargs)

    def _key(self, op, output, inputs, tensor, stack=None, kind=None, attrs=None):
        eager, place = self._recorder.eager, self._place
        if stack is not None:
            place = tuple(stack[0][:2]) if stack else ()
        nth = self._nth if op == self._op.name else eager.next_occurrence(self._who, op, place)
        known = eager.find_known((self._who, op, place, nth, output), inputs)
        if known is not None:
            return known

        def more():
            probed = tensor is not None
            forward, forward_stack = self._probe.gradients.forward_op()
            return dict(kind=kind or self._op.kind, attrs=attrs or {}, dtype=digests.dtype_of(tensor) if probed else "",
                        device=str(tensor.device) if probed else "", layer=self._probe.modules.current_path(),
                        forward=forward, forward_stack=forward_stack)

        return eager.key_at(op, place, output, self._who, inputs, nth,
                        user_frames.stack_of_caller if stack is None else lambda: stack, more)

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


def _form(tensor):
    return tensor.storage_offset(), tuple(tensor.shape), tensor.stride()


def caller_identity():
    """The CallerIdentity of this thread."""
    name = pool_tasks.thread_name()
    found = _identities.get(name)
    if found is None:
        if len(_identities) > _MAX_IDENTITIES:
            _identities.clear()
        found = _identities[name] = CallerIdentity(name, 0, "", 0)
    return found
