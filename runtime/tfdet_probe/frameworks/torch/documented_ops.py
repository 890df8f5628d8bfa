"""Print what PyTorch's own documentation and tags say of the determinism of its ops, as JSON.

Usage: python -m tfdet_probe.frameworks.torch.documented_ops SUITE.  SUITE: the folder of the suite, whose test_opinfo
lists the ops and their samples.
"""

import contextlib
import importlib
import json
import re
import sys

import torch

from . import placement

_ENTRY = re.compile(r"^ +\* +:\w+:`(?P<api>[\w.]+)`(?P<words>.*(?:\n(?! *\*| *\n) .*)*)", re.M)
_OTHER_DEVICES = re.compile(r"\A(?!.*(?:CUDA|CPU)).*\b(?:MPS|XPU)\b", re.S)  # devices that this project does not cover


def main(suite):
    sys.path.insert(0, suite)
    ops = importlib.import_module("test_opinfo")
    # OTHER_DTYPES: the suite runs an op in these, too; taking(dtype): the keys of the ops that take it.
    taking = {dtype: ops.taking(dtype) for dtype in ops.OTHER_DTYPES}
    entries = [dict(_op(ops, key, ops.OPS[key]), dtypes=[dtype for dtype in ops.OTHER_DTYPES if key in taking[dtype]])
               for key in sorted(ops.OPS)]
    return {"framework_version": torch.__version__.split("+")[0], "commit": torch.version.git_version, "ops": entries,
            "documented": documented(torch.use_deterministic_algorithms.__doc__)}


def documented(text):
    # type: (str) -> list[dict]
    """Parse the docstring of torch.use_deterministic_algorithms: lists of ops that become deterministic or raise."""
    effect, entries = "deterministic", []
    # Without a third list of old versions: ops that CUBLAS_WORKSPACE_CONFIG makes deterministic.
    text = text.split("A handful of CUDA operations")[0]
    parts = re.split(r"operations will throw a", text)
    for part in parts:
        entries += [_entry(entry.group("api"), effect, entry.group("words")) for entry in _ENTRY.finditer(part)
                    if not _OTHER_DEVICES.search(entry.group("words"))]
        effect = "raises"
    return entries


def _entry(api, effect, words):
    devices = [device for device in ("cpu", "gpu") if {"cpu": "CPU", "gpu": "CUDA"}[device] in words]
    return {"api": api, "says": effect, "devices": devices or ["cpu", "gpu"],
            "backward": bool(re.search("differentiate|requires grad", words)),
            "modes": re.findall(r"``(\w+(?:='?\w+'?)?)``", words)}


def _op(ops, key, info):
    reached, samples = set(), 0
    for backward in (False, True):
        try:
            torch.manual_seed(1)
            op_samples = ops.samples_of(info, "cpu", backward)
        except NotImplementedError:
            continue
        samples = samples or len(op_samples)
        reached.update(_reached(ops, info, op_samples[0], backward))
    tags = {str(tag).split(".")[-1] for function in reached for tag in _tags(function)}
    return {"key": key, "name": info.name, "variant": info.variant_test_name, "samples": samples,
            "dtype": str(ops.dtype_of(info, "cpu")).split(".")[-1], "backward": info.supports_autograd,
            "tolerance": info.gradcheck_nondet_tol, "reached": sorted(reached),
            "tags": sorted(tag for tag in tags if tag.startswith("nondeterministic"))}


def _reached(ops, info, sample, backward):
    """The dispatcher's ops that run for one sample; empty if it raises."""
    try:
        return {name for name, _ in placement.record_placements(
            lambda: ops.backward(_Upstream(), info, sample) if backward else ops.forward(info, sample))}
    except Exception:  # the suite records what an op does on its samples
        return set()


class _Upstream(object):
    """In place of the CaseBuilder that ops.backward() takes: its upstream gradients are ones."""

    def upstream(self, shape, dtype):
        return torch.ones(shape, dtype=getattr(torch, dtype)).numpy()


def _tags(name):
    packet = getattr(torch.ops.aten, name, None)
    return [tag for overload in packet.overloads() for tag in getattr(packet, overload).tags] if packet else []


if __name__ == "__main__":
    with contextlib.redirect_stdout(sys.stderr):  # old PyTorches print a line when their test code is imported
        ops_as_json = main(sys.argv[1])
    json.dump(ops_as_json, sys.stdout, indent=0, sort_keys=True)
