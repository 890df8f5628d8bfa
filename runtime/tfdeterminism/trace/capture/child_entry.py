"""What a Python does that a traced program has started: it records with the options of its parent."""

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
    options = json.loads(os.environ[VARIABLE])
    replaced = options["pid"] == os.getpid()
    fields = options["identity"]
    identity = ProcessIdentity.with_name(fields["parent"]) if replaced else ProcessIdentity(**fields)
    made = recording.Recording(options["out"], options["level"], options["steps"], options["capture"], options["xla"],
                               options["values"], identity, apply=options["apply"])
    made.start()
    apply_fixes.apply(options["apply"])
    atexit.register(made.stop)
