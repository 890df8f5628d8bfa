"""Print the op kernels that this environment's TensorFlow registers, as one line of JSON: {op: {device: [dtypes]}}.

python -m tfdet_probe.frameworks.tensorflow.kernels.  No device is started: the registry is filled when libraries load,
and a GPU build's lists its GPU kernels on a machine without one.
"""

import glob
import json
import os
import sys

# Which attribute tells what a kernel computes with; kernels differ in index types too.
_ATTRIBUTES = ("T", "dtype", "Tparams", "SrcT", "out_type")


def main():
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what TensorFlow prints is not the answer
    import tensorflow as tf
    from tensorflow.python.framework import kernels

    _load_contrib(tf)
    found = {}
    for kernel in kernels.get_all_registered_kernels().kernel:
        devices = found.setdefault(kernel.op, {})
        devices.setdefault(kernel.device_type, set()).update(_dtypes(tf, kernel))
    plain = {op: {device: sorted(names) for device, names in some.items()} for op, some in found.items()}
    json.dump(plain, answer, sort_keys=True)
    answer.close()


def _load_contrib(tf):
    """TensorFlow 1.x loads these libraries when a program first imports their Python."""
    folder = os.path.join(tf.sysconfig.get_lib(), "contrib")  # 1.15 keeps it beside the package that it shows
    for path in sorted(glob.glob(os.path.join(folder, "**", "python", "ops", "_*.so"), recursive=True)):
        try:
            tf.load_op_library(path)
        except Exception as error:  # one that does not load here hides only its own kernels
            sys.stderr.write("%s: %s\n" % (path, error))


def _dtypes(tf, kernel):
    values = {item.name: item.allowed_values.list.type for item in kernel.constraint}
    for name in _ATTRIBUTES:
        if name in values:
            return [tf.as_dtype(value).name for value in values[name]]
    return []


if __name__ == "__main__":
    main()
