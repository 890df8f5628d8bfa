"""The interposition into PyTorch: functions whose results may differ in another run, for the kinds of interpose."""

from ...schema.ledger import STEPS, UNKNOWN_PLACE

_DRAWS = "rand randn randint randperm normal bernoulli multinomial rand_like randn_like dropout"
_IN_PLACE_DRAWS = "random_ normal_ uniform_ bernoulli_ exponential_"  # layers initialize their weights with them
# Arguments that a DataLoader without workers refuses.
_NO_WORKERS_UNSET = ("prefetch_factor", "persistent_workers", "multiprocessing_context", "timeout")


def interpose(kinds, torch):
    """Install the kinds. kinds: {name: interpose.kinds.Kind}; torch: the module, just imported.

    A kind notes in a ledger each value of its sort that the program gets, with the program's line, and pins it, that
    is gives the same value in every run, where the search for the cause asks for it: kind.is_pinned(place) says where.
    The place "-" stands for the whole program. The kind "switches" is of kernels that have a deterministic form,
    "completion" of the order in which parallel work finishes.
    """
    _random(kinds["random"], torch)
    _memory(kinds["memory"], torch)
    kinds["system"].replace_call(torch.cuda, "mem_get_info")
    switches = kinds["switches"]
    if switches.is_pinned("-"):
        torch.use_deterministic_algorithms(True, warn_only=True)
        torch.utils.deterministic.fill_uninitialized_memory = False  # the kind "memory" does this
        switches.note("-", "torch", None, True)
    threads = kinds["one-thread"]
    threads.note("-", "torch", torch.get_num_threads(), torch.get_num_threads() == 1)
    imports = kinds["files"].interposer.imports
    imports.add(
        {
            "torch.serialization": lambda module: _files(kinds["files"], torch, module),
            "torch.utils.data.dataloader": lambda module: _loaders(kinds, module),
            "torch.optim.optimizer": lambda module: _count_steps(kinds["files"].interposer.ledger, module),
        }
    )


def _count_steps(ledger, module):
    def count(optimizer, args, kwargs):
        ledger.note(STEPS, UNKNOWN_PLACE, "optimizer", None, False)

    module.register_optimizer_step_post_hook(count)


def _random(kind, torch):
    kind.begin_global("torch", torch.manual_seed, torch.initial_seed)
    kind.note_seeds(torch, "torch", ("manual_seed", "set_rng_state"))
    kind.note_first_draws(torch, "torch", _DRAWS)
    kind.note_first_draws(torch.Tensor, "torch", _IN_PLACE_DRAWS)
    kind.replace(torch, "seed", lambda place, original: torch.manual_seed(kind.number(place)).initial_seed())


def _memory(kind, torch):
    kind.fill(torch, ("empty", "empty_like", "empty_strided"), "zero_")
    kind.fill(torch.Tensor, ("new_empty",), "zero_")


def _files(kind, torch, module):
    """Wrap torch.save, which writes in C++ without an audit event."""
    original = module.save

    def save(obj, f, *args, **kwargs):
        if hasattr(f, "__fspath__") or isinstance(f, str):
            kind.written(str(f))
        return original(obj, f, *args, **kwargs)

    module.save = torch.save = save


def _loaders(kinds, module):
    kinds["completion"].order_argument(module.DataLoader, "__init__", "in_order")
    kinds["one-worker"].limit(module.DataLoader, "num_workers", 0, unset=_NO_WORKERS_UNSET)
