"""Installs the probe, a wrapper of run_op that records each op, into toyframe, a framework for tests."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from tfdeterminism.trace.capture import digest, user_frames
from tfdeterminism.trace.capture.eager_keys import CallerIdentity
from tfdeterminism.wrap import Wrappers


def install(recording: Any) -> None:
    wrappers = Wrappers()
    if recording.recorder.level == "ops":
        wrappers.wrap(sys.modules["toyframe"], "run_op", _Probe(recording.recorder))
    recording.on_installed(None, wrappers, [], {})  # no labels of variables, functions to close, or import hooks


class _Probe:
    def __init__(self, recorder: Any) -> None:
        self._recorder = recorder

    def __call__(self, original: Callable[..., Any], name: str, *inputs: Any) -> Any:
        output, stack = original(name, *inputs), user_frames.stack_of_caller()
        fed = [self._key_of(value, stack) for value in inputs]
        attributes = {"uninitialized": True} if name == "Empty" else {}
        self._record(output, name, stack, fed, "op", attributes)
        return output

    def _key_of(self, tensor: Any, stack: list[Any]) -> int:
        if not hasattr(tensor, "key"):
            self._record(tensor, "Python", stack, [], "feed", {})  # no op made it: a value from Python
        return tensor.key

    def _record(
        self, tensor: Any, op: str, stack: list[Any], fed: list[int], kind: str, attributes: dict[str, Any]
    ) -> None:
        eager, caller = self._recorder.eager, CallerIdentity("", 0, "", 0)  # the main thread, no replica, no graph
        nth = eager.next_occurrence(op, tuple(stack[0][:2]) if stack else ())
        tensor.key = eager.key(op, stack, 0, caller, fed, nth, kind=kind, dtype="float32", attrs=attributes)
        self._recorder.emit_one(tensor.key, digest.digest_array(tensor.value), digest.digest_shape(tensor.value.shape))
