"""The report of enable_determinism: what was done, what remains nondeterministic, what is left to the user."""

import os

from . import preconditions, remaining
from .version import __version__

_CACHED = ("disable() puts the variables back, but TensorFlow reads each once: only a new process is free of what it "
           "has read.")


class Report(object):
    """A printable report.

    Attributes:
        done, todo, warnings: sentences.
        patches: the patches.Patch objects that are installed.
        patched_sources: the keys of the sources that the patches make deterministic, sorted.
        remaining: list of remaining.Remaining.
        old_references: "module.name" of references that still call an original op.
        seed: or None.
        active: whether determinism is enabled.
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
    def patched_sources(self):
        return sorted({source for patch in self.patches for source in patch.sources})

    @property
    def remaining(self):
        return remaining.remaining_of(self.build, self.patched_sources)

    @property
    def todo(self):
        return list(_todo(self))

    def seeded(self, seed, names):
        """Note that the generators `names` were seeded; replaces an earlier note."""
        self.seed = seed
        self.done = [line for line in self.done if not line.startswith("seeded ")]
        self.done.append("seeded {} with {}".format(", ".join(names), seed))

    def disable(self):
        """Call tfdeterminism.disable()."""
        self._disable()

    def __str__(self):
        title = "tfdeterminism {}: TensorFlow {} ({})".format(__version__, self.build.text, self.recipe.name)
        lines = [title] + ([] if self.active else ["switched off again by disable()"])
        lines += report_section("done", self.done)
        lines += report_section("replaced by a deterministic form", [_patch_line(patch) for patch in self.patches])
        lines += report_section("warnings", self.warnings)
        lines += report_section("taken before the patch, so they keep the original", self.old_references)
        lines += report_section("in this version", self.recipe.caveats)
        lines += report_section("still nondeterministic, or an error, on a GPU unless said otherwise",
                          [entry.line() for entry in self.remaining])
        lines += report_section("left for you to do", self.todo)
        if self.recipe.environment:
            lines.append(_CACHED)
        return "\n".join(lines).encode("ascii", "replace").decode("ascii")  # for terminals without UTF-8

    __repr__ = __str__


def report_section(title, lines):
    """Return the lines of one section of a report; none if there are no entries."""
    return ["{}:".format(title)] + ["  - {}".format(line) for line in lines] if lines else []


def _patch_line(patch):
    text = "{} ({})".format(patch.key, ", ".join(patch.sources))
    return "{}: {}".format(text, patch.note) if patch.note else text


def _todo(report):
    if preconditions.hash_seed() is None:
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
