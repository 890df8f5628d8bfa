"""The report of enable_determinism: what was done, what remains nondeterministic or raises, what is left to do."""

import json
import pkgutil

from ..preconditions import hash_seed
from ..report import report_section
from ..version import __version__


class Report(object):
    """A printable report; its attributes done, warnings, remaining and todo are lists of sentences."""

    def __init__(self, version, seed):
        self.version = version.split("+")[0]
        self.seed = seed
        self.done = []
        self.warnings = []

    @property
    def remaining(self):
        return ["{}: {}".format(entry["title"].replace("`", ""), entry["says"]) for entry in _entries(self.version)]

    @property
    def todo(self):
        return list(_todo(self))

    def __str__(self):
        lines = ["tfdeterminism {}: PyTorch {}".format(__version__, self.version)]
        lines += report_section("done", self.done) + report_section("warnings", self.warnings)
        lines += report_section("still nondeterministic, or an error", self.remaining)
        lines += report_section("left for you to do", self.todo)
        return "\n".join(lines).encode("ascii", "replace").decode("ascii")

    __repr__ = __str__


def _todo(report):
    if hash_seed() is None:
        yield ("Start Python with PYTHONHASHSEED=0 in its environment: set inside the program it is too late. The "
               "order of sets of strings depends on it.")
    if report.seed is None:
        yield "Set the seeds: tfdeterminism.pytorch.set_seeds(1), or enable_determinism(seed=1)."
    yield "Give numpy.random.default_rng() and other generators of your own a seed: no global seed reaches them."
    yield ("Give each DataLoader worker_init_fn=tfdeterminism.pytorch.seed_worker and "
           "generator=tfdeterminism.pytorch.generator(1).")
    yield ("Keep in checkpoints the states of the model, optimizer, learning rate and loader, and of the generators: "
           "torch.get_rng_state(), torch.cuda.get_rng_state(), numpy.random.get_state(), random.getstate().")
    yield "Compare runs on the same GPU model, driver and PyTorch only: others round differently."


def _entries(version):
    """Return the entries of known.json for this version, else the nearest older one, else the oldest."""
    content = pkgutil.get_data(__package__, "known.json")
    assert content is not None, "it lies beside this file"
    entries = json.loads(content.decode("ascii"))
    earlier = [minor for minor in entries if _numbers(minor) <= _numbers(version)]
    return entries[max(earlier, key=_numbers) if earlier else min(entries, key=_numbers)]


def _numbers(version):
    return tuple(int(number) for number in version.split(".")[:2])
