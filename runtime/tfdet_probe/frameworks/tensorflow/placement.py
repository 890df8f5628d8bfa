"""Where ops ran, as TensorFlow reports it: [(op type, device such as GPU:0)]."""

import re

# Prefixes that oneDNN and the graph optimizer give to an op.
_RENAMED = r"(_(Mkl|MklNative|Fused|MklFused|MklNativeFused))?"


def is_op(name, op):
    return re.match("{}({})$".format(_RENAMED, op), name) is not None


def short(device):
    """CPU:0 from /job:localhost/replica:0/task:0/device:CPU:0."""
    return device.rsplit("/", 1)[-1].replace("device:", "").upper()


def session_placements(tf1, run):
    metadata = tf1.RunMetadata()
    run(options=tf1.RunOptions(output_partition_graphs=True), run_metadata=metadata)
    return _nodes(metadata.partition_graphs)


def function_placements(run_fresh):
    """run_fresh must trace its function: TensorFlow reports graphs when a function is instantiated."""
    metadata = _run_metadata(run_fresh)
    return _nodes(metadata.partition_graphs) or _by_step_stats(metadata)


def eager_placements(tf, run):
    """By run metadata in 1.13, 1.14 and 2.0; by an op callback, called for every eager op, in 1.15 and from 2.1 on."""
    try:
        from tensorflow.python.framework import op_callbacks
    except ImportError:
        return _by_step_stats(_run_metadata(run))
    placements = []

    def record(op_type, inputs, attrs, outputs, op_name=None, graph=None):
        # An op without outputs runs where its resource is.
        device = next((t.device for t in list(outputs) or inputs if getattr(t, "device", None)), None)
        if device and graph is None:
            placements.append((_text(op_type), short(device)))

    if not hasattr(op_callbacks, "add_op_callback"):  # 1.15: a context manager only
        with op_callbacks.op_callback(record):
            run()
        return placements
    op_callbacks.add_op_callback(record)
    try:
        run()
    finally:
        op_callbacks.remove_op_callback(record)
    return placements


def _run_metadata(run):
    from tensorflow.python.eager import context
    context.enable_run_metadata()
    try:
        run()
        return context.export_run_metadata()
    finally:
        context.disable_run_metadata()


def _by_step_stats(metadata):
    # Without a GPU's kernel streams, which are listed as devices, too.
    devices = [d for d in metadata.step_stats.dev_stats if re.search(r"device:[A-Z]+:\d+$", d.device)]
    return [(_op_type(node), short(device.device)) for device in devices for node in device.node_stats]


def _op_type(node):
    """In a function the label reads `name = Op(inputs)`; an eager op's name is its type."""
    label = re.match(r"^\S+ = (\w+)\(", node.timeline_label)
    return label.group(1) if label else node.node_name


def _nodes(graphs):
    return [(node.op, short(node.device)) for graph in graphs for node in graph.node]


def _text(value):
    return value.decode("ascii") if isinstance(value, bytes) else value
