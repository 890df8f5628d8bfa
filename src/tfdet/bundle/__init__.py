"""Bundles, which carry an environment to a host without a network: selection, trimming and packing of its files."""
