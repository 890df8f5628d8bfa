"""Sums into few rows from many, large enough for the threads to share them: PyTorch's own samples are too small.

@case gives the source of nondeterminism, patterns of the ops that must run, and the modes; make, a CaseBuilder,
draws the inputs and returns what is run: forward, gradient, or a program that each repeat builds anew.
"""

import torch
from tfdet_probe import case

ROWS, COLUMNS = 100000, 16


@case("torch-index-put", ops=["index_put_?|_index_put_impl_"])
def large_index_put(make):
    index, values = make.integers(0, 7, (ROWS,), "int64"), make.uniform((ROWS, COLUMNS))
    return make.forward(lambda i, x: x.new_zeros((7, COLUMNS)).index_put((i,), x, accumulate=True), [index, values])


@case("torch-dunder-getitem", ops=["index_put_?|_index_put_impl_"])
def large_getitem_backward(make):
    index, table = make.integers(0, 7, (ROWS,), "int64"), make.uniform((7, COLUMNS))
    return make.gradient(lambda i, x: x[i], [index, table], wrt=[1])


@case("torch-scatter-add", ops=["scatter_add_?"])
def large_scatter_add(make):
    index, values = make.integers(0, 7, (ROWS, COLUMNS), "int64"), make.uniform((ROWS, COLUMNS))
    return make.forward(lambda i, x: x.new_zeros((7, COLUMNS)).scatter_add(0, i, x), [index, values])


@case("torch-nn-functional-embedding", ops=["embedding_dense_backward"])
def large_embedding_backward(make):
    index, table = make.integers(0, 7, (ROWS,), "int64"), make.uniform((7, COLUMNS))
    return make.gradient(torch.nn.functional.embedding, [index, table], wrt=[1])
