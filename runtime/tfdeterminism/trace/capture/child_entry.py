"""The start of the recording in a Python process that a traced program started, with the options of its parent."""

import atexit
import json
import os

from . import apply_fixes, recording
from .child_processes import TRACE_VARIABLE
from .identity import ProcessIdentity


def begin():
    """Start recording; the sitecustomize hook calls this just before the process imports a framework."""
    if TRACE_VARIABLE not in os.environ or recording.is_recording():
        return
    options = json.loads(os.environ[TRACE_VARIABLE])
    # The same process after an exec: it keeps its name, which the options give as that of the parent.
    is_same_process = options["pid"] == os.getpid()
    fields = options["identity"]
    identity = ProcessIdentity.with_name(fields["parent"]) if is_same_process else ProcessIdentity(**fields)
    new_recording = recording.Recording(
        options["out"], options["level"], options["steps"], options["capture"], options["xla"], options["values"],
        identity, apply=options["apply"])
    new_recording.start()
    apply_fixes.apply(options["apply"])
    atexit.register(new_recording.stop)
