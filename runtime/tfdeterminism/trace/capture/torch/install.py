"""The installation of all probes into PyTorch, just after it was imported."""

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
from .modules import ModulePaths
from .saved import TorchLoadHook
from .storage import StorageRegistry
from .weights import Weights


def install(recording):
    """Install the probes. recording: a recording.Recording with a new recorder."""
    recorder, wrappers = recording.recorder, Wrappers()
    modules = ModulePaths(recorder, wrappers)
    weights = Weights(recorder, modules, wrappers)
    closers, import_hooks = [], {}
    if not recording.xla:
        compiled.switch_off(recorder, wrappers)
    if recorder.level != "none":
        storages = StorageRegistry()
        gradients = Gradients(recorder, storages, wrappers)
        Levels(recorder, weights, gradients, modules, closers)
        if recorder.level == "ops":
            capture = None
            if recording.captures_inputs():
                capture = TorchInputCapture(InputCapture(recorder, recording.capture))
            tensor_provenance.hide_on_save(wrappers)
            TorchLoadHook(recorder, wrappers)
            host_reads = HostReads(recorder, storages, wrappers)
            dispatch = OpDispatchMode(recorder, storages, host_reads, gradients, modules, capture)
            closers.append(_enter_in_every_thread(dispatch, wrappers))
            import_hooks = {"torch.utils.data.dataloader": DataLoaderHook(recorder, wrappers).install}
    wrappers.wrap(os, "_exit", lambda original, status: recording.end_and_exit(original, status))
    recording.on_installed(weights, wrappers, closers, import_hooks)


def _enter_in_every_thread(mode, wrappers):
    """Enter the mode in this thread and in all later threads, and return the function that leaves it here.

    PyTorch keeps modes by thread.
    """
    def start(original, thread):
        def run():
            with mode:
                return body()

        body, thread.run = thread.run, run
        return original(thread)

    wrappers.wrap(threading.Thread, "start", start)
    mode.__enter__()
    return lambda: mode.__exit__(None, None, None)
