"""The version of tensorflow-determinism: the only place where it stands."""

__version__ = "0.4.0"
