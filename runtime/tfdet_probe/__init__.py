"""The probe: runs inside an environment, builds each case, repeats it, compares its bytes, and writes records.

It needs Python 3.5 to 3.13, the standard library, and the NumPy that the framework brings.  The package core knows
neither a framework nor a kind of device by name.
"""

from .core.registry import case

__all__ = ["case"]
