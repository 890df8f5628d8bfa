"""All instruction forms of the generator, by family."""

from fuzzing import conversions, floats, integers

ALL = {**integers.families(), **floats.families(), **conversions.families()}
