"""The CUDA kernels that a case launches, by TensorFlow's profiler: from 2.2 on, with CUPTI."""

import glob
import os
import shutil
import tempfile

from tfdet_probe.frameworks.base import normalize_kernel_names


def kernels(tf, run):
    """The sorted names of the GPU kernels that run() launches; None without a working profiler."""
    try:
        space = _xspace(tf, run)
    except Exception:  # without the profiler the case still counts
        return None
    return None if space is None else kernel_names(space)


def kernel_names(space):
    """The kernels in a profile: the events of the streams of GPUs, without memory copies.  space: an XSpace."""
    names = set()
    for plane in space.planes:
        if not plane.name.startswith("/device:GPU"):
            continue
        streams = [line for line in plane.lines if line.name.lower().startswith("stream")]
        for line in streams:
            names.update(plane.event_metadata[event.metadata_id].name for event in line.events)
    return normalize_kernel_names(names)


def _xspace(tf, run):
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
    """The module of the profile's protocol buffer, which has moved twice."""
    try:
        from tensorflow.tsl.profiler.protobuf import xplane_pb2
    except ImportError:
        try:
            from tensorflow.core.profiler.protobuf import xplane_pb2
        except ImportError:
            from tsl.profiler.protobuf import xplane_pb2
    return xplane_pb2
