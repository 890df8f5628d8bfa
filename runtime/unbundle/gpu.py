"""Check the GPU and its driver against what the bundle requires."""

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
    described = ", ".join("{} ({}.{}, {} GiB)".format(g.name, g.capability[0], g.capability[1], g.mebibytes >> 10)
                          for g in nvidia.gpus)
    if required and not any(runs_on(numbers(required), gpu.capability) for gpu in nvidia.gpus):
        return missing(
            name,
            4,
            "{}; the bundle holds code for {} only".format(described, required),
            "Bundle again with --compute-capability {}.{}.".format(*nvidia.gpus[0].capability),
        )
    return ok(name, described)


def runs_on(code, capability):
    """Whether machine code for one compute capability runs on another: same major, same or higher minor version."""
    return code[0] == capability[0] and code <= capability
