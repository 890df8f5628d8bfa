"""Carry an environment to a host without network: what goes in, how it is made small, how it is cut into parts."""
