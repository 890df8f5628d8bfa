"""Gradients averaged over ranks: processes that exchange tensors, each with inputs of its own.

@case gives the source of nondeterminism, patterns of the ops that must run, and the modes; make, a CaseBuilder,
draws the inputs and returns what is run: forward, gradient, or a program that each repeat builds anew.
make.ranks runs it in several processes.  make.option: a setting that a solution may change.
unplaced: why no ops are checked.
"""

import torch
from tfdet_probe import case

SIZES = (64, 257, 129, 513, 64)  # features of the layers


def wrapped(make, megabytes):
    """A network with the same weights in each rank, in DistributedDataParallel."""
    torch.manual_seed(1)
    layers = [torch.nn.Linear(one, other) for one, other in zip(SIZES, SIZES[1:])]
    model = torch.nn.Sequential(*[part for layer in layers for part in (layer, torch.nn.Tanh())])
    unused = bool(make.option("unused", 0))
    return torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=megabytes, find_unused_parameters=unused)


def gradients(model, inputs):
    model.zero_grad()
    (model(inputs) ** 2).sum().backward()
    return [parameter.grad.clone() for parameter in model.parameters()]


@case("torch-ddp-buckets", modes=["eager"], unplaced="c10d sums, which the dispatcher does not show", ranks=[2, 4],
      megabytes=[1])
def fresh_ddp(make, ranks, megabytes):
    """The first step of a new wrapper: its buckets are in the order of the parameters."""
    inputs = torch.from_numpy(make.uniform((32, SIZES[0])))
    return make.ranks("torchrun", ranks, make.program(lambda: gradients(wrapped(make, megabytes), inputs)))


@case("torch-ddp-buckets", modes=["eager"], unplaced="c10d sums, which the dispatcher does not show", ranks=[2, 4],
      megabytes=[1])
def same_ddp(make, ranks, megabytes):
    """Step after step of one wrapper: after the first step it rebuilds its buckets, in the order of the gradients."""
    inputs, models = torch.from_numpy(make.uniform((32, SIZES[0]))), []

    def program():
        if not models:
            models.append(wrapped(make, megabytes))
        return gradients(models[0], inputs)
    return make.ranks("torchrun", ranks, make.program(program))


@case("torch-horovod-tensor-fusion", modes=["eager"], unplaced="Horovod sums, which the dispatcher does not show",
      ranks=[2, 3, 4])
def horovod_allreduce(make, ranks):
    """Ten sums that are ready at the same time: which of them share a buffer depends on the moment. Two ranks are a
    control: a + b is b + a."""
    import horovod.torch as hvd
    tensors = [torch.from_numpy(make.uniform((size,))) for size in (3, 11, 47, 128, 333, 1024, 2500, 4096, 7001, 12345)]
    grouped = make.option("grouped", 0)

    def program():
        if grouped:
            return hvd.grouped_allreduce(tensors, name="group", op=hvd.Sum)
        sums = [hvd.allreduce_async(x, name="tensor%d" % number, op=hvd.Sum) for number, x in enumerate(tensors)]
        return [hvd.synchronize(handle) for handle in sums]
    return make.ranks("horovodrun", ranks, make.program(program))
