"""The installation of all probes into TensorFlow, just after it was imported."""

import os

from ....wrap import Wrappers
from . import exports, xla
from .boundary_reads import BoundaryReads
from .eager import EagerRecorder
from .functions import FunctionInstrumenter
from .gradients import Gradients
from .graph_keys import GraphOpIds
from .graphs import hide_additions
from .input_capture import TensorFlowInputCapture
from .levels import Levels
from .python_calls import PythonCalls
from .session_weights import SessionWeights
from .sessions import Sessions
from .variable_labels import VariableLabels


def install(recording):
    """Install the probes. recording: a recording.Recording with a new recorder."""
    recorder, wrappers = recording.recorder, Wrappers()
    weights = SessionWeights(recorder, wrappers)
    labels = VariableLabels(recorder, weights, wrappers)
    labels.register_existing()
    keys = GraphOpIds(recorder, labels)  # ids of the outputs of ops in graphs
    capture = TensorFlowInputCapture(recorder, recording.capture) if recording.captures_inputs() else None
    Sessions(recorder, keys, labels, weights, capture, wrappers)
    closers, import_hooks = [], {}
    hide_additions(wrappers)
    exports.strip_probes_on_export()
    if not recording.xla:
        xla.switch_off(recorder, wrappers)
    if recorder.level != "none":
        exports.skip_checkpoint_ops(recorder, wrappers)
        FunctionInstrumenter(recorder, keys, capture, wrappers)
        gradients = Gradients(recorder, wrappers)
        eager = EagerRecorder(recorder, keys, labels, capture, gradients, wrappers)
        closers.append(eager.close)
        PythonCalls(recorder, keys, eager, wrappers)
        closers.append(gradients.close)
        # It ends steps, and records what is coarser than ops: weights, losses and layers.
        import_hooks = Levels(recorder, keys, labels, wrappers).modules()
    if recorder.level == "ops":  # a write to a variable shows only where it is read
        recording.add_exit_callback(BoundaryReads(recorder, labels).on_exit)
    wrappers.wrap(os, "_exit", lambda original, status: recording.end_and_exit(original, status))
    recording.on_installed(labels, wrappers, closers, import_hooks)
