"""What a Python does that a traced program has started: it records as its parent was told to."""

import atexit
import json
import os

from . import apply_fixes, recording
from .child_processes import VARIABLE
from .identity import ProcessIdentity


def begin():
    """Called by the hook in a Python that a traced program has started, just before it imports a framework."""
    if VARIABLE not in os.environ or recording.is_recording():
        return
    told = json.loads(os.environ[VARIABLE])
    replaced = told["pid"] == os.getpid()
    identity = ProcessIdentity.called(told["identity"]["parent"]) if replaced else ProcessIdentity(**told["identity"])
    made = recording.Recording(told["out"], told["level"], told["steps"], told["capture"], told["xla"], told["values"],
                               identity, apply=told["apply"])
    made.start()
    apply_fixes.apply(told["apply"])
    atexit.register(made.stop)
