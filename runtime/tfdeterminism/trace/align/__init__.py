"""The alignment of the records of two traces, and the differences of their values."""
