"""tfdeterminism.pytorch: make PyTorch deterministic, and say what stays.

    import tfdeterminism.pytorch
    print(tfdeterminism.pytorch.enable_determinism(seed=1))

Imports nothing of PyTorch until one of its functions is called.
"""

from .enable import disable, enable_determinism, set_seeds
from .loader import generator, seed_worker

__all__ = ["disable", "enable_determinism", "generator", "seed_worker", "set_seeds"]
