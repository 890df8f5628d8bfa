"""The advice for TensorFlow users, and the choice of a cause's source.

A source is a known source of nondeterminism in the matrix, the project's data; its key is a name such as "cpu-threads".
"""

from ...backends import FILE_LINES, HOST_VALUE_LINES, ORDER_LINES, STRUCTURE_LINES
from ...faults import Fault
from ...schema import traits

SEED_LINE = "tf.random.set_seed(1)  # TensorFlow 1: tf.set_random_seed(1) in each graph"
_LINES = {
    Fault.HOST_VALUE: HOST_VALUE_LINES,
    Fault.SEED: [SEED_LINE],
    Fault.PIPELINE: [
        "dataset = dataset.map(function)  # no num_parallel_calls where the function draws random numbers",
        "dataset = dataset.shuffle(size, seed=1)",
        "generator = numpy.random.default_rng(1)  # in what from_generator or numpy_function draws from"],
    Fault.STRUCTURE: STRUCTURE_LINES,
    Fault.UNORDERED: [
        "# give it an order: parallel_iterations=1 for a loop, tf.control_dependencies for two updates,",
        "# a lock or one thread in Python, what a pool gives in the order of its tasks (pool.map, say);",
        "# or draw by tf.random.stateless_* with a seed of each turn's own"],
    Fault.FILE: FILE_LINES,
    Fault.ORDER: ORDER_LINES,
    Fault.UNINITIALIZED: ["# write all of it before it is read: zeros instead of empty"],
}
_OP_LINES = {
    "Timestamp": ["# no seed helps: train on no value of the clock, or pass one in that is the same in each run"],
    "UniqueId": ["# no seed helps: name it yourself"],
}
_OF_REFERENCES = ("Assign", "AssignAdd", "AssignSub")  # of reference variables, in a session


def lines(fault, op_type):
    """Return the lines of code for a fault, unless the op has more specific ones."""
    return _OP_LINES.get(op_type) or _LINES.get(fault, [])


def matrix_source(fault, question):
    """Return the key of the matrix' source, or None.

    question: a causes.advice.Question: definition, of the cause; forward, of the op whose gradient it is, or None;
    seeded, of the op that draws with this seed, or None; upstream, of the input pipeline's stages that feed it;
    row_of(op type), the source in the matrix that has such an op, or None.
    """
    definition = question.definition
    if fault is Fault.SEED:
        return _seed_source(question)
    if fault is Fault.PIPELINE:
        return _pipeline_source(definition, question.upstream)
    if fault is Fault.ORDER:
        return "tf1-unordered-assign" if definition["kind"] == "write" and definition["op"] in _OF_REFERENCES else None
    return _kernel_source(question) if fault is Fault.UNEXPLAINED else None


def _kernel_source(question):
    definition, forward = question.definition, question.forward["op"] if question.forward else ""
    if definition["op"] == "UnsortedSegmentSum" and forward.startswith(("Gather", "ResourceGather")):
        return "gather-backprop"
    on_gpu = "GPU" in definition["device"].upper()
    return question.row_of(definition["op"]) or (None if on_gpu else "cpu-threads")


def _seed_source(question):
    definition = question.definition
    if definition["kind"] == "random":
        return _random_source(definition["op"])
    if definition["kind"] == "stateful":
        return question.row_of(definition["op"])
    if question.seeded is None:
        return None
    if definition["attrs"].get("created_by") == "keras":
        return "keras3-initializers"
    return _random_source(question.seeded["op"])


def _random_source(op_type):
    if op_type == "NonDeterministicInts":
        return "generator-without-seed"
    return "stateful-random-ops" if op_type.startswith(("Stateful", "Rng")) else "random-op-without-seed"


def _pipeline_source(definition, upstream):
    ops = [stage["op"] for stage in upstream]
    if any(stage["attrs"].get("unseeded") for stage in upstream):
        return "random-op-without-seed"
    if definition["op"].startswith("Queue"):
        return None
    if any(stage["attrs"].get("deterministic") is False for stage in upstream):
        return "tf-data-unordered"
    if not ops or any(traits.PARALLEL in stage["traits"] for stage in upstream):
        return "tf-data-parallel-map"
    return "random-op-without-seed" if any("Shuffle" in op for op in ops) else None
