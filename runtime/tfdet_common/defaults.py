"""How often and how long the suite runs where nobody says otherwise: these numbers stand nowhere else."""

import collections

# repeats: of a process.  processes: fresh processes of a case.  seconds, mebibytes: what one process may take.
Run = collections.namedtuple("Run", "repeats processes seconds mebibytes")

RUN = Run(repeats=10, processes=2, seconds=120.0, mebibytes=4096)
# Where a bundle is carried to: a GPU at hand for minutes, so that it has to show more of each case.
CARRIED_TO_GPU = Run(repeats=50, processes=3, seconds=120.0, mebibytes=16384)
MOST = 1000000  # repeats of a process, and processes of a case: more would take years
