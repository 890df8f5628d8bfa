"""tfdet: determinism in deep learning, proven (the host side)."""
