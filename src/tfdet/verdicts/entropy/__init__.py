"""Rules of `tfdet check`, one per module, that find inputs of a program which can differ between runs, by its text."""
