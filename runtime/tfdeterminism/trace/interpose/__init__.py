"""Inside the user's program and the Pythons that it starts: notes and pins what another run could get otherwise.

The hook (capture/hook/sitecustomize.py) loads this package before the program's first import, under a name of its own
and without the packages around it, so that no module keeps a function that was not interposed. It needs the standard
library alone, and Python 3.7 or later.
"""
