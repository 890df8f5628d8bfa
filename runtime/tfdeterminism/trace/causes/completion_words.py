"""Advice against an order in which threads, tasks or processes finish, in words that follow from the recorded call."""

import re

from ..schema.calls import BY_FIRST, CALLS_BACK, GIVES_UP

BY_INDEX = "take results in the order of submission, or put each where it belongs by its index"
IN_TURN = (
    "let each task end before the next begins, or share nothing between them (a generator, a list, a counter): give "
    "each its number and its own place when it is made"
)
_ONE_WORKER = "use one worker"
_NO_TIMEOUT = "wait without a timeout: whether something is there in time follows from how fast the others are"
_NUMBERED = "send the number of its task with each item of the queue, and order by it: a queue gives what comes first"
_NOT_THE_FIRST = "wait for all tasks, and go through them in the order of submission: which is the first differs"
NOT_THE_SETS = "go through the tasks in the order of submission, not through the sets that wait() returns"
_ASK_FOR_ORDER = "ask for the elements in their order"
_STARTS = ("start", "fork", "submit", "apply_async", "create_task", "ensure_future", "gather")
_WORDS = {  # {recorded call: advice}
    "as_completed": BY_INDEX,
    "imap_unordered": BY_INDEX,
    "apply_async" + CALLS_BACK: BY_INDEX,
    "wait": NOT_THE_SETS,
    "wait" + BY_FIRST: _NOT_THE_FIRST,
    "get": _NUMBERED,
    "put": _NUMBERED,
    "get_nowait": _NO_TIMEOUT,
    "put_nowait": _NO_TIMEOUT,
}
_IN_TURN_EDIT = re.compile(
    r"(?<![.\w])map\(|\.start\(\), .*\.join\(\)|future: \(future\.exception\(\), future\)|\[await "
)
_SETS_EDIT = re.compile(r" = \[one for one in ")
_COUNT_EDIT = re.compile(r"\b(?:workers|num_workers|max_workers|processes|num_parallel_calls)\s*=\s*1\b")


def words(new_lines, calls):
    """Return the advice in one line.

    new_lines: the lines that an edit writes, [] for no edit; calls: names of the recorded calls.
    """
    for edit, advice in ((_SETS_EDIT, NOT_THE_SETS), (_IN_TURN_EDIT, IN_TURN), (_COUNT_EDIT, _ONE_WORKER)):
        if any(map(edit.search, new_lines)):
            return advice
    taking = [name for name in calls if name not in _STARTS]  # a line that starts tasks and takes their results
    return "; ".join(dict.fromkeys(map(_words_of_call, taking or calls))) or BY_INDEX


def _words_of_call(name):
    if name in _STARTS:
        return IN_TURN
    if name.endswith(GIVES_UP):
        return _NO_TIMEOUT
    if "=" in name:  # an argument or an option, such as in_order=False
        return "{} ({})".format(_ASK_FOR_ORDER, name.replace("False", "True"))
    return _WORDS.get(name, BY_INDEX)
