"""Stands in for TensorFlow for one thing only: the probe's question for its version.

The planted cases of mode `host` run none of it.
"""

__version__ = "0.0.standin"
