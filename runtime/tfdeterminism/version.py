"""The version of the distributions tfdeterminism and tfdet, which appear together: the only place where it stands."""

__version__ = "0.4.0"
