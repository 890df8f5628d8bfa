"""What the bundle needs of the GPU and its driver."""

from tfdet_common.versions import numbers
from unbundle.check import missing, ok


def check_driver(bundle, nvidia):
    name, least = "driver", bundle["min_driver"]
    if nvidia is None:
        return missing(
            name,
            4,
            "no NVIDIA driver answers",
            "Install driver {} or newer, or ask for --device cpu.".format(least or "for your GPU"),
        )
    if least and numbers(nvidia.driver) < numbers(least):
        return missing(
            name,
            4,
            "{} is too old".format(nvidia.driver),
            "Install driver {} or newer, or ask for --device cpu.".format(least),
        )
    return ok(name, "{}{}".format(nvidia.driver, " (needs {})".format(least) if least else ""))


def check_gpu(bundle, nvidia):
    name, wanted = "GPU", bundle["compute_capability"]
    if bundle["device"] != "gpu":
        return missing(name, 4, "this bundle is for the CPU", "Ask for --device cpu, or bundle with --device gpu.")
    if nvidia is None or not nvidia.gpus:
        return missing(name, 4, "none is visible", "See nvidia-smi, or ask for --device cpu.")
    named = ", ".join("{} ({}.{}, {} GiB)".format(g.name, g.capability[0], g.capability[1], g.mebibytes >> 10)
                      for g in nvidia.gpus)
    if wanted and not any(runs_on(numbers(wanted), gpu.capability) for gpu in nvidia.gpus):
        return missing(
            name,
            4,
            "{}; the bundle holds code for {} only".format(named, wanted),
            "Bundle again with --compute-capability {}.{}.".format(*nvidia.gpus[0].capability),
        )
    return ok(name, named)


def runs_on(code, capability):
    """Machine code runs on its own major version, from its minor on."""
    return code[0] == capability[0] and code <= capability
