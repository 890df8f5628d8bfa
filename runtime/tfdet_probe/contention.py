"""Keep the device busy while a case repeats: what depends on who comes first shows itself sooner.

On a GPU two more streams of the same CUDA context fill and copy memory, by the driver's own API: TensorFlow puts all
ops of a device into one stream, so work given to TensorFlow would only queue behind the case.  On a CPU, threads
multiply matrices on all cores.
"""

import contextlib
import ctypes
import os
import threading

_STREAMS = 2
_BYTES = 64 << 20  # of each of a stream's two buffers
_NON_BLOCKING = 1  # CU_STREAM_NON_BLOCKING: not ordered with TensorFlow's streams
_SIDE = 384  # of the matrices: NumPy lets go of the interpreter while it multiplies


class Busy(Exception):
    """The device could not be kept busy."""


@contextlib.contextmanager
def on(device_name, driver=None):
    """Busy until the block ends.  Gives what kept it so, for the record; None if nothing could.

    device_name: such as /device:GPU:0.  TensorFlow must have started the device: its context is shared.
    """
    stop = threading.Event()
    try:
        what, works = _gpu(driver) if "GPU" in device_name.upper() else _cpu()
    except Busy:
        yield None
        return
    threads = [threading.Thread(target=_until, args=(stop, work)) for work in works]
    for thread in threads:
        thread.daemon = True
        thread.start()
    try:
        yield what
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _until(stop, work):
    step = work()
    while not stop.is_set():
        step()


def _cpu():
    import numpy as np
    count = len(os.sched_getaffinity(0))

    def work():
        one = np.ones((_SIDE, _SIDE), np.float32)
        return lambda: one.dot(one)
    return "{} threads multiplying matrices".format(count), [work] * count


def _gpu(driver=None):
    cuda = driver or _driver()
    context = ctypes.c_void_p()
    _check(cuda.cuInit(ctypes.c_uint(0)))
    _check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), ctypes.c_int(0)))
    return "{} CUDA streams filling and copying memory".format(_STREAMS), [
        lambda: _stream(cuda, context) for _ in range(_STREAMS)]


def _driver():
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise Busy(str(error))


def _stream(cuda, context):
    """In its own thread: a stream with two buffers, and what to do with them once more."""
    stream, one, two = ctypes.c_void_p(), ctypes.c_ulonglong(), ctypes.c_ulonglong()
    failed = (cuda.cuCtxSetCurrent(context) or cuda.cuStreamCreate(ctypes.byref(stream), ctypes.c_uint(_NON_BLOCKING))
              or cuda.cuMemAlloc_v2(ctypes.byref(one), ctypes.c_size_t(_BYTES))
              or cuda.cuMemAlloc_v2(ctypes.byref(two), ctypes.c_size_t(_BYTES)))
    if failed:
        return lambda: threading.Event().wait(0.05)  # no memory left: the case needs it more

    def step():
        for value in range(8):
            cuda.cuMemsetD32Async(one, ctypes.c_uint(value), ctypes.c_size_t(_BYTES // 4), stream)
            cuda.cuMemcpyDtoDAsync_v2(two, one, ctypes.c_size_t(_BYTES), stream)
        cuda.cuStreamSynchronize(stream)
    return step


def _check(status):
    if status:
        raise Busy("the CUDA driver answers {}".format(status))
