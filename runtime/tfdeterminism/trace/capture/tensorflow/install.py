"""Puts all probes into a TensorFlow that has just been imported."""

import os

from ..inputs import Capture
from . import exports, xla
from .eager import Eager
from .functions import Functions
from .gradients import Gradients
from .graphs import hide_additions
from .keys import Keys
from .labels import Labels
from .levels import Levels
from .patches import Patches
from .session_weights import SessionWeights
from .sessions import Sessions


def install(recording):
    """recording: a recording.Recording whose recorder was just made."""
    recorder, patches = recording.recorder, Patches()
    weights = SessionWeights(recorder, patches)
    labels = Labels(recorder, weights, patches)
    keys = Keys(recorder, labels)
    capture = Capture(recorder, recording.capture) if recording.capture else None
    Sessions(recorder, keys, weights, capture, patches)
    closers, wanted = [], {}
    hide_additions(patches)
    exports.leave_probes_out()
    if not recording.xla:
        xla.switch_off(recorder, patches)
    if recorder.level != "none":
        exports.hide_saving(recorder, patches)
        Functions(recorder, keys, capture, patches)
        closers.append(Eager(recorder, keys, labels, capture, patches).close)
        closers.append(Gradients(recorder).close)
        wanted = Levels(recorder, keys, labels, weights, patches).modules()
    patches.wrap(os, "_exit", lambda original, status: _exit(recording, original, status))
    recording.installed(labels, patches, closers, wanted)


def _exit(recording, original, status):
    """os._exit skips what Python does at its end: the trace is ended first."""
    try:
        recording.stop(exit_status=status)
    finally:
        original(status)
