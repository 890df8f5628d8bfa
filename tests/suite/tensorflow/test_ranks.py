"""Sums over ranks: processes that exchange tensors, each with inputs of its own.

@case gives the source of nondeterminism, patterns of the ops that must run, and the modes; make, a CaseBuilder,
draws the inputs and returns what is run: forward, gradient, or a program that each repeat builds anew.
make.ranks runs it in several processes.  make.option: a setting that a solution may change.
"""

import tensorflow as tf
from tfdet_probe import case

tf1 = getattr(tf.compat, "v1", tf)
SIZES = (3, 11, 47, 128, 333, 1024, 2500, 4096, 7001, 12345)  # floats


def reduced(make, ranks, compression="none", variables=None):
    """Ten sums that are ready at the same time: which of them share a buffer depends on the moment."""
    import horovod.tensorflow as hvd
    tensors = [make.uniform((size,)) for size in SIZES]
    how = {"op": hvd.Sum, "compression": getattr(hvd.Compression, compression)}
    grouped = make.option("grouped", 0)

    def summed(*tensors):
        if grouped:
            return hvd.grouped_allreduce(list(tensors), name="group", **how)
        return [hvd.allreduce(x, name="tensor%d" % number, **how) for number, x in enumerate(tensors)]
    return make.ranks("horovodrun", ranks, make.forward(summed, tensors), variables)


@case("horovod-tensor-fusion", ops=["HorovodAllreduce|HorovodGroupedAllreduce"], modes=["function"], ranks=[2, 3, 4])
def allreduce(make, ranks):
    """Two ranks are a control: a + b is b + a."""
    return reduced(make, ranks)


@case("horovod-tensor-fusion", ops=["HorovodAllreduce|HorovodGroupedAllreduce"], modes=["function"], ranks=[4])
def allreduce_fp16(make, ranks):
    return reduced(make, ranks, compression="fp16")


@case("horovod-tensor-fusion", ops=["HorovodAllreduce|HorovodGroupedAllreduce"], modes=["function"], ranks=[4],
      milliseconds=[50])
def allreduce_cycle(make, ranks, milliseconds):
    """In a longer cycle more tensors become ready, and share a buffer."""
    return reduced(make, ranks, variables={"HOROVOD_CYCLE_TIME": str(milliseconds)})


@case("horovod-tensor-fusion", ops=["HorovodAllreduce|HorovodGroupedAllreduce"], modes=["session"], ranks=[4])
def optimizer(make, ranks):
    """What hvd.DistributedOptimizer gives the optimizer: gradients of a network of six layers."""
    import horovod.tensorflow as hvd
    inputs, weights = make.uniform((32, 64)), [make.uniform((64, 64), low=-0.2, high=0.2) for _ in range(6)]
    groups = {"num_groups": 1} if make.option("grouped", 0) else {}

    def program():
        variables = [tf1.Variable(value, name="layer%d" % number) for number, value in enumerate(weights)]
        x = tf1.placeholder_with_default(inputs, inputs.shape)
        for variable in variables:
            x = tf.tanh(tf.matmul(x, variable))
        chosen = hvd.DistributedOptimizer(tf1.train.GradientDescentOptimizer(0.1), **groups)
        return [gradient for gradient, _ in chosen.compute_gradients(tf.reduce_sum(x * x), variables)]
    return make.ranks("horovodrun", ranks, make.program(program))


@case("multi-worker-mirrored", modes=["host"], ranks=[2, 4])
def multi_worker_mirrored(make, ranks):
    """Ten sums of tf.distribute.MultiWorkerMirroredStrategy, by its ring over gRPC."""
    tensors, steps = [make.uniform((size,)) for size in SIZES], []

    def step_of(strategy):
        def summed():
            context = tf.distribute.get_replica_context()
            return context.all_reduce(tf.distribute.ReduceOp.SUM, [tf.constant(x) for x in tensors])
        return tf.function(lambda: strategy.run(summed))

    def run():
        if not steps:  # collective ops are set up before any op runs
            strategies = getattr(tf.distribute, "MultiWorkerMirroredStrategy", None)
            steps.append(step_of((strategies or tf.distribute.experimental.MultiWorkerMirroredStrategy)()))
        return [x.numpy() for x in steps[0]()]
    return make.ranks("TF_CONFIG", ranks, make.host(run))
