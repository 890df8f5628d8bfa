"""Cases without a difference: the suite must not see one."""

import numpy as np

from tfdet_probe import case

# @case("source", modes=...) registers the function as cases, one for each combination of its parameters.  `make` builds
# the computation of a case; make.host(f): f is plain Python and returns the arrays to compare (mode "host").


@case("numbers", modes=["host"],
      dtype=["bool", "int8", "uint8", "int32", "int64", "uint64", "float16", "float32", "float64", "complex64",
             "complex128"],
      shape=[(), (0,), (3, 0, 2), (5, 7)])
def numbers(make, dtype, shape):
    value = make.uniform(shape, "float64", 0, 100).astype(dtype)
    return make.host(lambda: [value.copy(), value.T])


@case("edges", modes=["host"])
def edges(make):
    def run():
        nan = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324])
        extremes = np.array([np.iinfo("int64").min, np.iinfo("int64").max])
        return [nan, nan.astype("float16"), extremes, np.float32(1), True, 3, "word", [b"ab", b"c"]]
    return make.host(run)


@case("strings", modes=["host"])
def strings(make):
    return make.host(lambda: [np.array([b"ab", "c", None, 1, 2.5, np.zeros(3)], object), np.array([], object)])


@case("seeded-noise", modes=["host"])
def seeded_noise(make):
    return make.host(lambda: [np.random.RandomState(3).normal(size=1000)])


@case("keeps-its-inputs", modes=["host"])
def keeps_its_inputs(make):
    value = make.uniform((8,))

    def run():
        scratch = value.copy()
        scratch += 1
        return [scratch]
    return make.host(run)


@case("talks", modes=["host"])
def talks(make):
    def run():
        print("a case may say something")
        return [np.zeros(1)]
    return make.host(run)
