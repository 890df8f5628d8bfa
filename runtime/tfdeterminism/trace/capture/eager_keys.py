"""Key ids of ops that run one by one: the same line of the program has the same ids in each step."""

import collections

from . import pool_tasks

# Which thread and replica it is, and which call of a Python function by a graph: "" and 0 for none.
CallerIdentity = collections.namedtuple("CallerIdentity", "thread replica function trace")

_FED_LIMIT = 64    # ids that are named as what feeds one
_NTH_LIMIT = 4096  # ops of one line and type in one step that get keys of their own


class EagerKeys(object):
    """definitions: the recorder's, lock too. Thread-safe."""

    def __init__(self, lock, definitions):
        self._lock = lock
        self._definitions = definitions
        self._ids = {}
        self._fed = {}        # id: (definition, ids of all that ever fed it)
        self._by_inputs = {}  # (op, ids of inputs): (node, stack)
        self._nth = {}

    def key(self, op, stack, output, who, inputs, nth, more=None, **fields):
        """The id of an op's output: by type, the user's line, and how many such came in this step. who: a
        CallerIdentity; more(): more fields, which are asked for once."""
        place = tuple(stack[0][:2]) if stack else ()
        return self.key_at(op, place, output, who, inputs, nth, lambda: stack, more, fields)

    def key_at(self, op, place, output, who, inputs, nth, stack, more=None, fields=None):
        """The same by a place, (file, line) or (). stack(): what it is the innermost of, asked for once."""
        name = who, op, place, nth, output
        with self._lock:
            number = self.find_known(name, inputs)
            if number is not None:
                return number
            number = self._ids.get(name)
            if number is None:
                stack, fields = stack(), fields or {}
                place = "{}:{}".format(stack[0][0], stack[0][1]) if stack else "?"
                fields = dict(who._asdict(), **dict(fields, **(more() if more is not None else {})))
                made = self._definitions.add(op=op, node="{}@{}#{}".format(op, place, nth), output=output,
                                             stack=stack, file=stack[0][0] if stack else None,
                                             line=stack[0][1] if stack else 0,
                                             inputs=sorted(set(inputs)), **fields)
                number = self._ids[name] = made["id"]
                self._fed[number] = (made, set(inputs))
                self._by_inputs[op, tuple(inputs)] = self.describe(number)
                return number
            definition, known = self._fed[number]  # it is fed from elsewhere this time
            known.update(inputs)
            definition["inputs"] = sorted(known)
            self._definitions.write_again(definition)
            return number

    def find_known(self, name, inputs):
        """What key_at() gives for an output that has been there, and of which nothing new is to be said; None for any
        other. name: (who, op, place, nth, output)."""
        with self._lock:
            number = self._ids.get(name)
            if number is not None:
                fed = self._fed[number][1]
                if fed.issuperset(inputs) or len(fed) >= _FED_LIMIT:
                    return number
            return None

    def add_inputs(self, key, other):
        """What has this key gets what has the other, from now on."""
        with self._lock:
            definition, known = self._fed[key]
            if other in known:
                return
            known.add(other)
            definition["inputs"] = sorted(known)
            self._definitions.write_again(definition)

    def add_attrs(self, key, **attrs):
        """Say something more of what has this key."""
        with self._lock:
            definition = self._fed[key][0]
            if not set(attrs.items()) <= set(definition["attrs"].items()):
                definition["attrs"] = dict(definition["attrs"], **attrs)
                self._definitions.write_again(definition)

    def describe(self, key):
        """(node, stack) of an op's output."""
        definition = self._fed[key][0]
        return definition["node"], definition["stack"]

    def name_of(self, key):
        """(function, trace, node) of it."""
        definition = self._fed[key][0]
        return definition["function"], definition["trace"], definition["node"]

    def find_by_inputs(self, op, inputs):
        """(node, stack) of an op of that type with these inputs, or None."""
        return self._by_inputs.get((op, tuple(inputs)))

    def name_variable(self, keys, label):
        """What these ops read or wrote has got its name."""
        with self._lock:
            for key in keys:
                definition = self._fed[key][0]
                definition["variable"] = label
                self._definitions.write_again(definition)

    def next_occurrence(self, *name):
        """How often this name was asked for in this step, or in this task, from 0."""
        task = pool_tasks.current_task()
        counts = self._nth if task is None else task.counts
        with self._lock:
            count = counts.get(name, 0)
            counts[name] = count + 1
            return count if count < _NTH_LIMIT else _NTH_LIMIT

    def on_step_end(self):
        self._nth.clear()
