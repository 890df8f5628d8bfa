"""Sums, scans and choices, large enough for many threads of a GPU to meet: PyTorch's own samples are too small.

@case gives the source of nondeterminism, patterns of the ops that must run, and the modes; make, a CaseBuilder,
draws the inputs and returns what is run: forward, gradient, or a program that each repeat builds anew.
"""

import torch
from tfdet_probe import case

MANY, FEW, COLUMNS = 100000, 7, 16


def rows(make, columns=COLUMNS):
    return make.integers(0, FEW, (MANY,), "int64"), make.uniform((MANY, columns))


@case("torch-index-add", ops=["index_add_?"])
def large_index_add(make):
    index, values = rows(make)
    return make.forward(lambda i, x: x.new_zeros((FEW, COLUMNS)).index_add(0, i, x), [index, values])


@case("torch-index-copy", ops=["index_copy_?"])
def large_index_copy(make):
    index, values = rows(make)
    return make.forward(lambda i, x: x.new_zeros((FEW, COLUMNS)).index_copy(0, i, x), [index, values])


@case("torch-index-put", ops=["index_put_?|_index_put_impl_"])
def large_index_put_one_wins(make):
    index, values = rows(make)
    return make.forward(lambda i, x: x.new_zeros((FEW, COLUMNS)).index_put((i,), x), [index, values])


@case("torch-index-select", ops=["index_add_?"])
def large_index_select_backward(make):
    index, table = make.integers(0, FEW, (MANY,), "int64"), make.uniform((FEW, COLUMNS))
    return make.gradient(lambda i, x: x.index_select(0, i), [index, table], wrt=[1])


@case("torch-gather", ops=["scatter_add_?"])
def large_gather_backward(make):
    index, table = make.integers(0, FEW, (MANY, COLUMNS), "int64"), make.uniform((FEW, COLUMNS))
    return make.gradient(lambda i, x: x.gather(0, i), [index, table], wrt=[1])


@case("torch-take", ops=["put_?"])
def large_take_backward(make):
    index, table = make.integers(0, FEW, (MANY,), "int64"), make.uniform((FEW,))
    return make.gradient(lambda i, x: x.take(i), [index, table], wrt=[1])


@case("torch-put", ops=["put_?"])
def large_put(make):
    index, values = make.integers(0, FEW, (MANY,), "int64"), make.uniform((MANY,))
    return make.forward(lambda i, x: x.new_zeros(FEW).put(i, x, accumulate=True), [index, values])


@case("torch-scatter", ops=["scatter_?"])
def large_scatter_one_wins(make):
    index, values = make.integers(0, FEW, (MANY, COLUMNS), "int64"), make.uniform((MANY, COLUMNS))
    return make.forward(lambda i, x: x.new_zeros((FEW, COLUMNS)).scatter(0, i, x), [index, values])


@case("torch-scatter-reduce-{reduce}", ops=["scatter_reduce_?"], reduce=["sum", "mean", "prod", "amax"])
def large_scatter_reduce(make, reduce):
    index, values = make.integers(0, FEW, (MANY, COLUMNS), "int64"), make.uniform((MANY, COLUMNS))
    return make.forward(lambda i, x: x.new_ones((FEW, COLUMNS)).scatter_reduce(0, i, x, reduce), [index, values])


@case("torch-bincount", ops=["bincount"])
def large_bincount(make):
    index, values = make.integers(0, FEW, (MANY,), "int64"), make.uniform((MANY,))
    return make.forward(lambda i, x: torch.bincount(i, x), [index, values])


@case("torch-histc", ops=["histc"])
def large_histc(make):
    return make.forward(lambda x: torch.histc(x, FEW), [make.uniform((MANY,))])


@case("torch-{op}", ops=["_?(cumsum|cumprod|logcumsumexp)"], op=["cumsum", "cumprod", "logcumsumexp"])
def large_scan(make, op):
    return make.forward(lambda x: getattr(torch, op)(x, 0), [make.uniform((1 << 20,))])


@case("torch-cumprod", ops=["_?cumprod"])
def large_product_near_one(make):
    """Of other numbers it is soon 0 or infinite, whatever their order."""
    return make.forward(lambda x: torch.cumprod(x, 0), [make.uniform((1 << 20,), low=0.999, high=1.001)])


@case("torch-sum", ops=["sum"])
def large_sum(make):
    return make.forward(lambda x: x.sum(), [make.uniform((1 << 22,))])


@case("torch-{op}", ops=["median|mode"], op=["median", "mode"])
def large_one_of_equals(make, op):
    values = make.integers(0, 50, (MANY, 4), "int64")
    return make.forward(lambda x: tuple(getattr(torch, op)(x, 0)), [values])


@case("torch-kthvalue", ops=["kthvalue"])
def large_kthvalue_of_equals(make):
    return make.forward(lambda x: tuple(x.kthvalue(MANY // 3, 0)), [make.integers(0, 50, (MANY, 4), "int64")])


@case("torch-{op}", ops=["topk|sort"], op=["topk", "sort"])
def large_order_of_equals(make, op):
    values = make.integers(0, 50, (4, MANY), "int64")
    order = {"topk": lambda x: tuple(x.topk(MANY // 3)), "sort": lambda x: tuple(x.sort())}
    return make.forward(order[op], [values])
