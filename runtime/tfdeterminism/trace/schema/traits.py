"""The vocabulary of a definition: its traits and its attributes.

A framework's backend gives each op its traits, and the recorder writes them into the trace. The comparison of traces
uses traits alone: it knows no op of any framework by name. A definition says what one output of one op is (format.py).
"""

# Traits: properties of every run of such an op, which its type alone decides.
RANDOM = "random"                    # draws random numbers
READS_HOST = "reads_host"            # returns a value from Python or another process: constant, placeholder, argument
READS_FILE = "reads_file"            # returns what it reads from a file itself
LOADS = "loads"                      # returns what the framework's own loader has read from a file
FORWARDS = "forwards"                # returns (parts of) its inputs: not a cause while any of them differs
COPIES = "copies"                    # returns the bytes of its input, in another place or another process
LOOPS = "loops"                      # runs its body repeatedly
NEXT_ITERATION = "next_iteration"    # passes its input to the next iteration of a loop
READS_ALL = "reads_all"              # reads a variable as a whole, not some rows
OVERWRITES = "overwrites"            # sets a variable, independently of its old value
ORDER_DEPENDENT = "order_dependent"  # writes a variable by deterministic arithmetic: the result depends only on its
#                                      order among the other uses of the variable
RECEIVES = "receives"                # returns what another process sent: not a cause while that process has one
PIPELINE = "pipeline"                # describes an input pipeline
SEED_GENERATOR = "seed_generator"    # makes the seeds of an input pipeline
PARALLEL = "parallel"                # a stage of an input pipeline that runs in several threads
SEED_ARITHMETIC = "seed_arithmetic"  # may lie between a seed from Python and the op that draws with it
SUMS_ROWS = "sums_rows"              # adds up the rows of a sparse gradient
FORWARDS_ROWS = "forwards_rows"      # may lie between the op that computes the rows of a sparse gradient and their sum
TRAITS = frozenset((RANDOM, READS_HOST, READS_FILE, LOADS, FORWARDS, COPIES, LOOPS, NEXT_ITERATION, READS_ALL,
                    OVERWRITES, ORDER_DEPENDENT, RECEIVES, PIPELINE, SEED_GENERATOR, PARALLEL, SEED_ARITHMETIC,
                    SUMS_ROWS, FORWARDS_ROWS))

# Attributes of one definition, with their types; an attribute that does not apply is left out.
ATTRIBUTES = {
    "seed": int, "seed2": int,  # the op's own seeds; both are 0 if none was given
    "unordered": str,           # why its order relative to another op is undefined; the order need not matter
    "boundary": str,            # "begin", "end", "exit": a variable read where recording does, or the program ends
    "preexisting": bool,        # made before recording began
    "uninitialized": bool,      # memory of which a part is not written
    "prefetch": bool,           # feeds a queue in its own thread: it is chance how often it runs
    "deterministic": bool,      # False: a pipeline that may return its elements in any order
    "unseeded": bool,           # a pipeline that draws without a seed
    "created_by": str,          # the library that made a value from Python, such as "keras"
    "from_file": bool,          # a value from Python that equals an array read from a file
    "loss": bool,               # a gradient is taken of it
    "workers": int,             # processes of a data loader
    "argument_index": int,      # the place among the arguments of a function
    "forward_type": str,        # type of the op whose gradient it is
    "gradient_of": str,         # the family of ops whose gradient an op of this type computes
    "family": str,              # common name of all versions of this op type, if it is not the type itself
}


def are_valid(traits, attributes):
    """Return whether this vocabulary has all traits (a list) and attributes (a dict) of a definition."""
    return all(isinstance(trait, str) and trait in TRAITS for trait in traits) and all(
        name in ATTRIBUTES and type(value) is ATTRIBUTES[name] for name, value in attributes.items())
