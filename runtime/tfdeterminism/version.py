"""The version of the distributions tfdeterminism and tfdet, which are released together; no other file holds it."""

__version__ = "0.4.0"
