"""Key ids of eager ops: the same line of the program has the same ids in each step.

A definition is the dict that describes one output of an op in the trace file (schema/format.py); its id is the key of
the output's records.
"""

import collections

from . import pool_tasks

# The thread and replica of an op; if a graph calls a Python function that runs it: the function's name, and a number
# (trace) that distinguishes the graph's ops that call it. "" and 0 for none.
CallerIdentity = collections.namedtuple("CallerIdentity", "thread replica function trace")

_FED_LIMIT = 64    # inputs of a definition
_NTH_LIMIT = 4096  # ops of one line and type in one step that get keys of their own


class EagerKeys(object):
    """The ids of the eager ops of one process. Thread-safe.

    lock: the recorder's; definitions: the recorder's Definitions.
    """

    def __init__(self, lock, definitions):
        self._lock = lock
        self._definitions = definitions
        self._ids = {}
        self._fed = {}        # id: (definition, ids of all that ever fed it)
        self._by_inputs = {}  # (op, ids of inputs): (node, stack)
        self._nth = {}

    def key(self, op, stack, output, caller, inputs, occurrence, make_fields=None, **fields):
        """Return the id of an op's output, by its type, the user's line, and its number among these in the step.

        caller: a CallerIdentity; make_fields(): returns more fields, and is called once.
        """
        place = tuple(stack[0][:2]) if stack else ()
        return self.key_at(op, place, output, caller, inputs, occurrence, lambda: stack, make_fields, fields)

    def key_at(self, op, place, output, caller, inputs, occurrence, stack, make_fields=None, fields=None):
        """Like key(). place: (file, line) or (); stack(): returns the stack of that line, called at most once."""
        name = caller, op, place, occurrence, output
        with self._lock:
            number = self.find_known(name, inputs)
            if number is not None:
                return number
            number = self._ids.get(name)
            if number is None:
                stack, fields = stack(), fields or {}
                place = "{}:{}".format(stack[0][0], stack[0][1]) if stack else "?"
                fields = dict(caller._asdict(), **dict(fields, **(make_fields() if make_fields is not None else {})))
                definition = self._definitions.add(op=op, node="{}@{}#{}".format(op, place, occurrence), output=output,
                                                   stack=stack, file=stack[0][0] if stack else None,
                                                   line=stack[0][1] if stack else 0,
                                                   inputs=sorted(set(inputs)), **fields)
                number = definition["id"]
                self._fed[number] = (definition, set(inputs))
                self._ids[name] = number  # last: find_known() reads both without the lock
                self._by_inputs[op, tuple(inputs)] = self.describe(number)
                return number
            definition, all_inputs = self._fed[number]  # the output has a new input this time
            all_inputs.update(inputs)
            definition["inputs"] = sorted(all_inputs)
            self._definitions.write_again(definition)
            return number

    def find_known(self, name, inputs):
        """Return the id that key_at() would return if it needs no update, else None.

        name: (caller, op, place, occurrence, output).
        """
        number = self._ids.get(name)  # without the lock, because this runs for each op
        if number is not None:
            fed = self._fed[number][1]
            if fed.issuperset(inputs) or len(fed) >= _FED_LIMIT:
                return number
        return None

    def add_inputs(self, key, other):
        """Add an input to a definition. key: id of the definition; other: id of the input."""
        with self._lock:
            definition, all_inputs = self._fed[key]
            if other in all_inputs:
                return
            all_inputs.add(other)
            definition["inputs"] = sorted(all_inputs)
            self._definitions.write_again(definition)

    def add_attrs(self, key, **attrs):
        """Add attributes to a definition."""
        with self._lock:
            definition = self._fed[key][0]
            if not set(attrs.items()) <= set(definition["attrs"].items()):
                definition["attrs"] = dict(definition["attrs"], **attrs)
                self._definitions.write_again(definition)

    def describe(self, key):
        """Return (node, stack) of an op's output."""
        definition = self._fed[key][0]
        return definition["node"], definition["stack"]

    def name_of(self, key):
        """Return (function, trace, node) of an op's output."""
        definition = self._fed[key][0]
        return definition["function"], definition["trace"], definition["node"]

    def find_by_inputs(self, op, inputs):
        """Return (node, stack) of an op of that type with these inputs, or None."""
        return self._by_inputs.get((op, tuple(inputs)))

    def name_variable(self, keys, label):
        """Set the name of the variable that these ops read or wrote."""
        with self._lock:
            for key in keys:
                definition = self._fed[key][0]
                definition["variable"] = label
                self._definitions.write_again(definition)

    def next_occurrence(self, *name):
        """Return how often this was called with the name in this step, or in this task, from 0."""
        task = pool_tasks.current_task()
        counts = self._nth if task is None else task.counts
        with self._lock:
            count = counts.get(name, 0)
            counts[name] = count + 1
            return count if count < _NTH_LIMIT else _NTH_LIMIT

    def on_step_end(self):
        self._nth.clear()
