"""tfdet: determinism in deep learning, proven (the host side)."""

__version__ = "0.1.0"
