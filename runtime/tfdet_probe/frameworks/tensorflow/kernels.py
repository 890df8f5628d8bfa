"""Print the op kernels that this TensorFlow registers, as one line of JSON: {op: {device: [dtypes]}}.

Usage: python -m tfdet_probe.frameworks.tensorflow.kernels.  No device is started: loading the libraries fills the
registry, so a GPU build lists its GPU kernels on a machine without a GPU.
"""

import glob
import json
import os
import sys

# The attributes that hold the dtype a kernel computes with; others hold index types.
_ATTRIBUTES = ("T", "dtype", "Tparams", "SrcT", "out_type")


def main():
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # TensorFlow's own output must not mix with the JSON
    import tensorflow as tf
    from tensorflow.python.framework import kernels

    _load_contrib(tf)
    by_op = {}
    for kernel in kernels.get_all_registered_kernels().kernel:
        devices = by_op.setdefault(kernel.op, {})
        devices.setdefault(kernel.device_type, set()).update(_dtypes(tf, kernel))
    content = {op: {device: sorted(names) for device, names in by_device.items()} for op, by_device in by_op.items()}
    json.dump(content, answer, sort_keys=True)
    answer.close()


def _load_contrib(tf):
    """TensorFlow 1.x loads these libraries when a program first imports their Python."""
    folder = os.path.join(tf.sysconfig.get_lib(), "contrib")  # in 1.15 in tensorflow_core, not in tensorflow
    for path in sorted(glob.glob(os.path.join(folder, "**", "python", "ops", "_*.so"), recursive=True)):
        try:
            tf.load_op_library(path)
        except Exception as error:  # a library that does not load hides only its own kernels
            sys.stderr.write("%s: %s\n" % (path, error))


def _dtypes(tf, kernel):
    values = {item.name: item.allowed_values.list.type for item in kernel.constraint}
    for name in _ATTRIBUTES:
        if name in values:
            return [tf.as_dtype(value).name for value in values[name]]
    return []


if __name__ == "__main__":
    main()
