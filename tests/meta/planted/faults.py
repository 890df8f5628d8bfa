"""Cases with a fault each; test_faults.py says how the record of each must read.

`make` is the probe's builder of cases; make.host(run) makes one that only calls run().
"""

import ctypes
import os
import subprocess
import sys
import time

import numpy as np

from tfdet_probe import case


def changing(values):
    """A host function that gives values[0], values[1], ... in turn, one for each run; the last stays."""
    left = list(values)
    return lambda: [left.pop(0) if len(left) > 1 else left[0]]


def flipped(array, bit):
    """`array` with one bit turned over."""
    raw = bytearray(array.tobytes())
    raw[bit // 8] ^= 1 << bit % 8
    return np.frombuffer(bytes(raw), array.dtype).reshape(array.shape)


@case("noise-once", modes=["host"])
def noise_once(make):
    value = make.uniform((64,))
    runs = []

    def run():
        runs.append(1)
        return [value + np.float32(1e-3) if len(runs) == 38 else value]
    return make.host(run)


@case("one-bit", modes=["host"])
def one_bit(make):
    value = make.uniform((1000,))
    return make.host(changing([value, flipped(value, 32 * 700)]))


@case("negative-zero", modes=["host"])
def negative_zero(make):
    return make.host(changing([np.zeros(4, "float32"), -np.zeros(4, "float32")]))


@case("nan-payload", modes=["host"])
def nan_payload(make):
    nan = np.array([np.nan, 1.0], "float32")
    return make.host(changing([nan, flipped(nan, 3)]))


@case("between-processes", modes=["host"])
def between_processes(make):
    return make.host(lambda: [np.array([os.getpid()])])


@case("segfault", modes=["host"])
def segfault(make):
    return make.host(lambda: ctypes.string_at(0))


@case("abort", modes=["host"])
def abort(make):
    def run():
        os.write(2, b"planted.cc:7] Check failed: the sky == blue\nsome more words\n")
        os.abort()
    return make.host(run)


@case("second-process-dies", modes=["host"])
def second_process_dies(make):
    log = os.path.join(os.environ["PLANTED"], "builds")
    with open(log, "a") as out:
        out.write("built\n")
    with open(log) as source:
        builds = len(source.readlines())
    return make.host(lambda: os.abort() if builds > 1 else [np.zeros(1)])


@case("hang", modes=["host"])
def hang(make):
    return make.host(lambda: time.sleep(600))


@case("memory", modes=["host"])
def memory(make):
    def run():
        kept = []
        while True:
            kept.append(np.ones(1 << 20))
            time.sleep(0.005)
    return make.host(run)


@case("orphan", modes=["host"])
def orphan(make):
    return make.host(orphans(start_new_session=False))


@case("orphan-of-its-own-session", modes=["host"])
def orphan_of_its_own_session(make):
    return make.host(orphans(start_new_session=True))


def orphans(**how):
    """Leaves processes behind and says their numbers."""
    left = [subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], **how) for _ in range(3)]
    with open(os.path.join(os.environ["PLANTED"], "orphans"), "a") as out:
        out.writelines(f"{process.pid}\n" for process in left)
    return lambda: [np.zeros(1)]


@case("exits", modes=["host"])
def exits(make):
    return make.host(lambda: os._exit(0))


@case("system-exit", modes=["host"])
def system_exit(make):
    return make.host(lambda: sys.exit(0))


@case("bug-zero-division", modes=["host"])
def bug_zero_division(make):
    return make.host(lambda: 1 // 0)


@case("bug-name", modes=["host"])
def bug_name(make):
    return make.host(lambda: [nowhere])  # noqa: F821


@case("bug-none", modes=["host"])
def bug_none(make):
    return make.host(lambda: None.shape)


@case("bug-keyword", modes=["host"])
def bug_keyword(make):
    return make.host(lambda: changing(valeus=[]))


@case("bug-build", modes=["host"])
def bug_build(make):
    return make.host(lambda: [make.no_such_method()])


@case("no-outputs", modes=["host"])
def no_outputs(make):
    return make.host(list)


@case("other-shape", modes=["host"])
def other_shape(make):
    return make.host(changing([np.zeros((2, 3)), np.zeros((3, 2))]))


@case("other-dtype", modes=["host"])
def other_dtype(make):
    return make.host(changing([np.zeros(4, "int32"), np.zeros(4, "float32")]))


@case("other-number", modes=["host"])
def other_number(make):
    runs = []

    def run():
        runs.append(1)
        return [np.zeros(2)] * (1 if len(runs) == 2 else 2)
    return make.host(run)


@case("strings-cut-elsewhere", modes=["host"])
def strings_cut_elsewhere(make):
    return make.host(changing([np.array([b"ab", b"c"], object), np.array([b"a", b"bc"], object)]))


@case("string-with-nul", modes=["host"])
def string_with_nul(make):
    return make.host(changing([b"a", b"a\0"]))


@case("objects", modes=["host"])
def objects(make):
    return make.host(changing([np.array([b"1", None], object), np.array([1, None], object)]))


@case("ragged", modes=["host"])
def ragged(make):
    long = np.arange(2000, dtype="float64")

    def pair(array):
        outputs = np.empty(2, object)
        outputs[0], outputs[1] = array, np.zeros(1)
        return outputs
    return make.host(changing([pair(long), pair(flipped(long, 64 * 1000))]))


@case("mutates-inputs", modes=["host"])
def mutates_inputs(make):
    value = make.uniform((8,))

    def run():
        value[0] += 1
        return [value]
    return make.host(run)


@case("clean-after-all", modes=["host"])
def clean_after_all(make):
    value = make.uniform((8,))
    return make.host(lambda: [value * 2])
