"""What was done, what stays nondeterministic here, and what is left for the user to do."""

import os

from . import checks, known
from .version import __version__

_CACHED = ("disable() puts the variables back, but TensorFlow reads each once: only a new process is free of what it "
           "has read.")


class Report(object):
    """Print it; or read its parts, each a list of sentences:

    done, patches (Patch objects in force), covered (keys of sources that the patches serve),
    remaining (known.Remaining), todo, warnings, old_references.  `disable()` takes all back.
    """

    def __init__(self, build, recipe, disable):
        self.build = build
        self.recipe = recipe
        self._disable = disable
        self.done = []
        self.patches = []
        self.warnings = []
        self.old_references = []
        self.seed = None
        self.active = True

    @property
    def covered(self):
        return sorted({source for patch in self.patches for source in patch.sources})

    @property
    def remaining(self):
        return known.remaining(self.build, self.covered)

    @property
    def todo(self):
        return list(_todo(self))

    def seeded(self, seed, names):
        """Note that the generators `names` were seeded (again)."""
        self.seed = seed
        self.done = [line for line in self.done if not line.startswith("seeded ")]
        self.done.append("seeded {} with {}".format(", ".join(names), seed))

    def disable(self):
        """Put back everything that was replaced: the same as tfdeterminism.disable()."""
        self._disable()

    def __str__(self):
        head = "tfdeterminism {}: TensorFlow {} ({})".format(__version__, self.build.text, self.recipe.name)
        parts = [head] + ([] if self.active else ["switched off again by disable()"])
        parts += section("done", self.done)
        parts += section("replaced by a deterministic form", [_patch_line(patch) for patch in self.patches])
        parts += section("warnings", self.warnings)
        parts += section("taken before the patch, so they keep the original", self.old_references)
        parts += section("in this version", self.recipe.caveats)
        parts += section("still nondeterministic, or an error, on a GPU unless said otherwise",
                          [entry.line() for entry in self.remaining])
        parts += section("left for you to do", self.todo)
        if self.recipe.environment:
            parts.append(_CACHED)
        return "\n".join(parts).encode("ascii", "replace").decode("ascii")  # old terminals take no more

    __repr__ = __str__


def section(title, lines):
    return ["{}:".format(title)] + ["  - {}".format(line) for line in lines] if lines else []


def _patch_line(patch):
    text = "{} ({})".format(patch.key, ", ".join(patch.sources))
    return "{}: {}".format(text, patch.note) if patch.note else text


def _todo(report):
    if checks.hash_seed() is None:
        yield ("Start Python with PYTHONHASHSEED=0 in its environment: set inside the program it is too late. The "
               "order of sets of strings depends on it.")
    if report.seed is None:
        yield "Set the seeds: tfdeterminism.set_seeds(1), or enable_determinism(seed=1)."
    yield "Give numpy.random.default_rng() and other generators of your own a seed: no global seed reaches them."
    yield "Feed data with one worker: Keras fit(workers=1), or PyDataset(workers=1) in Keras 3."
    if report.build.version < (2, 8):
        yield "In tf.data use no num_parallel_calls where the function draws random numbers or keeps state."
        yield ("Compile nothing by XLA (tf.function(jit_compile=True), experimental_compile, "
               "TF_XLA_FLAGS): no switch of this version reaches it.")
    if os.environ.get("HOROVOD_FUSION_THRESHOLD") != "0":
        yield "With Horovod set HOROVOD_FUSION_THRESHOLD=0 before hvd.init()."
    yield "Compare runs on the same GPU model, driver and TensorFlow only: others round differently."
