"""tfdeterminism.pytorch: make PyTorch deterministic, and say what stays.

    import tfdeterminism.pytorch
    print(tfdeterminism.pytorch.enable_determinism(seed=1))

Imports nothing of PyTorch until one of its functions is called.
"""

from .loader import generator, seed_worker
from .switch import disable, enable_determinism, set_seeds

__all__ = ["disable", "enable_determinism", "generator", "seed_worker", "set_seeds"]
