"""The interposition into TensorFlow: functions whose results may differ in another run, for the kinds of interpose."""

_DRAWS = "normal uniform truncated_normal shuffle categorical gamma poisson"


def interpose(kinds, tensorflow):
    """Install the kinds. kinds: {name: interpose.kinds.Kind}; tensorflow: the module, just imported.

    A kind notes in a ledger each value of its sort that the program gets, with the program's line, and pins it, that
    is gives the same value in every run, where the search for the cause asks for it: kind.is_pinned(place) says where.
    kind.number(place): the next pinned random number. "completion": the order in which parallel work finishes.
    """
    _random(kinds["random"], tensorflow)
    dataset = tensorflow.data.Dataset
    for name in ("map", "interleave", "batch"):
        kinds["completion"].order_argument(dataset, name, "deterministic")
    _options(kinds["completion"], dataset)


def _random(kind, tensorflow):
    """Install the kind "random". The global seed is drawn in C++, where it cannot be observed."""
    from . import seeding

    kind.begin_global("tensorflow", lambda number: seeding.seed(number % (1 << 31)), lambda: None)
    random = tensorflow.random
    kind.note_seeds(
        random, "tensorflow", [name for name in ("set_seed", "set_random_seed") if hasattr(random, name)]
    )
    if hasattr(tensorflow, "set_random_seed"):
        kind.note_seeds(tensorflow, "tensorflow", ("set_random_seed",))
    kind.note_first_draws(random, "tensorflow", _DRAWS)
    kind.note_first_draws(tensorflow.data.Dataset, "tensorflow", "shuffle")
    generator = getattr(random, "Generator", None) or getattr(random.experimental, "Generator", None)
    if hasattr(generator, "from_non_deterministic_state"):
        _generator(kind, generator)


def _generator(kind, generator):
    """Wrap the class method that makes a generator whose state C++ draws; the global one is made by it, too."""

    def seeded(place, _, *args, **kwargs):
        return generator.from_seed(kind.number(place) % (1 << 31), *args, **kwargs)

    kind.replace(generator, "from_non_deterministic_state", seeded, lambda result: None)
    made = generator.__dict__["from_non_deterministic_state"]
    generator.from_non_deterministic_state = staticmethod(made)  # the original is bound to the class


def _options(kind, dataset):
    """Wrap Dataset.with_options, which may make the order of elements nondeterministic."""
    original = dataset.with_options

    def with_options(self, options, *args, **kwargs):
        for name in ("deterministic", "experimental_deterministic"):
            if getattr(options, name, None) is False:
                place = kind.interposer.place()
                is_held = kind.is_pinned(place)
                kind.note(place, name + " = False", None, is_held)
                if is_held:
                    setattr(options, name, True)
                break
        return original(self, options, *args, **kwargs)

    dataset.with_options = with_options
