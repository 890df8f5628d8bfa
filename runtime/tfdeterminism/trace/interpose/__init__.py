"""The interposition inside of the user's program and its child processes, which notes and pins nondeterministic values.

The hook (capture/hook/sitecustomize.py) loads this package before the program's first import, under a name of its own
and without the packages around it, so that no module keeps a function that was not interposed. It needs the standard
library alone, and Python 3.7 or later.
"""
