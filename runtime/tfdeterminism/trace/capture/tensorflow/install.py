"""Puts all probes into a TensorFlow that has just been imported."""

import os

from ....wrap import Wrappers
from . import exports, xla
from .boundary_reads import Edges
from .eager import Eager
from .functions import Functions
from .gradients import Gradients
from .graph_keys import Keys
from .graphs import hide_additions
from .input_capture import TensorFlowInputCapture
from .levels import Levels
from .python_calls import PythonCalls
from .session_weights import SessionWeights
from .sessions import Sessions
from .variable_labels import Labels


def install(recording):
    """recording: a recording.Recording whose recorder was just made."""
    recorder, wrappers = recording.recorder, Wrappers()
    weights = SessionWeights(recorder, wrappers)
    labels = Labels(recorder, weights, wrappers)
    labels.know_living()
    keys = Keys(recorder, labels)
    capture = TensorFlowInputCapture(recorder, recording.capture) if recording.captures() else None
    Sessions(recorder, keys, labels, weights, capture, wrappers)
    closers, wanted = [], {}
    hide_additions(wrappers)
    exports.leave_probes_out()
    if not recording.xla:
        xla.switch_off(recorder, wrappers)
    if recorder.level != "none":
        exports.hide_saving(recorder, wrappers)
        Functions(recorder, keys, capture, wrappers)
        gradients = Gradients(recorder, wrappers)
        eager = Eager(recorder, keys, labels, capture, gradients, wrappers)
        closers.append(eager.close)
        PythonCalls(recorder, keys, eager, wrappers)
        closers.append(gradients.close)
        wanted = Levels(recorder, keys, labels, weights, wrappers).modules()
    if recorder.level == "ops":
        recording.at_exit(Edges(recorder, labels).exit)
    wrappers.wrap(os, "_exit", lambda original, status: recording.exit(original, status))
    recording.installed(labels, wrappers, closers, wanted)
