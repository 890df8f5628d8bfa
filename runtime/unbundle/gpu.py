"""The check of the GPU and its driver against what the bundle requires.

missing(name, 4, problem, advice): 4 is the exit code if the asked device is not there. nvidia: a smi.Nvidia, or None
without a driver that answers.
"""

from tfdet_common.versions import numbers
from unbundle.check import missing, ok


def check_driver(bundle, nvidia):
    name, minimum = "driver", bundle["min_driver"]
    if nvidia is None:
        return missing(
            name,
            4,
            "no working NVIDIA driver",
            "Install driver {} or newer, or ask for --device cpu.".format(minimum or "for your GPU"),
        )
    if minimum and numbers(nvidia.driver) < numbers(minimum):
        return missing(
            name,
            4,
            "{} is too old".format(nvidia.driver),
            "Install driver {} or newer, or ask for --device cpu.".format(minimum),
        )
    return ok(name, "{}{}".format(nvidia.driver, " (needs {})".format(minimum) if minimum else ""))


def check_gpu(bundle, nvidia):
    name, required = "GPU", bundle["compute_capability"]
    if bundle["device"] != "gpu":
        return missing(name, 4, "this bundle is for the CPU", "Ask for --device cpu, or bundle with --device gpu.")
    if nvidia is None or not nvidia.gpus:
        return missing(name, 4, "no GPU is visible", "See nvidia-smi, or ask for --device cpu.")
    descriptions = ", ".join(describe(gpu) for gpu in nvidia.gpus)
    if required and not any(runs_on(numbers(required), gpu.capability) for gpu in nvidia.gpus):
        return missing(
            name,
            4,
            "{}; the bundle holds code for {} only".format(descriptions, required),
            "Bundle again with --compute-capability {}.{}.".format(*nvidia.gpus[0].capability),
        )
    return ok(name, descriptions)


def describe(gpu):
    capability = "{}.{}".format(*gpu.capability) if gpu.capability else "compute capability unknown"
    return "{} ({}, {} GiB)".format(gpu.name, capability, gpu.mebibytes >> 10)


def runs_on(code, capability):
    """Return whether machine code runs on a GPU: on its own major version, from its minor version on.

    An unknown capability (None) counts as suitable; the run will show it.
    """
    return capability is None or (code[0] == capability[0] and code <= capability)
