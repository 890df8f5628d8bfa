"""The traits of TensorFlow's op types, for the comparison of two runs."""

import re

from ...schema import traits

# They forward their input unchanged, so they are not recorded.
ALIASES = frozenset("""Identity IdentityN Reshape ExpandDims Squeeze StopGradient PreventGradient Snapshot CheckNumerics
    EnsureShape RefIdentity Enter Exit NextIteration Switch Merge RefEnter RefExit RefNextIteration RefSwitch RefMerge
    LoopCond PlaceholderWithDefault StackPushV2""".split())
# Their output is a control token of a TensorArray; what they write is their input.
FLOWS = frozenset("TensorArrayV3 TensorArrayGradV3 TensorArrayWriteV3 TensorArrayScatterV3 TensorArraySplitV3".split())
# Computed from shapes alone.
SHAPES = frozenset("Shape ShapeN Rank Size BroadcastGradientArgs NoOp ControlTrigger".split())
READS = frozenset("ReadVariableOp ResourceGather ResourceGatherNd VariableV2 Variable".split())
HANDLES = frozenset("VarHandleOp VariableV2 Variable".split())  # their output stands for a variable
CALLS = frozenset("""PartitionedCall StatefulPartitionedCall If StatelessIf While StatelessWhile Case StatelessCase
    SymbolicGradient RemoteCall""".split())
STATEFUL = frozenset("Timestamp UniqueId".split())
PYTHON = frozenset("PyFunc PyFuncStateless EagerPyFunc".split())  # they call a Python function
FEEDS = PYTHON | frozenset("Placeholder PlaceholderWithDefault".split())

_WRITE = re.compile(r"^(Assign(Add|Sub)?(VariableOp)?|(Resource)?(Sparse)?Apply\w+|(Resource)?Scatter(Nd)?"
                    r"(Add|Sub|Update|Mul|Div|Min|Max)|(Resource)?StridedSliceAssign|ResourceCountUpTo|CountUpTo)$")
_RANDOM = re.compile(r"Random|Multinomial|TruncatedNormal|CandidateSampler|StatefulUniform|StatefulStandardNormal"
                     r"|SampleDistortedBoundingBox|NonDeterministicInts|^Rng")
_INPUT = re.compile(r"^(Iterator\w*GetNext\w*|MultiDeviceIteratorGetNext\w*"
                    r"|Queue\w*Dequeue\w*|ReaderRead\w*|ReadFile|DatasetToSingleElement|ReduceDataset|.*Unstage)$")
_TRAIN = re.compile(r"^(Resource)?(Sparse)?Apply")


_DRAWS = re.compile(r"^(Stateful(Uniform|StandardNormal|TruncatedNormal|RandomBinomial)|Rng)")


def accesses_variable(op_type):
    """Return whether an op reads or writes the variable, or generator state, that is its first input."""
    return op_type in READS or writes_variable(op_type) or bool(_DRAWS.match(op_type))


def writes_variable(op_type):
    return bool(_WRITE.match(op_type))


def is_training_op(op_type):
    return bool(_TRAIN.match(op_type))


def definition_kind(op_type):
    """Return the kind of an op's definition."""
    if op_type in READS:
        return "read"
    if writes_variable(op_type):
        return "write"
    if op_type in CALLS:
        return "call"
    if op_type in FEEDS:
        return "feed"
    if op_type in STATEFUL:
        return "stateful"
    if _INPUT.match(op_type):
        return "input"
    if _RANDOM.search(op_type) and not op_type.startswith("Stateless"):
        return "random"
    return "op"


_UID = re.compile(r"_\d+(?=_|$)")


def without_uid(name):
    """Return a graph function's name without TensorFlow's counters, which differ between runs."""
    text = name.decode("utf-8", "replace") if isinstance(name, bytes) else name
    for prefix in ("__inference_", "__forward_"):
        if text.startswith(prefix):
            text = text[len(prefix):]
    return _UID.sub("", text)


_FORWARDS = frozenset("""Identity IdentityN Merge RefMerge Switch RefSwitch Enter RefEnter Exit RefExit NextIteration
    RefNextIteration LoopCond Reshape Squeeze ExpandDims Pack Unpack Shape ReadVariableOp StopGradient Snapshot
    PreventGradient CheckNumerics Print PrintV2 EnsureShape TensorListGetItem TensorListSetItem TensorListStack
    TensorListPopBack TensorListPushBack TensorListFromTensor TensorListGather TensorListConcat TensorListConcatV2
    TensorArrayReadV3 TensorArrayWriteV3 TensorArrayGatherV3 TensorArrayConcatV3 StackPopV2 QueueDequeueV2
    QueueDequeueManyV2 QueueDequeueUpToV2 OptionalGetValue Transpose Slice
    StridedSlice ConcatV2 Split Cast While StatelessWhile If StatelessIf Case StatelessCase PartitionedCall
    StatefulPartitionedCall""".split())
_BY_NAME = (
    (traits.FORWARDS, _FORWARDS),
    (traits.READS_HOST, frozenset("""Const Placeholder PlaceholderWithDefault PlaceholderV2 PyFunc EagerPyFunc
        PyFuncStateless _Arg _Recv""".split())),
    (traits.LOOPS, frozenset(("While", "StatelessWhile"))),
    (traits.NEXT_ITERATION, frozenset(("NextIteration", "RefNextIteration"))),
    (traits.READS_ALL, frozenset(("ReadVariableOp", "Variable"))),
    (traits.OVERWRITES, frozenset(("Assign", "AssignVariableOp"))),
    (traits.SEED_ARITHMETIC, frozenset("""Cast FloorMod Mod AddV2 Add Mul Pack ConcatV2 Reshape Identity
        BitwiseXor""".split())),
    (traits.SUMS_ROWS, frozenset(("UnsortedSegmentSum",))),  # rows of a sparse gradient
    (traits.FORWARDS_ROWS, frozenset("""ConcatV2 Concat Identity Reshape Unique UniqueV2 Cast ExpandDims
        Squeeze""".split())),
)
_BY_PATTERN = tuple((trait, re.compile(pattern)) for trait, pattern in (
    (traits.RANDOM, r".*Random|StatefulUniform|StatefulStandardNormal|StatefulTruncatedNormal|RngSkip|RngReadAndSkip"),
    (traits.READS_FILE, r"Restore|ReadFile|WholeFileRead|ReaderRead|MatchingFiles"),
    (traits.ORDER_DEPENDENT, r"Assign"),
    (traits.RECEIVES, r"(_?Collective|_?Nccl|_?Horovod|_?(Host)?Recv|_?XlaRecv|RemoteCall|Barrier)"),
    (traits.PIPELINE, r".*Dataset"),
    (traits.SEED_GENERATOR, r".*SeedGenerator"),
    (traits.PARALLEL, r"ParallelMap|ParallelInterleave|ParallelBatch|MapAndBatch|LegacyParallelInterleave"
                      r"|ExperimentalParallelInterleave|NumaMapAndBatch|ExperimentalNumaMapAndBatch"),
))
_GRADIENT = re.compile(r"(\w+?)(?:Grad|Backprop)(?:Grad|Image|Boxes|Filter|Input|WithArgmax|V\d)*$")
_VARIANT = re.compile(r"(WithArgmax)?(V\d+)?$")


def traits_of(op_type):
    """Return the traits of an op type."""
    op_traits = {trait for trait, names in _BY_NAME if op_type in names}
    op_traits.update(trait for trait, pattern in _BY_PATTERN if pattern.match(op_type))
    return op_traits


def families(op_type):
    """Return {"gradient_of": .., "family": ..}, as far as known; MaxPoolGrad is a gradient of MaxPoolV2's family."""
    attributes = {}
    gradient, family = _GRADIENT.match(op_type), _VARIANT.sub("", op_type)
    if gradient:
        attributes["gradient_of"] = gradient.group(1)
    if family != op_type:
        attributes["family"] = family
    return attributes
