"""The default numbers of runs, limits of time and memory, and size of the printed table; no other file repeats them."""

import collections

# repeats: in one process.  processes: fresh processes of one case.  seconds, mebibytes: limits of one process: wall
# clock, resident memory.
RunParameters = collections.namedtuple("RunParameters", "repeats processes seconds mebibytes")

RUN_DEFAULTS = RunParameters(repeats=10, processes=2, seconds=120.0, mebibytes=4096)
# For a bundle on a host with a GPU, which is available for minutes: more repeats of each case.
BUNDLE_GPU_DEFAULTS = RunParameters(repeats=50, processes=3, seconds=120.0, mebibytes=16384)
MAX_TABLE_ROWS = 24  # rows that a run prints by default: as many as a terminal shows at once
MAX_COUNT = 1000000  # the largest number of repeats, and of processes: more would take years
