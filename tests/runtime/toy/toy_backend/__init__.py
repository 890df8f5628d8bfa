"""The folder of a third framework."""
