"""Puts all probes into a PyTorch that has just been imported."""

import os
import threading

from ....wrap import Wrappers
from ..input_capture import InputCapture
from . import compiled, tensor_provenance
from .dispatch import OpDispatchMode
from .gradients import Gradients
from .host_reads import HostReads
from .input_capture import TorchInputCapture
from .levels import Levels
from .loaders import DataLoaderHook
from .memory import StorageRegistry
from .modules import ModulePaths
from .saved import TorchLoadHook
from .weights import Weights


def install(recording):
    """recording: a recording.Recording whose recorder was just made."""
    recorder, wrappers = recording.recorder, Wrappers()
    modules = ModulePaths(recorder, wrappers)
    weights = Weights(recorder, modules, wrappers)
    closers, wanted = [], {}
    if not recording.xla:
        compiled.switch_off(recorder, wrappers)
    if recorder.level != "none":
        memories = StorageRegistry()
        gradients = Gradients(recorder, memories, wrappers)
        Levels(recorder, weights, gradients, modules, closers)
        if recorder.level == "ops":
            capture = None
            if recording.captures_inputs():
                capture = TorchInputCapture(InputCapture(recorder, recording.capture))
            tensor_provenance.hide_on_save(wrappers)
            TorchLoadHook(recorder, wrappers)
            told = HostReads(recorder, memories, wrappers)
            dispatch = OpDispatchMode(recorder, memories, told, gradients, modules, capture)
            closers.append(_in_every_thread(dispatch, wrappers))
            wanted = {"torch.utils.data.dataloader": DataLoaderHook(recorder, wrappers).install}
    wrappers.wrap(os, "_exit", lambda original, status: recording.end_and_exit(original, status))
    recording.on_installed(weights, wrappers, closers, wanted)


def _in_every_thread(mode, wrappers):
    """Enter the mode here and in all threads that come: PyTorch keeps modes by thread. A function that leaves it."""
    def start(original, thread):
        def run():
            with mode:
                return body()

        body, thread.run = thread.run, run
        return original(thread)

    wrappers.wrap(threading.Thread, "start", start)
    mode.__enter__()
    return lambda: mode.__exit__(None, None, None)
