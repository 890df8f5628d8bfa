"""Which CUDA kernels a case launches, where the profiler tells: it needs CUPTI, and TensorFlow from 2.2."""

import glob
import os
import shutil
import tempfile

from tfdet_probe.frameworks.base import launched


def kernels(tf, run):
    """The names of the kernels that run() launches, sorted; None where nothing can tell.  Never an error."""
    try:
        space = _space(tf, run)
    except Exception:  # a profiler that does not work is no reason to measure nothing
        return None
    return None if space is None else names(space)


def names(space):
    """Of an XSpace: what ran on the planes of GPUs, without what only moved memory."""
    found = set()
    for plane in space.planes:
        if not plane.name.startswith("/device:GPU"):
            continue
        streams = [line for line in plane.lines if line.name.lower().startswith("stream")]
        for line in streams:
            found.update(plane.event_metadata[event.metadata_id].name for event in line.events)
    return launched(found)


def _space(tf, run):
    profiler = getattr(getattr(tf, "profiler", None), "experimental", None)
    if profiler is None or not hasattr(profiler, "start"):
        return None
    folder = tempfile.mkdtemp(prefix="tfdet-profile-")
    try:
        profiler.start(folder)
        try:
            run()
        finally:
            profiler.stop()
        (path,) = glob.glob(os.path.join(folder, "plugins", "profile", "*", "*.xplane.pb"))
        with open(path, "rb") as source:
            return _xplane().XSpace.FromString(source.read())
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _xplane():
    """Its description has moved twice."""
    try:
        from tensorflow.tsl.profiler.protobuf import xplane_pb2
    except ImportError:
        try:
            from tensorflow.core.profiler.protobuf import xplane_pb2
        except ImportError:
            from tsl.profiler.protobuf import xplane_pb2
    return xplane_pb2
