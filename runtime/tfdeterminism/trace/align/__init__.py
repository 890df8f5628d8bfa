"""Brings the records of two traces together, and measures by how much their values differ."""
