"""The results as text."""
