"""The commands of `tfdet`."""
