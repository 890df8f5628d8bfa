"""The in-environment half of the matrix: build a case, repeat it, compare bytes, record.

Runs inside every environment (Python 3.5 to 3.13) with nothing but the standard library
and the NumPy that the framework brings.  core knows neither a framework nor a kind of device by name.
"""

from .core.registry import case

__all__ = ["case"]
