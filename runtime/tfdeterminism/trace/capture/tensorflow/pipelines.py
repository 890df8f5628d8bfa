"""The attributes of a tf.data op that explain a different output: an undefined order, or a random function."""

from . import op_traits

# Positions of the two seeds among the inputs; both are zero if none was given.
_SEEDS = {"ShuffleDataset": slice(2, 4), "ShuffleDatasetV3": slice(2, 4), "ShuffleAndRepeatDataset": slice(2, 4),
          "ShuffleAndRepeatDatasetV2": slice(2, 4), "AnonymousRandomSeedGenerator": slice(0, 2),
          "AnonymousSeedGenerator": slice(0, 2)}
_UNORDERED = b"\x08\x00"  # how serialized tf.data.Options begin where deterministic is False


def eager_op_traits(op_type, attrs, inputs):
    """Return {"deterministic": False, "unseeded": True}, or the part that is true of an eager op."""
    if "Dataset" not in op_type and op_type not in _SEEDS:
        return {}
    attrs = list(attrs or ())
    named_attrs = dict(zip(attrs[::2], attrs[1::2]))
    graphs = [value.graph for value in named_attrs.values() if hasattr(value, "graph")]
    seeds = [int(seed.numpy()) for seed in inputs[_SEEDS.get(op_type, slice(0))]]
    unordered = op_type.startswith("OptimizeDataset") and b"make_sloppy" in inputs[1].numpy().tolist()
    return _pipeline_traits(named_attrs, graphs, unordered, bool(seeds) and not any(seeds))


def graph_op_traits(op, function):
    """Return the same for a graph's op. function(name): returns the graph of a function, or None."""
    if "Dataset" not in op.type:
        return {}
    attrs = op.node_def.attr
    named_attrs = {name: attrs[name].b if name == "sloppy" else attrs[name].s
                   for name in ("deterministic", "sloppy", "serialized_options") if name in attrs}
    graphs = [function(attr.func.name) for attr in attrs.values() if attr.func.name]
    return _pipeline_traits(named_attrs, [graph for graph in graphs if graph is not None])


def _pipeline_traits(named_attrs, graphs, unordered=False, unseeded=False):
    op_traits_found = {}
    if unordered or named_attrs.get("sloppy") is True or named_attrs.get("deterministic") in ("false", b"false") \
            or (named_attrs.get("serialized_options") or b"").startswith(_UNORDERED):
        op_traits_found["deterministic"] = False
    if unseeded or any(_draws(op) for graph in graphs for op in graph.get_operations()):
        op_traits_found["unseeded"] = True
    return op_traits_found


def _draws(op):
    """Return whether an op gives other random numbers in each run."""
    seeds = [op.node_def.attr[name].i for name in ("seed", "seed2") if name in op.node_def.attr]
    return op_traits.definition_kind(op.type) == "random" and bool(seeds) and not any(seeds)
