"""The classes of fault that a report names, and the kinds of difference that lead to them."""

import enum


class Fault(enum.Enum):
    """The kind of fault that makes two runs differ. The value is its name in reports."""

    STRUCTURE = "structure"                    # the two programs did not do the same things
    ORDER = "order only"                       # the same values, in another order
    UNORDERED = "unordered access"             # nothing says which of two accesses comes first
    FILE = "file"                              # a file had other contents
    UNINITIALIZED = "uninitialized memory"     # memory was read that nothing had written
    PIPELINE = "input pipeline"                # the pipeline gave other elements, or gave them in another order
    SEED = "seed or state"                     # random numbers, or a state that was there before
    HOST_VALUE = "Python feed"                 # Python handed in another value
    UNEXPLAINED = "unexplained"                # its inputs agree, its output differs, and nothing says why
    KERNEL_RACE = "kernel race"                # the same, and run alone on these inputs the op differs, too
    NOT_AT_LEVEL = "not known at this level"   # weights, losses and layers tell that something differs, not what


class CauseKind(enum.Enum):
    """The reason why a record is a cause."""

    VALUE = "value"                        # its inputs agree, its output differs
    STRUCTURE = "structure"                # one run has it, the other has not, or other inputs feed it
    ORDER = "order"                        # its values are those of the other run, in another order
    UNORDERED = "unordered"                # nothing orders it and another access; its attribute says why
    UNEXPLAINED = "unexplained"            # the first that differs, where none stands out as a cause
    UNRECORDED_WRITE = "unrecorded write"  # what wrote the variable that it reads was not recorded
