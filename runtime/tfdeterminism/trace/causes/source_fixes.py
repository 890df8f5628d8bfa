"""Changes of the user's own lines that take a proven cause away: what a good engineer would write there.

A fix is offered only where the line has what it replaces. Positions in source come from `ast` of Python 3.8 and later;
before, there are words alone.
"""

import ast
import re
import sys

SEED = "0"
_Constant = getattr(ast, "Constant", ())  # Python 3.6 and later; older ones get no fix
_WORDS = {
    "hash-seed": "iterate over sets in sorted order, and digest without hash()",
    "files": "begin each run from the same files: remove or restore what the run before wrote, or name it by "
    "all that it depends on",
    "listing": "sort the listing",
    "mtime": "order by name, or use what is in the file, not when it was written",
    "pid": "use a number that you choose (a rank, a worker's index), not the process's",
    "clock": "use a number that you choose, not the time; count steps, not seconds",
    "random": "seed it, or use a number that you choose",
    "completion": "take results in the order of submission, or put each where it belongs by its index",
    "memory": "write memory before it is read",
    "addresses": "order by a value of the objects (a name, an index), not by id() or as a set gives them",
    "tensor-fusion": "switch tensor fusion off before hvd.init(), or sum the tensors as a group (grouped_allreduce)",
    "switches": "switch to deterministic ops",
    "one-thread": "use one thread, or the op's deterministic form",
    "one-worker": "use one worker, or give each worker its own seed and its own place for results",
    "schedule": "switch to deterministic ops",
}
_DIGEST = "__import__('zlib').crc32(repr({}).encode())"  # the same in each process, unlike hash()
_SORT_WORDS = "iterate over the set in sorted order"
_DIGEST_WORDS = "digest it without hash(), which gives something else in each process"
_ITERATING = tuple(
    (
        "list tuple enumerate iter map filter zip array tensor join extend fromkeys constant Counter chain "
        "dict OrderedDict asarray sum"
    ).split()
)
_LISTINGS = ("listdir", "glob", "iglob", "rglob", "iterdir")
_GENERATORS = tuple(
    "default_rng RandomState Random seed SystemRandom PCG64 SeedSequence Philox MT19937".split()
)
_SEEDED_BY = tuple(
    ("seed Random RandomState default_rng manual_seed set_seed set_random_seed PRNGKey SeedSequence").split()
)
_TIMES = tuple(
    "time time_ns perf_counter perf_counter_ns monotonic monotonic_ns now utcnow timestamp".split()
)
_DATES = ("now", "utcnow", "today")  # of datetime; the others are functions of time
_TICK_LINES = ["import itertools", "_TICKS = itertools.count()  # calls, not seconds: each is a millisecond"]
_FILE_TIMES = tuple("st_{}time{}".format(kind, unit) for kind in "mca" for unit in ("", "_ns"))
_TEXTS = ("strftime", "isoformat", "str", "ctime", "asctime")  # what gives text
_COUNTS = ("workers", "num_workers", "max_workers", "processes", "num_parallel_calls")
_POOLS = ("Pool", "ThreadPool", "ThreadPoolExecutor", "ProcessPoolExecutor")
_ZEROS = {
    "empty": "zeros",
    "ndarray": "zeros",
    "empty_like": "zeros_like",
    "new_empty": "new_zeros",
    "Tensor": "zeros",
    "FloatTensor": "zeros",
}
_SEED_LINES = {
    "global:random": ["import random", "random.seed({})"],
    "global:numpy": ["import numpy", "numpy.random.seed({})"],
    "global:torch": ["import torch", "torch.manual_seed({})"],
    "global:tensorflow": ["import tensorflow", "tensorflow.random.set_seed({})"],
}
_SWITCH_LINES = {
    "torch": ["import torch", "torch.use_deterministic_algorithms(True)"],
    "tensorflow": ["import tensorflow", "tensorflow.config.experimental.enable_op_determinism()"],
}
_THREAD_LINES = {
    "torch": ["import torch", "torch.set_num_threads(1)"],
    "tensorflow": [
        "import tensorflow",
        "tensorflow.config.threading.set_intra_op_parallelism_threads(1)",
        "tensorflow.config.threading.set_inter_op_parallelism_threads(1)",
    ],
}


def words(kind, new_lines=()):
    """What to do about a kind of nondeterminism, in one line. new_lines: what the change writes."""
    if kind == "hash-seed" and new_lines:
        return _DIGEST_WORDS if any(_DIGEST.partition("{}")[0] in one for one in new_lines) else _SORT_WORDS
    return _WORDS[kind]


def changes_of_line(kind, source, line):
    """Texts of the whole file with one line changed, the likeliest first. source: text of the file; line: its
    number."""
    at = _parsed(source, line)
    if at is None:
        return []
    changes = [[one] for one in _RULES[kind](at)] if kind in _RULES else []
    if kind == "addresses" and changes:
        changes.append(changes[0] + _sets_as_dicts(at, changes[0]))
    if kind == "clock" and at.calls(_TIMES + _DATES):
        changes.append(_counted_time(at))
    return [changed for changed in (_edited(source, some) for some in changes) if changed != source]


def names_in_line(source, line):
    """The names of variables, attributes and functions that a line of a file uses."""
    at = _parsed(source, line)
    return {name for node in at.nodes for name in _names_of(node)} if at is not None else set()


def sets_as_dicts(source, names):
    """The text of a file in which sets with one of these names, and those that functions of these names make, keep the
    order in which they were filled."""
    at = _parsed(source)
    if at is None:
        return source
    functions = [node for node in ast.walk(at.tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    nodes = ast.walk(at.tree)
    made = [getattr(node, "value", None) for node in nodes if any(_names_of(one) & names for one in _targets(node))]
    made += [node for function in functions if function.name in names for node in ast.walk(function)]
    edits = [at.replace(node, text) for node in made for text in _as_dict(at, node)]
    for call in (node for node in ast.walk(at.tree) if isinstance(node, ast.Call) and _name(node) == "add"):
        if edits and _names_of(getattr(call.func, "value", call)) & names:
            edits.append(at.replace(call.func, at.text(call.func)[: -len("add")] + "setdefault"))
    return _edited(source, _outermost(edits))


def with_ticks(source):
    """The text with the statements that counted time needs."""
    return with_lines(source, _TICK_LINES) if "_TICKS)" in source and _TICK_LINES[1] not in source else source


def with_lines(source, lines):
    """The text of the main script with statements after its first imports."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return source
    at, bound = 0, {}
    for node in tree.body:
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, _Constant)
        if not isinstance(node, (ast.Import, ast.ImportFrom)) and not is_text:
            break
        if not is_text:
            new = _bound_by(node)
            bound = new if "*" in new else dict(bound, **new)
        at = node.end_lineno if hasattr(node, "end_lineno") else node.lineno
    kept = source.splitlines(True)
    return "".join(kept[:at] + [one + "\n" for one in _renamed(lines, bound)] + kept[at:])


def _bound_by(node):
    """{name: module, or None for what is in one} that an import binds; "*" if it may bind any name."""
    if isinstance(node, ast.ImportFrom):
        return {one.asname or one.name: None for one in node.names}
    modules = [(one.asname, one.name if one.asname else one.name.partition(".")[0]) for one in node.names]
    return {alias or module: module for alias, module in modules}


def _renamed(lines, bound):
    """Statements whose imports take no name away that the program has bound to something else."""
    for line in lines:
        name = line.partition("import ")[2] if line.startswith("import ") else ""
        if name and (bound[name] != name if name in bound else "*" in bound):
            used = re.compile(r"(?<![\w.'\"/]){}\.".format(name))
            lines = [used.sub("_{}.".format(name), one) for one in lines]
            lines[lines.index(line)] = "import {0} as _{0}".format(name)
    return lines


def seed_lines(generator):
    """Statements that seed a global generator, as the ledger names it."""
    return [one.format(SEED) for one in _SEED_LINES.get(generator, ())]


def seeded_by_arguments(source, line, generator):
    """The text in which the function at a line seeds a global generator from its arguments: a task draws the same
    numbers whichever worker takes it. As it was where no function with arguments is there."""
    at = _parsed(source)
    nodes = ast.walk(at.tree) if at is not None else []
    functions = [
        node
        for node in nodes
        if isinstance(node, ast.FunctionDef) and node.lineno < line <= (node.end_lineno or 0)
    ]
    if not functions or generator not in _SEED_LINES:
        return source
    function = max(functions, key=lambda node: node.lineno)
    names = [one.arg for one in function.args.args if one.arg not in ("self", "cls")]
    if not names:
        return source
    number = _DIGEST.format("({},)".format(", ".join(names)))
    begin = function.body[0]
    if isinstance(begin, ast.Expr) and isinstance(begin.value, _Constant) and len(function.body) > 1:
        begin = function.body[1]  # behind what the function says of itself
    if begin.lineno == function.lineno:
        return source
    kept = source.splitlines(True)
    module = _SEED_LINES[generator][0].partition(" ")[2]
    call = _SEED_LINES[generator][1].format(number).replace(module, "__import__({!r})".format(module), 1)
    new = "{}{}\n".format(" " * begin.col_offset, call)
    return "".join(kept[: begin.lineno - 1] + [new] + kept[begin.lineno - 1 :])


def switch_lines(framework):
    return list(_SWITCH_LINES.get(framework, ()))


def fusion_lines():
    """Statements that switch Horovod's tensor fusion off."""
    return ["import os", 'os.environ["HOROVOD_FUSION_THRESHOLD"] = "0"  # before hvd.init()']


def thread_lines(framework):
    return list(_THREAD_LINES.get(framework, ()))


def remove_file_lines(name):
    """Statements that begin a run without a file. name: relative to the working directory."""
    return [
        "import os",
        "if os.path.exists({0!r}):".format(name),
        "    os.remove({0!r})  # each run begins without it".format(name),
    ]


def _parsed(source, line=0):
    """The _Line; None of what cannot be read or has no positions."""
    if sys.version_info < (3, 8):
        return None
    try:
        return _Line(source, ast.parse(source), line)
    except (SyntaxError, ValueError):
        return None


class _Line(object):
    """The nodes of a statement that touch a line. text(node): its source."""

    def __init__(self, source, tree, line):
        self.lines = [one.encode("utf-8") for one in source.splitlines(True)]
        self.source, self.tree = source, tree
        statement = _statement(tree, line)
        own = list(ast.walk(statement)) if statement is not None else []
        self.nodes = [node for node in own if _covers(node, line)]
        self.statement = statement

    def calls(self, names):
        """The calls of functions or methods with one of these names."""
        return [node for node in self.nodes if isinstance(node, ast.Call) and _name(node) in names]

    def keywords(self, names):
        """The values of the arguments of these names, of any call."""
        calls = [node for node in self.nodes if isinstance(node, ast.Call)]
        return [one.value for call in calls for one in call.keywords if one.arg in names]

    def text(self, node):
        return ast.get_source_segment(self.source, node) or ""  # novm

    def replace(self, node, text):
        """An edit: (first byte, last byte, text)."""
        starts = [0]
        for one in self.lines:
            starts.append(starts[-1] + len(one))
        return (
            starts[node.lineno - 1] + node.col_offset,
            starts[node.end_lineno - 1] + node.end_col_offset,
            text,
        )


def _covers(node, line):
    first, last = getattr(node, "lineno", None), getattr(node, "end_lineno", None)
    return first is not None and last is not None and first <= line <= last


def _statement(tree, line):
    """The innermost statement that holds the line; of a compound one, its head counts."""
    found = None
    for node in (one for one in ast.walk(tree) if isinstance(one, ast.stmt)):
        if node.lineno <= line <= (node.end_lineno or node.lineno):
            if found is None or node.lineno >= found.lineno:
                found = node
    return found


def _name(call):
    return call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", None)


def _names_of(node):
    """The name of a variable or an attribute, in a set."""
    return {name for name in (getattr(node, "id", None), getattr(node, "attr", None)) if name}


def _targets(node):
    """What an assignment assigns to; [] of anything else."""
    return [node.target] if isinstance(node, ast.AnnAssign) else node.targets if isinstance(node, ast.Assign) else []


def _outermost(edits):
    """Each once, and none that lies within another."""
    once = sorted(set(edits))
    return [one for one in once if not any(a <= one[0] and one[1] <= b for a, b, _ in once if (a, b) != one[:2])]


def _edited(source, edits):
    """The source with some edits, each (first byte, last byte, text), none within another."""
    data = source.encode("utf-8")
    for first, last, text in sorted(edits, reverse=True):
        data = data[:first] + text.encode("utf-8") + data[last:]
    return data.decode("utf-8")


def _sorted_sets(at):
    found = [node.iter for node in at.nodes if isinstance(node, ast.For)]
    found += [one.iter for node in at.nodes for one in getattr(node, "generators", ())]
    found += [one for call in at.calls(_ITERATING) for one in call.args]
    by_key = [call for call in at.calls(("sorted", "min", "max")) if call.keywords]  # ties keep the set's order
    found += [one for call in by_key for one in call.args[:1]]
    found = sorted(_unsorted(found), key=_unlikeliness_of_set)
    edits = []
    for node in found:
        edits += [at.replace(node, text.format(at.text(node))) for text in ("sorted({})", "sorted({}, key=repr)")]
    hashes = [call for call in at.calls(("hash",)) if call.args]
    return edits + [at.replace(call, _DIGEST.format(at.text(call.args[0]))) for call in hashes]


def _unsorted(nodes):
    """Those that lie in no call of sorted() among them."""
    calls = [
        node for node in nodes if isinstance(node, ast.Call) and _name(node) == "sorted" and not node.keywords
    ]
    return [node for node in nodes if not any(other is not node and node in ast.walk(other) for other in calls)]


def _unlikeliness_of_set(node):
    """0 for what is a set, 1 for what may be one, 2 for anything else."""
    if isinstance(node, ast.Call):
        return 0 if _name(node) in ("set", "frozenset", "union", "intersection", "difference") else 2
    if isinstance(node, (ast.Set, ast.SetComp)):
        return 0
    return 1 if isinstance(node, (ast.Name, ast.Attribute, ast.BinOp, ast.Subscript)) else 2


def _sorted_listing(at):
    forms = [
        (_LISTINGS, "sorted({})"),
        (("scandir",), "sorted({}, key=lambda entry: entry.name)"),
        (("walk",), "((here, folders.sort() or folders, sorted(names)) for here, folders, names in {})"),
    ]
    return [at.replace(call, form.format(at.text(call))) for names, form in forms for call in at.calls(names)]


def _by_content(at):
    """Order by name; a number that follows from the time a file was written follows from what is in it."""
    edits = [at.replace(one, "str") for one in at.keywords(("key",)) if "time" in at.text(one)]
    form = "__import__('zlib').crc32(open({}, 'rb').read())"
    asked = [(node, node.value) for node in at.nodes if isinstance(node, ast.Attribute) and node.attr in _FILE_TIMES]
    asked = [(node, call) for node, call in asked if isinstance(call, ast.Call) and _name(call) in ("stat", "lstat")]
    for node, call in asked + [(call, call) for call in at.calls(("getmtime", "getctime", "getatime"))]:
        path = at.text(call.args[0]) if call.args else at.text(getattr(call.func, "value", call))
        edits.append(at.replace(node, form.format(path)))
    return edits


def _chosen_number(at):
    own = [node for node in at.nodes if isinstance(node, ast.Attribute) and node.attr in ("pid", "ident")]
    return [at.replace(one, SEED) for one in at.calls(("getpid", "get_ident", "get_native_id")) + own]


def _chosen_time(at):
    """Only where the time seeds or chooses something: a loop until a time would never end."""
    times = at.calls(_TIMES)
    chosen = [one for call in at.calls(_SEEDED_BY) for one in call.args]
    indices = [node.slice for node in at.nodes if isinstance(node, ast.Subscript)]
    chosen += [one for one in indices if isinstance(one, (ast.BinOp, ast.Call))]  # no slice; Python 3.9 and later
    edits = [at.replace(one, SEED) for one in chosen if any(call in ast.walk(one) for call in times)]
    if times and isinstance(at.statement, ast.Assign) and _is_seed(at, at.text(at.statement.targets[0])):
        value = at.statement.value
        is_text = any(_name(node) in _TEXTS for node in ast.walk(value) if isinstance(node, ast.Call))
        edits.append(at.replace(value, repr(SEED) if is_text else SEED))
    return edits


def _counted_time(at):
    """All times of the file, as they are compared: a clock that counts how often it was asked."""
    edits = []
    for call in (node for node in ast.walk(at.tree) if isinstance(node, ast.Call)):
        name = _name(call)
        if name in _DATES and isinstance(call.func, ast.Attribute) and not (name == "utcnow" and call.args):
            zone = [at.text(one) for one in call.args + [one.value for one in call.keywords]]
            text = ", ".join(["next(_TICKS) / 1000"] + zone)
            edits.append(at.replace(call, "{}.fromtimestamp({})".format(at.text(call.func.value), text)))
        elif name in _TIMES and name != "timestamp" and not call.args and not call.keywords:
            edits.append(at.replace(call, "next(_TICKS) * 10**6" if name.endswith("_ns") else "(next(_TICKS) / 1000)"))
    return _outermost(edits)


def _is_seed(at, name):
    """Is a variable of this name a seed, or handed to what takes one?"""
    calls = [node for node in ast.walk(at.tree) if isinstance(node, ast.Call) and _name(node) in _SEEDED_BY]
    handed = {one.id for call in calls for one in ast.walk(call) if isinstance(one, ast.Name)}
    return "seed" in name.lower() or name in handed


def _seeded(at):
    unseeded = [call for call in at.calls(_GENERATORS) if not call.args and not call.keywords]
    unseeded += [
        call
        for call in at.calls(_GENERATORS)
        if len(call.args) == 1 and isinstance(call.args[0], _Constant) and call.args[0].value is None
    ]
    edits = []
    for call in unseeded:
        name = at.text(call.func)
        if _name(call) == "SystemRandom":
            name = name[: -len("SystemRandom")] + "Random" if "." in name else "__import__('random').Random"
        edits.append(at.replace(call, "{}({})".format(name, SEED)))
    for call in at.calls(("choice",)):
        if _is_of_module(at, call, "secrets"):
            edits.append(at.replace(call.func, "__import__('random').Random({}).choice".format(SEED)))
    for call in at.calls(("urandom", "token_bytes")):
        edits += [at.replace(call, "bytes({})".format(at.text(size))) for size in call.args[:1]]
    for call in at.calls(("token_hex",)):
        edits += [at.replace(call, "'00' * ({})".format(at.text(size))) for size in call.args[:1]]
    for call in at.calls(("uuid4", "uuid1")):
        is_of_module = isinstance(call.func, ast.Attribute)
        module = at.text(call.func.value) if is_of_module else "__import__('uuid')"
        edits.append(at.replace(call, "{}.UUID(int=0)".format(module)))
    return edits + [at.replace(call, SEED) for call in at.calls(("randbits", "randbelow"))]


def _is_of_module(at, call, module):
    """Is what is called a module's, by its name here or by how it was imported?"""
    if isinstance(call.func, ast.Attribute):
        return at.text(call.func.value) == module
    imports = [node for node in ast.walk(at.tree) if isinstance(node, ast.ImportFrom) and node.module == module]
    return any((one.asname or one.name) == _name(call) for node in imports for one in node.names)


def _in_order(at):
    edits = []
    for call in at.calls(("as_completed",)):
        tasks = at.text(call.func).startswith("asyncio")
        form = "[asyncio.ensure_future(one) for one in {}]" if tasks else "list({})"
        edits += [at.replace(call, form.format(at.text(futures))) for futures in call.args[:1]]
    for call in at.calls(("imap_unordered",)):
        edits.append(at.replace(call.func, at.text(call.func).replace("imap_unordered", "imap")))
    for one in at.keywords(("in_order", "deterministic")):
        edits += [at.replace(one, "True")] if getattr(one, "value", None) is False else []
    assigned = [at.statement] + (list(ast.walk(at.tree)) if at.calls(("with_options",)) else [])
    for one in (one for one in assigned if isinstance(one, ast.Assign)):
        if at.text(one.targets[0]).endswith("deterministic") and getattr(one.value, "value", None) is False:
            edits.append(at.replace(one.value, "True"))
    for node in _gathers(at):
        each = [at.text(one.value if isinstance(one, ast.Starred) else one) for one in node.value.args]
        is_list = isinstance(node.value.args[0], ast.Starred)
        text = "[await _one for _one in {}]".format(each[0]) if is_list else \
            "[{}]".format(", ".join("await {}".format(one) for one in each))
        edits.append(at.replace(node, text))
    for call in at.calls(("start",)):
        owner = getattr(call.func, "value", None)  # one that is made in the line cannot be named twice
        is_named = isinstance(owner, (ast.Name, ast.Attribute, ast.Subscript))
        if isinstance(at.statement, (ast.Expr, ast.For)) and is_named:
            edits.append(at.replace(call, "({0}.start(), {0}.join())".format(at.text(owner))))
    edits += [at.replace(one, "1") for one in at.keywords(_COUNTS)]
    return edits


def _gathers(at):
    """What waits for coroutines together: of this line, or else of the file, where they append what they were told."""
    found = [[node for node in nodes if isinstance(node, ast.Await) and isinstance(node.value, ast.Call)
              and _name(node.value) == "gather" and node.value.args and not node.value.keywords
              and (len(node.value.args) == 1 or not any(isinstance(one, ast.Starred) for one in node.value.args))]
             for nodes in (at.nodes, ast.walk(at.tree) if at.statement is not None else ())]
    return found[0] or found[1]


def _in_given_order(at):
    made = [call for call in at.calls(("set", "frozenset")) if call.args]
    edits = [at.replace(call, text) for call in made for text in _as_dict(at, call)]
    for call in at.calls(("sorted",)):
        if call.args and any(one.arg == "key" and at.text(one.value) == "id" for one in call.keywords):
            edits.append(at.replace(call, "list({})".format(at.text(call.args[0]))))
    for call in at.calls(("sort",)):
        by_id = [at.text(one.value) for one in call.keywords] == ["id"]
        if by_id and isinstance(at.statement, ast.Expr) and at.statement.value is call:
            edits.append(at.replace(at.statement, "pass  # in the order in which they were added"))
    seeds = [one for call in at.calls(_SEEDED_BY) for one in call.args]
    edits += [at.replace(one, SEED) for one in seeds if any(call in ast.walk(one) for call in at.calls(("id",)))]
    shown = [node for node in at.nodes if not isinstance(node, ast.Call)]
    return edits + [at.replace(node, text) for node in shown for text in _as_dict(at, node)]


def _as_dict(at, node):
    """A list of the text that makes of a set a dict with its elements as keys; [] if it is none."""
    if isinstance(node, ast.Set):
        return ["dict.fromkeys([{}])".format(at.text(node)[1:-1])]
    if isinstance(node, ast.SetComp):
        return ["dict.fromkeys({})".format(at.text(node)[1:-1])]
    if isinstance(node, ast.Call) and _name(node) in ("set", "frozenset") and not node.keywords:
        return ["dict.fromkeys({})".format(at.text(one)) for one in node.args[:1]] or ["{}"]
    return []


def _sets_as_dicts(at, others):
    """Edits of the whole file: what is a set, whose order follows addresses, keeps the order of its making. others:
    edits that they must not touch."""
    calls = [node for node in ast.walk(at.tree) if isinstance(node, ast.Call) and _name(node) == "set"]
    edits = [
        at.replace(call, "dict.fromkeys({})".format(at.text(one))) for call in calls for one in call.args[:1]
    ]
    return [one for one in edits if all(one[1] <= first or last <= one[0] for first, last, _ in others)]


def _written_first(at):
    edits = []
    for call in at.calls(_ZEROS):
        name = _name(call)
        edits.append(at.replace(call.func, at.text(call.func)[: -len(name)] + _ZEROS[name]))
    return edits


def _one_worker(at):
    found = at.keywords(("processes", "max_workers"))
    found += [one for call in at.calls(_POOLS) for one in call.args[:1]]
    edits = [at.replace(one, "1") for one in found]
    return edits + [at.replace(one, text) for one in at.keywords(("num_workers",)) for text in "01"]


_RULES = {
    "hash-seed": _sorted_sets,
    "listing": _sorted_listing,
    "mtime": _by_content,
    "pid": _chosen_number,
    "clock": _chosen_time,
    "random": _seeded,
    "completion": _in_order,
    "memory": _written_first,
    "addresses": _in_given_order,
    "one-worker": _one_worker,
}
