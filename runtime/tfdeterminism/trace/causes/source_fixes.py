"""Edits of the user's own source lines that remove a proven cause, and the advice in words for each kind of it.

A kind is one sort of nondeterminism that the interposition pins, such as "hash-seed" (interpose/kinds).
An edit is offered only where the line has an expression that a rule recognizes. Rules need the source positions that
`ast` gives in Python 3.8 and later; older versions of Python get the words alone.
"""

import ast
import re
import sys

from .. import backends
from ..schema import calls as call_names
from . import completion_words, result_edits

SEED = "0"
_JoinedStr = getattr(ast, "JoinedStr", ())  # f"..."
_Constant = getattr(ast, "Constant", ())  # Python 3.6 and later; older ones get no fix
_WORDS = {
    "hash-seed": "iterate over sets in sorted order, and digest without hash()",
    "files": "begin each run from the same files: remove or restore what the run before wrote, or name it by "
    "all that it depends on",
    "listing": "sort the listing",
    "mtime": "order by name, or use what is in the file, not when it was written",
    "pid": "use a number that you choose (a rank, a worker's index), not the process's",
    "clock": "use a number that you choose, not the time; count steps, not seconds",
    "random": "draw from a generator that has a seed, or use a number or a name that you choose",
    "memory": "write memory before it is read (zeros agree, and hide that something was not written)",
    "addresses": "use a value of the objects (a name, an index), not id(), a text with an address or a set's order",
    "tensor-fusion": "switch tensor fusion off before hvd.init(), or sum the tensors as a group (grouped_allreduce)",
    "switches": "switch to deterministic ops",
    "one-thread": "use one thread, or the op's deterministic form",
    "one-worker": "use one worker, or give each worker its own seed and its own place for results",
    "background-thread": "do what the thread does at chosen steps of the main loop, or let it make a number of turns "
    "that you choose, and wait for its end before what it changes is used",
    "system": "use a number that you choose, not what the system or another program answers",
    "schedule": "switch to deterministic ops",
}
_SORTS = ("sorted({})", "sorted({}, key=repr)", "sorted({}, key=sorted)")  # of values; of any; of sets
_DIGEST = "__import__('zlib').crc32(repr({}).encode())"  # the same in each process, unlike hash()
_NUMBERED = (  # the text of an object, with a number in place of its address
    "__import__('re').sub('0x[0-9a-f]+', lambda found: str(_OBJECTS.setdefault(found.group(), len(_OBJECTS))), {})"
)
_AT_ONCE = "(lambda future: (future.exception(), future)[1])({})"  # waits for a task and returns its future
_JOINED_WORDS = (
    "do what the thread does at chosen steps of the main loop, or let it make a number of turns that you choose: when "
    "it is told to end, it has made another number in each run"
)
_TEXT_WORDS = "give the objects names or numbers of their own, in place of the address in the text"
_SQL_TIME_WORDS = "give SQL a time that you choose, not 'now'"
_TIMER_WORDS = "end after a number of steps that you choose, not when the signal of a timer comes"
_NAME_WORDS = "keep names of temporary files out of results, and of what is sorted or seeded, or choose the names"
_SQL_WORDS = "order by a column, and shuffle in Python with a seed"
_SORT_WORDS = "iterate over the set in sorted order"
_DIGEST_WORDS = "digest it without hash(), which gives something else in each process"
_ITERATING = tuple(  # functions and methods that iterate over an argument
    (
        "list tuple enumerate iter map filter zip array tensor join extend fromkeys constant Counter chain "
        "dict OrderedDict asarray sum"
    ).split()
)
_LISTINGS = ("listdir", "glob", "iglob", "rglob", "iterdir")
_GENERATORS = tuple(  # functions that make or seed a generator, by chance if they get no seed
    "default_rng RandomState Random seed SystemRandom PCG64 SeedSequence Philox MT19937".split()
)
_SEEDED_BY = tuple(  # functions that take a seed
    ("seed Random RandomState default_rng manual_seed set_seed set_random_seed PRNGKey SeedSequence").split()
)
_SYSTEM_CALLS = tuple(  # functions that return the state of the system
    "getloadavg virtual_memory swap_memory disk_usage statvfs getrusage memory_info memory_full_info "
    "mem_get_info times".split()
)
_CPU_TIMES = ("user", "system", "elapsed", "children_user", "children_system", "times")
_TIMES = tuple(
    "time time_ns perf_counter perf_counter_ns monotonic monotonic_ns now utcnow timestamp".split()
)
_DATES = ("now", "utcnow", "today")  # methods of datetime; the other names are functions of the module time
_COUNTERS = {  # {how the edits end a call of the counter: the lines that define it}
    "_TICKS)": ["import itertools", "_TICKS = itertools.count()  # calls, not seconds: each is a millisecond"],
    "len(_OBJECTS))": ["_OBJECTS = {}  # a number for each object, in the order of first use"],
    "_NAMES)": ["import itertools", "_NAMES = itertools.count()  # a number for each name"],
}
_SQL_RANDOM_ORDER = re.compile(r"(order\s+by\s+)random\s*\(\s*\)", re.IGNORECASE)  # SQLite's has no seed
_SQL_NOW = re.compile(r"'now'|\bcurrent_(?:timestamp|date|time)\b", re.IGNORECASE)
_SQL_TIME = "'2000-01-01 00:00:00'"
_SQL_ROW_ORDER = re.compile(r"order\s+by\s+rowid", re.IGNORECASE)  # how the edit of such a text ends
_FILE_TIMES = tuple("st_{}time{}".format(kind, unit) for kind in "mca" for unit in ("", "_ns"))
_TEXTS = ("strftime", "isoformat", "str", "ctime", "asctime")  # functions that return a string
_COUNTS = ("workers", "num_workers", "max_workers", "processes", "num_parallel_calls")  # arguments
_POOLS = ("Pool", "ThreadPool", "ThreadPoolExecutor", "ProcessPoolExecutor")
_NUMPY_ZEROED = {"empty": "zeros", "ndarray": "zeros", "empty_like": "zeros_like"}
_SEED_LINES = {
    "random": ["import random", "random.seed({})"],
    "numpy": ["import numpy", "numpy.random.seed({})"],
}

_EDIT_WORDS = (  # (kind, a part of the lines that the edit writes, advice)
    ("addresses", _NUMBERED.partition("{}")[0], _TEXT_WORDS),
    ("addresses", " = [one for one in ", completion_words.NOT_THE_SETS),
    ("clock", _SQL_TIME, _SQL_TIME_WORDS),
    ("system", "next(_TICKS)", _WORDS["clock"]),
)
_CALL_WORDS = (  # (kind, recorded calls, advice where no edit is known)
    ("clock", call_names.TIMERS, _TIMER_WORDS),
    ("addresses", ("an object's text",), _TEXT_WORDS),
    ("random", (call_names.TEMPORARY, "random.Random()", "urandom"), _NAME_WORDS),
)


def advice(kind, new_lines=(), calls=()):
    """Return the advice for a kind of nondeterminism, in one line.

    new_lines: the lines that the edit writes; calls: names of the recorded calls at the lines of the cause.
    """
    if kind in ("hash-seed", "addresses") and any(_DIGEST.partition("{}")[0] in line for line in new_lines):
        return _DIGEST_WORDS
    if kind == "hash-seed" and new_lines:
        return _SORT_WORDS
    if kind == "completion":
        return completion_words.words(new_lines, calls)
    if kind == "background-thread" and call_names.JOINED in calls:
        return _JOINED_WORDS
    written = "\n".join(new_lines)
    for other_kind, text, words in _EDIT_WORDS:
        if kind == other_kind and text in written:
            return words
    for other_kind, names, words in _CALL_WORDS:
        if kind == other_kind and not new_lines and calls and set(calls) <= set(names):
            return words
    if kind == "random" and any(map(_SQL_ROW_ORDER.search, new_lines)):
        return _SQL_WORDS
    return _WORDS[kind]


def changes_of_line(kind, source, line, in_processes=False):
    """Return edited texts of the whole file with one line changed, the likeliest edit first.

    source: the text of the file; line: the number of the line; in_processes: whether several processes run it, which
    should draw different numbers.
    """
    code = _parse(source, line)
    if code is None:
        return []
    names = _argument_names(_function_around(code.tree, line)) if kind == "random" and in_processes else []
    if names:
        by_arguments = _Code(source, code.tree, line, _digest_of(names))
        texts = [_apply_edits(source, [edit]) for edit in _seed_generators(by_arguments)]
        return texts + changes_of_line(kind, source, line)
    changes = [[edit] for edit in _RULES[kind](code)] if kind in _RULES else []
    if kind == "addresses" and changes:
        changes.append(changes[0] + _sets_as_dicts(code, changes[0]))
    if kind in ("addresses", "completion"):
        changes = result_edits.ordered_waits(code) + changes
    if kind == "system":
        changes += _use_chosen_measurements(code)
    if kind == "clock":
        changes = [_choose_sql_times(code)] + changes
    if kind == "clock" and code.calls(_TIMES + _DATES):
        changes.append(_count_ticks(code))
    return [text for text in (_apply_edits(source, edits) for edits in changes) if text != source]


def names_in_line(source, line):
    """Return the names of variables, attributes and functions that a line of a file uses."""
    code = _parse(source, line)
    return {name for node in code.nodes for name in _names_of(node)} if code is not None else set()


def sets_as_dicts(source, names):
    """Return the file's text with the sets of some names replaced by dicts, which keep the order of insertion.

    names: the names of variables, and of functions whose sets are replaced as well.
    """
    code = _parse(source)
    if code is None:
        return source
    functions = [node for node in ast.walk(code.tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    assignments = (node for node in ast.walk(code.tree) if any(_names_of(target) & names for target in _targets(node)))
    values = [getattr(node, "value", None) for node in assignments]
    values += [node for function in functions if function.name in names for node in ast.walk(function)]
    edits = [code.replace(node, text) for node in values for text in _as_dict(code, node)]
    for call in (node for node in ast.walk(code.tree) if isinstance(node, ast.Call) and _name(node) == "add"):
        if edits and _names_of(getattr(call.func, "value", call)) & names:
            edits.append(code.replace(call.func, code.text(call.func)[: -len("add")] + "setdefault"))
    return _apply_edits(source, _outermost(edits))


def with_counters(source):
    """Return the text with the definitions of those _COUNTERS that it uses and lacks."""
    for use, lines in sorted(_COUNTERS.items()):
        if use in source and lines[-1] not in source:
            source = with_lines(source, [line for line in lines if line not in source.splitlines()])
    return source


def with_lines(source, lines):
    """Return the text of the main script with statements inserted behind its first imports."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return source
    code, bound = 0, {}
    for node in tree.body:
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, _Constant)
        if not isinstance(node, (ast.Import, ast.ImportFrom)) and not is_text:
            break
        if not is_text:
            names = _imported_names(node)
            bound = names if "*" in names else dict(bound, **names)
        code = node.end_lineno if hasattr(node, "end_lineno") else node.lineno
    old_lines = source.splitlines(True)
    return "".join(old_lines[:code] + [line + "\n" for line in _rename_imports(lines, bound)] + old_lines[code:])


def _imported_names(node):
    """Return {name: module, or None for a member of a module} of an import; "*" is a key if it may bind any name."""
    if isinstance(node, ast.ImportFrom):
        return {alias.asname or alias.name: None for alias in node.names}
    modules = [(alias.asname, alias.name if alias.asname else alias.name.partition(".")[0]) for alias in node.names]
    return {name or module: module for name, module in modules}


def _rename_imports(lines, bound):
    """Return the statements, their imports under new names where the program has bound the name to something else."""
    for line in lines:
        name = line.partition("import ")[2] if line.startswith("import ") else ""
        if name and (bound[name] != name if name in bound else "*" in bound):
            use = re.compile(r"(?<![\w.'\"/]){}\.".format(name))
            lines = [use.sub("_{}.".format(name), other) for other in lines]
            lines[lines.index(line)] = "import {0} as _{0}".format(name)
    return lines


def seed_lines(generator):
    """Return statements that seed a global generator. generator: its name in the ledger, such as "global:numpy"."""
    return [line.format(SEED) for line in _seed_templates(generator)]


def _seed_templates(generator):
    """Return an import and a statement with {} for the seed; empty for a generator that is not a global one."""
    scope, _, module = generator.partition(":")
    if scope != "global":
        return []
    return _SEED_LINES.get(module) or backends.find(module).seed_lines


def seeded_by_arguments(source, line, generator):
    """Return the text in which the function at a line seeds a global generator from its arguments.

    A task then draws the same numbers in every worker. The text is unchanged where no function with arguments is found.
    """
    code = _parse(source)
    function = _function_around(code.tree, line) if code is not None else None
    templates, names = _seed_templates(generator), _argument_names(function)
    if function is None or not templates or not names:
        return source
    number = _digest_of(names)
    begin = function.body[0]
    if isinstance(begin, ast.Expr) and isinstance(begin.value, _Constant) and len(function.body) > 1:
        begin = function.body[1]  # behind what the function says of itself
    if begin.lineno == function.lineno:
        return source
    lines = source.splitlines(True)
    module = templates[0].partition(" ")[2]
    call = templates[1].format(number).replace(module, "__import__({!r})".format(module), 1)
    statement = "{}{}\n".format(" " * begin.col_offset, call)
    return "".join(lines[: begin.lineno - 1] + [statement] + lines[begin.lineno - 1 :])


def _function_around(tree, line):
    """Return the innermost function whose body has the line, or None."""
    functions = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.lineno < line <= (node.end_lineno or 0)
    ]
    return max(functions, key=lambda node: node.lineno) if functions else None


def _argument_names(function):
    arguments = function.args.args if function is not None else []
    return [argument.arg for argument in arguments if argument.arg not in ("self", "cls")]


def _digest_of(names):
    """Return the text of a number that follows from the values of these variables."""
    return _DIGEST.format("({},)".format(", ".join(names)))


def switch_lines(framework):
    return list(backends.find(framework).switch_lines)


def fusion_lines():
    """Return statements that switch Horovod's tensor fusion off."""
    return ["import os", 'os.environ["HOROVOD_FUSION_THRESHOLD"] = "0"  # before hvd.init()']


def thread_lines(framework):
    return list(backends.find(framework).thread_lines)


def remove_file_lines(name):
    """Return statements that remove a file when the program begins. name: relative to the working directory."""
    return [
        "import os",
        "if os.path.exists({0!r}):".format(name),
        "    os.remove({0!r})  # each run begins without it".format(name),
    ]


def _parse(source, line=0):
    """Return the _Code, or None if Python cannot parse the source or gives no positions."""
    if sys.version_info < (3, 8):
        return None
    try:
        return _Code(source, ast.parse(source), line)
    except (SyntaxError, ValueError):
        return None


class _Code(object):
    """The source of a file, and the nodes that touch a line, of the innermost statement and of others on its line.

    seed: the text of the seed that edits give to generators.
    """

    def __init__(self, source, tree, line, seed=SEED):
        self.seed = seed
        self.lines = [text.encode("utf-8") for text in source.splitlines(True)]
        self.source, self.tree = source, tree
        statements = _statements(tree, line)
        nodes = [node for statement in statements for node in ast.walk(statement) if _covers(node, line)]
        self.nodes = list(dict.fromkeys(nodes))
        self.statement = statements[-1] if statements else None

    def calls(self, names):
        """Return the calls of functions or methods with one of these names."""
        return [node for node in self.nodes if isinstance(node, ast.Call) and _name(node) in names]

    def keywords(self, names):
        """Return the values of the keyword arguments with one of these names, of any call."""
        calls = [node for node in self.nodes if isinstance(node, ast.Call)]
        return [keyword.value for call in calls for keyword in call.keywords if keyword.arg in names]

    def text(self, node):
        """Return the source of a node."""
        return ast.get_source_segment(self.source, node) or ""  # novm

    def replace(self, node, text):
        """Return an edit: (first byte, end byte, new text)."""
        starts = [0]
        for line in self.lines:
            starts.append(starts[-1] + len(line))
        return (
            starts[node.lineno - 1] + node.col_offset,
            starts[node.end_lineno - 1] + node.end_col_offset,
            text,
        )


def _covers(node, line):
    first, last = getattr(node, "lineno", None), getattr(node, "end_lineno", None)
    return first is not None and last is not None and first <= line <= last


def _statements(tree, line):
    """Return the statements that cover the line and begin last, the innermost of them last."""
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.stmt) and _covers(node, line)]
    return [node for node in nodes if node.lineno == max(other.lineno for other in nodes)]


def _name(call):
    return call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", None)


def _names_of(node):
    """Return the name of a variable or an attribute as a set, empty for other nodes."""
    return {name for name in (getattr(node, "id", None), getattr(node, "attr", None)) if name}


def _targets(node):
    """Return the targets of an assignment, [] for other nodes."""
    return [node.target] if isinstance(node, ast.AnnAssign) else node.targets if isinstance(node, ast.Assign) else []


def _outermost(edits):
    """Return the distinct edits that lie within no other edit."""
    distinct = sorted(set(edits))
    return [edit for edit in distinct
            if not any(begin <= edit[0] and edit[1] <= end for begin, end, _ in distinct if (begin, end) != edit[:2])]


def _apply_edits(source, edits):
    """Return the source after some edits, each (first byte, end byte, text), none of which overlap."""
    data = source.encode("utf-8")
    for first, end, text in sorted(edits, reverse=True):
        data = data[:first] + text.encode("utf-8") + data[end:]
    return data.decode("utf-8")


def _sort_sets(code):
    iterables = [node.iter for node in code.nodes if isinstance(node, ast.For)]
    iterables += [generator.iter for node in code.nodes for generator in getattr(node, "generators", ())]
    iterables += [argument for call in code.calls(_ITERATING) for argument in call.args]
    by_key = [call for call in code.calls(("sorted", "min", "max")) if call.keywords]  # ties keep the set's order
    iterables += [argument for call in by_key for argument in call.args[:1]]
    iterables = sorted(_unsorted(iterables), key=_set_rank)
    edits = []
    for node in iterables:
        edits += [code.replace(node, text.format(code.text(node))) for text in _SORTS]
    return edits + _take_the_least(code) + _digests(code)


def _digests(code):
    """Return edits that digest the text of what hash() is called with."""
    hashes = [call for call in code.calls(("hash",)) if call.args]
    return [code.replace(call, _DIGEST.format(code.text(call.args[0]))) for call in hashes]


def _take_the_least(code):
    """Return edits of `x = a_set.pop()`, which takes any element."""
    node = code.statement
    if not isinstance(node, ast.Assign) or len(node.targets) > 1 or not isinstance(node.targets[0], ast.Name):
        return []
    call, name = node.value, node.targets[0].id
    if not isinstance(call, ast.Call) or call.args or not isinstance(call.func, ast.Attribute) or _name(call) != "pop":
        return []
    return [code.replace(node, "{0} = min({1}); {1}.remove({0})".format(name, code.text(call.func.value)))]


def _unsorted(nodes):
    """Return the nodes that lie in no call of sorted() among them."""
    calls = [
        node for node in nodes if isinstance(node, ast.Call) and _name(node) == "sorted" and not node.keywords
    ]
    return [node for node in nodes if not any(call is not node and node in ast.walk(call) for call in calls)]


def _set_rank(node):
    """Return a sort key: 0 for a set, 1 for an expression that may be a set, 2 for anything else."""
    if isinstance(node, ast.Call):
        return 0 if _name(node) in ("set", "frozenset", "union", "intersection", "difference") else 2
    if isinstance(node, (ast.Set, ast.SetComp)):
        return 0
    return 1 if isinstance(node, (ast.Name, ast.Attribute, ast.BinOp, ast.Subscript)) else 2


def _sort_listing(code):
    forms = [
        (_LISTINGS, "sorted({})"),
        (("scandir",), "sorted({}, key=lambda entry: entry.name)"),
        (("walk",), "((here, folders.sort() or folders, sorted(names)) for here, folders, names in {})"),
    ]
    in_with = [item.context_expr for item in getattr(code.statement, "items", ())]
    edits = [
        code.replace(call, form.format(code.text(call)))
        for names, form in forms
        for call in code.calls(names)
        if call not in in_with
    ]
    return edits + [code.replace(node, forms[1][1].format(code.text(node))) for node in _entries_of_with(code)]


def _entries_of_with(code):
    """Return the nodes that iterate over what a `with scandir(...) as entries` statement opens."""
    items = [item for item in getattr(code.statement, "items", ()) if item.context_expr in code.calls(("scandir",))]
    names = {getattr(item.optional_vars, "id", None) for item in items} - {None}
    nodes = ast.walk(code.statement) if names else ()
    iterables = [node.iter for node in nodes if isinstance(node, (ast.For, ast.comprehension))]
    return [node for node in iterables if getattr(node, "id", None) in names]


def _use_file_content(code):
    """Return edits that sort by name, and that derive a number from a file's content in place of its time."""
    edits = [code.replace(value, "str") for value in code.keywords(("key",)) if "time" in code.text(value)]
    form = "__import__('zlib').crc32(open({}, 'rb').read())"
    times = [(node, node.value) for node in code.nodes if isinstance(node, ast.Attribute) and node.attr in _FILE_TIMES]
    times = [(node, call) for node, call in times if isinstance(call, ast.Call) and _name(call) in ("stat", "lstat")]
    for node, call in times + [(call, call) for call in code.calls(("getmtime", "getctime", "getatime"))]:
        path = code.text(call.args[0]) if call.args else code.text(getattr(call.func, "value", call))
        edits.append(code.replace(node, form.format(path)))
    return edits


def _use_constant_id(code):
    names = ("pid", "ident", "native_id")
    attributes = [node for node in code.nodes if isinstance(node, ast.Attribute) and node.attr in names]
    calls = code.calls(("getpid", "getppid", "get_ident", "get_native_id"))
    return [code.replace(node, SEED) for node in calls + attributes]


def _use_constant_answer(code):
    """Return edits of numbers and texts that the system or another program answers."""
    answers = [node for node in code.nodes if isinstance(node, (ast.Attribute, ast.Subscript))]
    answers = [node for node in answers if node.value in code.calls(_SYSTEM_CALLS)]
    edits = [code.replace(node, _chosen_number(getattr(node, "attr", _name(node.value)))) for node in answers]
    edits += [code.replace(call, _chosen_number("percent")) for call in code.calls(("cpu_percent", "memory_percent"))]
    programs = code.calls(("check_output", "getoutput"))
    outputs = [_with_methods(code, call) for call in programs]
    edits += [code.replace(node, "{}{!r}".format("" if _is_text(node) else "b", SEED)) for node in outputs]
    return _constant_seeds(code, [node.value for node in answers] + programs) + edits


def _use_chosen_measurements(code):
    """Return [the edit of a measurement of the system that the line assigns: the fields that the file uses], or []."""
    calls = code.calls(_SYSTEM_CALLS)
    statement = code.statement
    if isinstance(statement, ast.Assign) and statement.value in code.calls(("getloadavg",)):
        return [[code.replace(statement.value, "(1.0, 1.0, 1.0)")]]
    fields = ", ".join("{}={}".format(name, _chosen_number(name)) for name in result_edits.fields_used(code, calls))
    return [[code.replace(statement.value, "__import__('types').SimpleNamespace({})".format(fields))]] if fields else []


def _choose_sql_times(code):
    """Return edits of the texts of SQL that ask for the time: those of the line, or else those of the file."""
    for nodes in (code.nodes, ast.walk(code.tree) if code.statement is not None else ()):
        texts = [node for node in nodes if isinstance(node, _Constant) and isinstance(node.value, str)]
        texts = [(node, code.text(node)) for node in texts if _SQL_NOW.search(code.text(node))]
        edits = [code.replace(node, _SQL_NOW.sub(_SQL_TIME, text)) for node, text in texts
                 if text[0] == '"' and _SQL_TIME not in text]
        if edits:
            return edits
    return []


def _chosen_number(name):
    """Return the text of a number in place of one with this name, such as "available" or "percent"."""
    if "time" in name or name in _CPU_TIMES:
        return "(next(_TICKS) / 1000)"
    return {"percent": "50.0", "getloadavg": "1.0"}.get(name, "(1 << 30)")


def _with_methods(code, call):
    """Return the outermost call of a method, such as strip(), of what a call returns."""
    for node in code.nodes:
        function = getattr(node, "func", None)
        if isinstance(node, ast.Call) and isinstance(function, ast.Attribute) and function.value is call:
            return _with_methods(code, node)
    return call


def _is_text(output):
    """Return whether a program's output, as an expression, is a text, not bytes."""
    calls = [node for node in ast.walk(output) if isinstance(node, ast.Call)]
    names = {keyword.arg for call in calls for keyword in call.keywords} | set(map(_name, calls))
    return bool(names & {"text", "encoding", "universal_newlines", "decode", "getoutput"})


def _use_constant_time(code):
    """Return edits of times that seed or index something. Other times stay: a loop until a constant would never end."""
    return _constant_seeds(code, code.calls(_TIMES))


def _constant_seeds(code, times):
    """Return edits of the seeds and indices in which one of these calls, of times or of answers, lies."""
    seeds = [argument for call in code.calls(_SEEDED_BY) for argument in call.args]
    indices = [node.slice for node in code.nodes if isinstance(node, ast.Subscript)]
    indices = [index for index in indices if isinstance(index, (ast.BinOp, ast.Call))]  # not a slice; Python 3.9
    seeds, indices = ([node for node in nodes if any(call in ast.walk(node) for call in times)]
                      for nodes in (seeds, indices))
    parts = [_part_with_time(seed, times) for seed in seeds]
    edits = [code.replace(node, SEED) for node in dict.fromkeys(parts + seeds + indices)]
    return edits + (_assign_constant_seed(code) if times else [])


def _assign_constant_seed(code):
    """Return [the edit of what the statement assigns], if that is a seed, else []."""
    if not isinstance(code.statement, ast.Assign) or not _is_seed(code, code.text(code.statement.targets[0])):
        return []
    value = code.statement.value
    calls = [value] if isinstance(value, ast.Call) else [node for node in ast.walk(value) if isinstance(node, ast.Call)]
    is_text = any(_name(call) in _TEXTS for call in calls)
    return [code.replace(value, repr(SEED) if is_text else SEED)]


def _part_with_time(expression, times):
    """Return the largest part of an expression that has a time and no variable, such as a worker's number."""
    calls = [node for node in ast.walk(expression) if isinstance(node, ast.Call)]
    functions = {node for call in calls for node in ast.walk(call.func)}  # names of functions and of their modules
    if any(isinstance(node, ast.Name) and node not in functions for node in ast.walk(expression)):
        for child in ast.iter_child_nodes(expression):
            if any(call in ast.walk(child) for call in times):
                return _part_with_time(child, times)
    return expression


def _count_ticks(code):
    """Return edits that replace all times of the file by a clock that counts how often it was read."""
    edits = []
    for call in (node for node in ast.walk(code.tree) if isinstance(node, ast.Call)):
        name = _name(call)
        if name in _DATES and isinstance(call.func, ast.Attribute) and not (name == "utcnow" and call.args):
            zone = [code.text(argument) for argument in call.args + [argument.value for argument in call.keywords]]
            text = ", ".join(["next(_TICKS) / 1000"] + zone)
            edits.append(code.replace(call, "{}.fromtimestamp({})".format(code.text(call.func.value), text)))
        elif name in _TIMES and name != "timestamp" and not call.args and not call.keywords:
            text = "next(_TICKS) * 10**6" if name.endswith("_ns") else "(next(_TICKS) / 1000)"
            edits.append(code.replace(call, text))
    return _outermost(edits)


def _is_seed(code, name):
    """Return whether a variable of this name is a seed, or is passed to a function that takes a seed."""
    calls = [node for node in ast.walk(code.tree) if isinstance(node, ast.Call) and _name(node) in _SEEDED_BY]
    passed = {node.id for call in calls for node in ast.walk(call) if isinstance(node, ast.Name)}
    return "seed" in name.lower() or name in passed


def _seed_generators(code):
    edits = []
    generators = [call for call in code.calls(_GENERATORS) if _has_no_seed(call)]
    for call in generators + _system_generators_used(code):
        name = code.text(call.func)
        if _name(call) == "SystemRandom":
            name = name[: -len("SystemRandom")] + "Random" if "." in name else "__import__('random').Random"
        edits.append(code.replace(call, "{}({})".format(name, code.seed)))
    for call in (call for call in code.calls(("seed",)) if _has_no_seed(call) and isinstance(call.func, ast.Attribute)):
        owner = code.text(call.func.value)
        if not owner.endswith("random") or owner.startswith("torch"):  # PyTorch's seed() takes no number
            edits.insert(0, code.replace(call, "{}.manual_seed({})".format(owner, code.seed)))
    for call in code.calls(("from_non_deterministic_state",)):
        arguments = [code.seed] + [code.text(value) for value in call.args]
        arguments += ["{}={}".format(keyword.arg, code.text(keyword.value)) for keyword in call.keywords]
        function = code.text(call.func).replace("from_non_deterministic_state", "from_seed")
        edits.append(code.replace(call, "{}({})".format(function, ", ".join(arguments))))
    for call in code.calls(("choice",)):
        if _is_of_module(code, call, "secrets"):
            edits.append(code.replace(call.func, "__import__('random').Random({}).choice".format(SEED)))
    for call in code.calls(("urandom", "getrandom", "token_bytes")):
        edits += [code.replace(call, "bytes({})".format(code.text(size))) for size in call.args[:1]]
    for call in code.calls(("token_hex",)):
        text = "'{{:0{{}}x}}'.format(next(_NAMES), 2 * ({}))"
        edits += [code.replace(call, text.format(code.text(size))) for size in call.args[:1]]
    for call in code.calls(("uuid4", "uuid1")):
        is_of_module = isinstance(call.func, ast.Attribute)
        module = code.text(call.func.value) if is_of_module else "__import__('uuid')"
        edits.append(code.replace(call, "{}.UUID(int=next(_NAMES))".format(module)))
    edits += [code.replace(call, SEED) for call in code.calls(("randbits", "randbelow"))]
    for seed in (seed for call in code.calls(_GENERATORS) for seed in _seeds_that_may_be_none(call)):
        edits.append(code.replace(seed, "{} if {} is None else {}".format(code.seed, *[code.text(seed)] * 2)))
    for node in code.nodes:
        text = code.text(node) if isinstance(node, _Constant) and isinstance(node.value, str) else ""
        if _SQL_RANDOM_ORDER.search(text):
            edits.append(code.replace(node, _SQL_RANDOM_ORDER.sub(r"\1rowid", text)))
    return edits


def _system_generators_used(code):
    """Return the calls of SystemRandom(), anywhere in the file, that make a generator from which the line draws.

    Its draws come from the kernel, so that the line is the one that draws; no seed reaches this generator.
    """
    drawn_from = {name for call in code.nodes if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
                  for name in _names_of(call.func.value)}
    assigned = [(node, getattr(node, "value", None)) for node in ast.walk(code.tree) if _targets(node)]
    return [value for node, value in assigned if isinstance(value, ast.Call) and _name(value) == "SystemRandom"
            and any(_names_of(target) & drawn_from for target in _targets(node))]


def _has_no_seed(call):
    """Return whether a call has no arguments, or the one argument None."""
    arguments = call.args + [keyword.value for keyword in call.keywords]
    return all(isinstance(value, _Constant) and value.value is None for value in arguments) and len(arguments) < 2


def _seeds_that_may_be_none(call):
    """Return [the only argument of a call] if it is a variable or an attribute, else []."""
    arguments = call.args + [keyword.value for keyword in call.keywords if keyword.arg]
    return [value for value in arguments if len(arguments) == 1 and isinstance(value, (ast.Name, ast.Attribute))]


def _is_of_module(code, call, module):
    """Return whether a call is of a module's function, through the module's name or an import from it."""
    if isinstance(call.func, ast.Attribute):
        return code.text(call.func.value) == module
    imports = [node for node in ast.walk(code.tree) if isinstance(node, ast.ImportFrom) and node.module == module]
    return any((alias.asname or alias.name) == _name(call) for node in imports for alias in node.names)


def _keep_task_order(code):
    edits = []
    for call in code.calls(("as_completed",)):
        tasks = code.text(call.func).startswith("asyncio")
        form = "[asyncio.ensure_future(one) for one in {}]" if tasks else "list({})"
        edits += [code.replace(call, form.format(code.text(futures))) for futures in call.args[:1]]
    for call in code.calls(("imap_unordered",)):
        edits.append(code.replace(call.func, code.text(call.func).replace("imap_unordered", "imap")))
    edits += _callbacks_in_turn(code)
    for call in code.calls(("get", "put")):
        if [keyword.arg for keyword in call.keywords] == ["timeout"] and len(call.args) == (_name(call) == "put"):
            arguments = ", ".join(map(code.text, call.args))
            edits.append(code.replace(call, "{}({})".format(code.text(call.func), arguments)))
    for keyword in code.keywords(("in_order", "deterministic")):
        edits += [code.replace(keyword, "True")] if getattr(keyword, "value", None) is False else []
    statements = [code.statement] + (list(ast.walk(code.tree)) if code.calls(("with_options",)) else [])
    for statement in (statement for statement in statements if isinstance(statement, ast.Assign)):
        value = statement.value
        if code.text(statement.targets[0]).endswith("deterministic") and getattr(value, "value", None) is False:
            edits.append(code.replace(value, "True"))
    for node in _gathers(code):
        coroutines = [code.text(argument.value if isinstance(argument, ast.Starred) else argument)
                      for argument in node.value.args]
        is_list = isinstance(node.value.args[0], ast.Starred)
        text = "[await _one for _one in {}]".format(coroutines[0]) if is_list else \
            "[{}]".format(", ".join("await {}".format(text) for text in coroutines))
        edits.append(code.replace(node, text))
    edits += _start_in_turn(code)
    edits += _tasks_in_turn(code)
    edits += [code.replace(count, "1") for count in code.keywords(_COUNTS)]
    return edits


def _start_in_turn(code):
    """Return edits that let each thread or process end before the next begins."""
    edits = []
    for call in code.calls(("start",)):
        owner = getattr(call.func, "value", None)  # an expression that makes the thread cannot be written twice
        is_named = isinstance(owner, (ast.Name, ast.Attribute, ast.Subscript))
        if isinstance(code.statement, (ast.Expr, ast.For)) and is_named:
            edits.append(code.replace(call, "({0}.start(), {0}.join())".format(code.text(owner))))
    return edits


def _tasks_in_turn(code):
    """Return edits that let each task of an executor end before the next begins, for tasks that share something."""
    if code.calls(("as_completed", "add_done_callback")):
        return []
    methods = [call for call in code.calls(("map", "submit")) if isinstance(call.func, ast.Attribute)]
    return [
        code.replace(call.func, "map") if _name(call) == "map" else code.replace(call, _AT_ONCE.format(code.text(call)))
        for call in methods
        if len(call.args) > (_name(call) == "map") and not (_name(call) == "map" and call.keywords)
    ]


def _callbacks_in_turn(code):
    """Return edits that call back in the order of submission: each result is waited for where its task is submitted."""
    edits = []
    for call in code.calls(("apply_async",)):
        arguments = [code.text(argument) for argument in call.args]
        callbacks = []
        for keyword in call.keywords:
            if keyword.arg == "callback":
                callbacks.append(_text_to_call(code, keyword.value))
            elif keyword.arg != "error_callback":
                arguments.append((keyword.arg + "=" if keyword.arg else "**") + code.text(keyword.value))
        if callbacks:
            function = code.text(call.func)[: -len("_async")]
            edits.append(code.replace(call, "{}({}({}))".format(callbacks[0], function, ", ".join(arguments))))
    for call in code.calls(("add_done_callback",)):
        if isinstance(call.func, ast.Attribute) and call.args:
            form = "(lambda future: (future.exception(), {}(future)))({})"
            callback = _text_to_call(code, call.args[0])
            edits.append(code.replace(call, form.format(callback, code.text(call.func.value))))
    return edits


def _text_to_call(code, function):
    """Return the text of an expression that arguments may follow."""
    return "({})".format(code.text(function)) if isinstance(function, ast.Lambda) else code.text(function)


def _gathers(code):
    """Return the `await gather(...)` nodes of this line or, if it has none, those of the file."""
    waits = [[node for node in nodes if isinstance(node, ast.Await) and isinstance(node.value, ast.Call)
              and _name(node.value) == "gather" and node.value.args and not node.value.keywords
              and (len(node.value.args) == 1
                   or not any(isinstance(argument, ast.Starred) for argument in node.value.args))]
             for nodes in (code.nodes, ast.walk(code.tree) if code.statement is not None else ())]
    return waits[0] or waits[1]


def _keep_insertion_order(code):
    sets = [call for call in code.calls(("set", "frozenset")) if call.args]
    edits = [code.replace(call, text) for call in sets for text in _as_dict(code, call)]
    for call in code.calls(("sorted",)):
        if call.args and any(_is_address_key(keyword) for keyword in call.keywords):
            edits.append(code.replace(call, "list({})".format(code.text(call.args[0]))))
    for call in code.calls(("sort",)):
        by_address = len(call.keywords) == 1 and _is_address_key(call.keywords[0])
        if by_address and isinstance(code.statement, ast.Expr) and code.statement.value is call:
            edits.append(code.replace(code.statement, "pass  # in the order in which they were added"))
    texts = code.calls(("repr", "str", "format")) + [node for node in code.nodes if isinstance(node, _JoinedStr)]
    numbers = code.calls(("id",)) + texts
    seeds = [argument for call in code.calls(_SEEDED_BY) for argument in call.args]
    edits += [code.replace(seed, SEED) for seed in seeds if any(node in ast.walk(seed) for node in numbers)]
    edits += _assign_constant_seed(code) if numbers else []
    edits += _digests(code)
    edits += [code.replace(node, _NUMBERED.format(code.text(node))) for node in _outermost_nodes(texts)]
    literals = [node for node in code.nodes if not isinstance(node, ast.Call)]
    return edits + [code.replace(node, text) for node in literals for text in _as_dict(code, node)]


def _outermost_nodes(nodes):
    """Return the nodes that lie in none of the others."""
    return [node for node in nodes if not any(node is not other and node in ast.walk(other) for other in nodes)]


def _is_address_key(keyword):
    """Return whether an argument is a sort key that gives an object's address, or a text or a hash that has it."""
    value = keyword.value
    if isinstance(value, ast.Lambda):
        value = value.body.func if isinstance(value.body, ast.Call) and len(value.body.args) == 1 else None
    return keyword.arg == "key" and getattr(value, "id", None) in ("id", "str", "repr", "hash")


def _as_dict(code, node):
    """Return a list of the text of a dict whose keys are a set's elements; [] if the node is not a set."""
    if isinstance(node, ast.Set):
        return ["dict.fromkeys([{}])".format(code.text(node)[1:-1])]
    if isinstance(node, ast.SetComp):
        return ["dict.fromkeys({})".format(code.text(node)[1:-1])]
    if isinstance(node, ast.Call) and _name(node) in ("set", "frozenset") and not node.keywords:
        return ["dict.fromkeys({})".format(code.text(elements)) for elements in node.args[:1]] or ["{}"]
    return []


def _sets_as_dicts(code, others):
    """Return edits of the whole file that replace sets, whose order follows addresses, by dicts.

    others: edits that they must not touch.
    """
    calls = [node for node in ast.walk(code.tree) if isinstance(node, ast.Call) and _name(node) == "set"]
    edits = [
        code.replace(call, "dict.fromkeys({})".format(code.text(elements)))
        for call in calls
        for elements in call.args[:1]
    ]
    return [edit for edit in edits if all(edit[1] <= first or end <= edit[0] for first, end, _ in others)]


def _zero_memory(code):
    zeroed = backends.all_uninitialized_allocators(_NUMPY_ZEROED)
    edits = []
    for call in code.calls(zeroed):
        name = _name(call)
        edits.append(code.replace(call.func, code.text(call.func)[: -len(name)] + zeroed[name]))
    return edits


def _use_one_worker(code):
    counts = code.keywords(("processes", "max_workers"))
    counts += [argument for call in code.calls(_POOLS) for argument in call.args[:1]]
    edits = [code.replace(count, "1") for count in counts]
    return edits + [code.replace(count, text) for count in code.keywords(("num_workers",)) for text in "01"]


_RULES = {
    "hash-seed": _sort_sets,
    "listing": _sort_listing,
    "mtime": _use_file_content,
    "pid": _use_constant_id,
    "clock": _use_constant_time,
    "system": _use_constant_answer,
    "random": _seed_generators,
    "completion": _keep_task_order,
    "memory": _zero_memory,
    "addresses": _keep_insertion_order,
    "one-worker": _use_one_worker,
}
