"""python -m tfdet_probe.frameworks.torch.lists SUITE: what this PyTorch's own lists say of its ops, as JSON.

SUITE: the folder of the suite, which says what the ops are called and which samples they are run on.
"""

import contextlib
import importlib
import json
import re
import sys

import torch

from . import placement

_ENTRY = re.compile(r"^ +\* +:\w+:`(?P<api>[\w.]+)`(?P<words>.*(?:\n(?! *\*| *\n) .*)*)", re.M)
_ELSEWHERE = re.compile(r"\A(?!.*(?:CUDA|CPU)).*\b(?:MPS|XPU)\b", re.S)  # devices that nobody here has


def main(suite):
    sys.path.insert(0, suite)
    ops = importlib.import_module("test_opinfo")
    taking = {dtype: ops.taking(dtype) for dtype in ops.OTHER_DTYPES}
    found = [dict(_op(ops, key, ops.OPS[key]), dtypes=[dtype for dtype in ops.OTHER_DTYPES if key in taking[dtype]])
             for key in sorted(ops.OPS)]
    return {"framework_version": torch.__version__.split("+")[0], "commit": torch.version.git_version, "ops": found,
            "documented": documented(torch.use_deterministic_algorithms.__doc__)}


def documented(text):
    # type: (str) -> list[dict]
    """The entries of the two lists: those that act deterministically, and those that raise."""
    says, found = "deterministic", []
    text = text.split("A handful of CUDA operations")[0]  # a third list, of old PyTorches: what cuBLAS's variable mends
    parts = re.split(r"operations will throw a", text)
    for part in parts:
        found += [_entry(entry.group("api"), says, entry.group("words")) for entry in _ENTRY.finditer(part)
                  if not _ELSEWHERE.search(entry.group("words"))]
        says = "raises"
    return found


def _entry(api, says, words):
    devices = [device for device in ("cpu", "gpu") if {"cpu": "CPU", "gpu": "CUDA"}[device] in words]
    return {"api": api, "says": says, "devices": devices or ["cpu", "gpu"],
            "backward": bool(re.search("differentiate|requires grad", words)),
            "modes": re.findall(r"``(\w+(?:='?\w+'?)?)``", words)}


def _op(ops, key, info):
    reached, samples = set(), 0
    for backward in (False, True):
        try:
            torch.manual_seed(1)
            some = ops.samples_of(info, "cpu", backward)
        except NotImplementedError:
            continue
        samples = samples or len(some)
        reached.update(_reached(ops, info, some[0], backward))
    tags = {str(tag).split(".")[-1] for function in reached for tag in _tags(function)}
    return {"key": key, "name": info.name, "variant": info.variant_test_name, "samples": samples,
            "dtype": str(ops.dtype_of(info, "cpu")).split(".")[-1], "backward": info.supports_autograd,
            "tolerance": info.gradcheck_nondet_tol, "reached": sorted(reached),
            "tags": sorted(tag for tag in tags if tag.startswith("nondeterministic"))}


def _reached(ops, info, sample, backward):
    """The ops of the dispatcher that run for one sample; none where it raises."""
    try:
        return {name for name, _ in placement.of(
            lambda: ops.backward(_Upstream(), info, sample) if backward else ops.forward(info, sample))}
    except Exception:  # what an op does on its samples is the suite's to record
        return set()


class _Upstream(object):
    def upstream(self, shape, dtype):
        return torch.ones(shape, dtype=getattr(torch, dtype)).numpy()


def _tags(name):
    packet = getattr(torch.ops.aten, name, None)
    return [tag for overload in packet.overloads() for tag in getattr(packet, overload).tags] if packet else []


if __name__ == "__main__":
    with contextlib.redirect_stdout(sys.stderr):  # old PyTorches print a line when their test code is imported
        found = main(sys.argv[1])
    json.dump(found, sys.stdout, indent=0, sort_keys=True)
