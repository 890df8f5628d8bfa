"""All instruction forms that the generator knows, by family."""

from fuzzing import conversions, floats, integers

ALL = {**integers.families(), **floats.families(), **conversions.families()}
