"""Which runs of a program to make next until the op that differs is found."""
