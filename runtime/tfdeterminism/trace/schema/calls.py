"""Names of calls in ledgers from which advice follows; those of interpose.kinds, which imports nothing of this tool."""

# Behind the name of a call: it has a timeout, waits for the first task, or calls a function with the result.
GIVES_UP, BY_FIRST, CALLS_BACK = " with a timeout", " for the first", " with a callback"
JOINED = "joined"  # the program waited for the end of the thread
TEMPORARY = "a temporary name"
TIMERS = ("alarm", "setitimer")
