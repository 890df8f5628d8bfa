"""All instruction forms that the generator knows, by family."""

from fuzzing import integers

ALL = integers.families()
