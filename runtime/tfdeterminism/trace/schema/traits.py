"""The vocabulary of a definition: its traits and its attributes.

A framework's backend gives each op its traits, and the recorder writes them into the trace. What compares traces asks
for traits alone: it knows no op of any framework by name.
"""

# Traits: what holds of every run of such an op, so that the type alone decides it.
RANDOM = "random"                    # draws random numbers
READS_HOST = "reads_host"            # gives what Python or another process hands in: constants, placeholders, arguments
READS_FILE = "reads_file"            # gives what it reads from a file by itself
LOADS = "loads"                      # gives what the framework's own loader has read from a file
FORWARDS = "forwards"                # hands on (parts of) what it gets: no cause while anything that feeds it differs
COPIES = "copies"                    # gives the bytes that it gets, in another place or another process
LOOPS = "loops"                      # runs its body again and again
NEXT_ITERATION = "next_iteration"    # what it gives, a loop's next iteration gets
READS_ALL = "reads_all"              # reads a variable as a whole, not some rows
OVERWRITES = "overwrites"            # sets a variable, whatever its value was before
ORDER_DEPENDENT = "order_dependent"  # writes a variable by arithmetic that is no chance: only its place among the
#                                      other uses of the variable decides what it leaves
RECEIVES = "receives"                # gives what another process sent: no cause while that process has one
PIPELINE = "pipeline"                # describes an input pipeline
SEED_GENERATOR = "seed_generator"    # makes the seeds of an input pipeline
PARALLEL = "parallel"                # a stage of an input pipeline that runs in several threads
SEED_ARITHMETIC = "seed_arithmetic"  # may lie between a seed from Python and the op that draws with it
SUMS_ROWS = "sums_rows"              # adds up the rows of a sparse gradient
FORWARDS_ROWS = "forwards_rows"      # lies between the gradient that gives the rows of a sparse one, and what adds them
TRAITS = frozenset((RANDOM, READS_HOST, READS_FILE, LOADS, FORWARDS, COPIES, LOOPS, NEXT_ITERATION, READS_ALL,
                    OVERWRITES, ORDER_DEPENDENT, RECEIVES, PIPELINE, SEED_GENERATOR, PARALLEL, SEED_ARITHMETIC,
                    SUMS_ROWS, FORWARDS_ROWS))

# Attributes of one definition, with their types; each is left out where it does not hold.
ATTRIBUTES = {
    "seed": int, "seed2": int,  # the op's own seeds; both 0: none was given
    "unordered": str,           # why nothing says whether it runs before or after another op; it need not show
    "boundary": str,            # "begin", "end", "exit": a variable read where recording does, or the program ends
    "preexisting": bool,        # made before recording began
    "uninitialized": bool,      # memory that nothing has written all of
    "prefetch": bool,           # feeds a queue in a thread of its own: how often it runs is chance
    "deterministic": bool,      # False: a pipeline that may give its elements in any order
    "unseeded": bool,           # a pipeline that draws without a seed
    "created_by": str,          # the library that made a value from Python, such as "keras"
    "from_file": bool,          # a value from Python that equals an array read from a file
    "loss": bool,               # a gradient is taken of it
    "workers": int,             # processes of a data loader
    "argument_index": int,      # the place among the arguments of a function
    "forward_type": str,        # type of the op whose gradient it is
    "gradient_of": str,         # the family of ops whose gradient an op of this type computes
    "family": str,              # what all versions of this op type are called, where that is not the type itself
}


def are_valid(traits, attributes):
    """Does a definition hold only what this vocabulary has? traits: a list; attributes: a dict."""
    return all(isinstance(one, str) and one in TRAITS for one in traits) and all(
        name in ATTRIBUTES and type(value) is ATTRIBUTES[name] for name, value in attributes.items())
