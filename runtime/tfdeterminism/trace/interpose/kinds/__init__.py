"""The kinds of nondeterminism, roughly from the finest pin to the coarsest.

A pin gives a program the same value in every run; a coarse one removes other nondeterminism, too.
"""

from .addresses import Addresses
from .background_thread import JOINED, RUNS_ON, WAITS, BackgroundThread
from .clock import TIMERS, Clock
from .completion import BY_FIRST, CALLS_BACK, GIVES_UP, Completion
from .environment import Environment
from .files import Files
from .hash_seed import HashSeed
from .listing import Listing
from .machine import Machine
from .memory import Memory
from .mtime import Mtime
from .network import Network
from .one_thread import OneThread
from .one_worker import OneWorker
from .pid import Pid
from .processors import Processors
from .random_numbers import FIRST_DRAW, LATER_DRAW, TEMPORARY, TEMPORARY_NAME, RandomNumbers
from .schedule import Schedule
from .switches import Switches
from .system import ACTS, System
from .tensor_fusion import TensorFusion

__all__ = [
    "ACTS",
    "ALL",
    "BY_FIRST",
    "BY_NAME",
    "CALLS_BACK",
    "FIRST_DRAW",
    "GIVES_UP",
    "JOINED",
    "LATER_DRAW",
    "RUNS_ON",
    "TEMPORARY",
    "TEMPORARY_NAME",
    "TIMERS",
    "WAITS",
    "Addresses",
    "BackgroundThread",
    "Schedule",
]

ALL = (
    HashSeed,
    Files,
    Listing,
    Mtime,
    Pid,
    Clock,
    RandomNumbers,
    Completion,
    Memory,
    Network,
    System,
    Machine,
    Environment,
    Processors,
    Addresses,
    TensorFusion,
    Schedule,
    Switches,
    OneThread,
    OneWorker,
    BackgroundThread,
)
BY_NAME = {kind.name: kind for kind in ALL}
