"""Engines of TensorRT: which kernels its builder chooses, by timing them."""

import numpy as np
from tfdet_probe import case

LAYERS, CHANNELS, SIDE = 8, 64, 56


def convolutions(make):
    """The bytes of an ONNX file of convolutions, for each of which the builder has many kernels to choose from."""
    import onnx
    from onnx import helper, numpy_helper
    shape, nodes, weights = [1, CHANNELS, SIDE, SIDE], [], []
    for number in range(LAYERS):
        weight = make.uniform((CHANNELS, CHANNELS, 3, 3), low=-0.1, high=0.1)
        weights.append(numpy_helper.from_array(weight, "weight%d" % number))
        inputs = ["x%d" % number, "weight%d" % number]
        nodes.append(helper.make_node("Conv", inputs, ["sum%d" % number], pads=[1, 1, 1, 1]))
        nodes.append(helper.make_node("Relu", ["sum%d" % number], ["x%d" % (number + 1)]))
    ends = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name in ("x0", "x%d" % LAYERS)]
    graph = helper.make_graph(nodes, "convolutions", ends[:1], ends[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


def layers_of_engine(trt, text, level):
    """Build an engine; what its inspector says of its layers and their kernels."""
    logger = trt.Logger(trt.Logger.ERROR)
    builder = trt.Builder(logger)
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.EXPLICIT_BATCH))
    parser = trt.OnnxParser(network, logger)
    if not parser.parse(text):
        raise ValueError(parser.get_error(0).desc())
    config = builder.create_builder_config()
    config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
    if level is not None:
        config.builder_optimization_level = level
    engine = trt.Runtime(logger).deserialize_cuda_engine(builder.build_serialized_network(network, config))
    return engine.create_engine_inspector().get_engine_information(trt.LayerInformationFormat.JSON)


@case("tensorrt-timing", modes=["host"])
def engine_layers(make):  # make: a CaseBuilder; runs plain Python on the host; a solution may set the option level
    import tensorrt as trt
    text, level = convolutions(make), make.option("level", None)
    return make.host(lambda: [np.array(layers_of_engine(trt, text, level))])
