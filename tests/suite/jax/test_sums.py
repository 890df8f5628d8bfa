"""Sums into few rows from many: what XLA makes of them on a GPU adds atomically.

@case gives the source of nondeterminism, patterns of the ops that must run, and the modes; make, a CaseBuilder,
draws the inputs and returns what is run: forward, gradient, or a program that each repeat builds anew.
"""

import jax
import jax.numpy as jnp
from tfdet_probe import case

ROWS, COLUMNS, SEGMENTS = 20000, 16, 7


@case("jax-scatter-add", ops=["scatter"], dtype=["float32", "float16"])
def scatter_add(make, dtype):
    index, values = make.integers(0, SEGMENTS, (ROWS,)), make.uniform((ROWS, COLUMNS), dtype)
    return make.forward(lambda i, x: jnp.zeros((SEGMENTS, COLUMNS), x.dtype).at[i].add(x), [index, values])


@case("jax-scatter-mul", ops=["scatter"])
def scatter_mul(make):
    index, values = make.integers(0, SEGMENTS, (200,)), make.uniform((200, COLUMNS), low=0.5, high=1.5)
    return make.forward(lambda i, x: jnp.ones((SEGMENTS, COLUMNS), x.dtype).at[i].mul(x), [index, values])


@case("jax-scatter-set", ops=["scatter"])
def scatter_set(make):
    index, values = make.integers(0, SEGMENTS, (ROWS,)), make.uniform((ROWS, COLUMNS))
    return make.forward(lambda i, x: jnp.zeros((SEGMENTS, COLUMNS), x.dtype).at[i].set(x), [index, values])


@case("jax-segment-sum", ops=["scatter"])
def segment_sum(make):
    index, values = make.integers(0, SEGMENTS, (ROWS,)), make.uniform((ROWS, COLUMNS))
    return make.forward(lambda i, x: jax.ops.segment_sum(x, i, SEGMENTS), [index, values])


@case("jax-gather-backprop", ops=["scatter"])
def gather_backprop(make):
    index, table = make.integers(0, SEGMENTS, (ROWS,)), make.uniform((SEGMENTS, COLUMNS))
    return make.gradient(lambda i, x: x[i], [index, table], wrt=[1])


@case("jax-reduce-sum", ops=["reduce"])
def reduce_sum(make):
    return make.forward(jnp.sum, [make.uniform((ROWS * COLUMNS,))])


@case("jax-reduce-window-backprop", ops=["select_and_scatter"])
def max_pool_backprop(make):
    """Its windows overlap: some of what they pass back is added up."""

    def pooled(x):
        return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")

    return make.gradient(pooled, [make.uniform((4, 32, 32, 8))], wrt=[0])


@case("jax-sort", ops=["sort"])
def unstable_argsort(make):
    """Many equal values: in which order they come is open."""
    return make.forward(lambda x: jnp.argsort(x, stable=False), [make.integers(0, 9, (ROWS,))])


@case("jax-cumsum", ops=["reduce_window|while|add"])
def cumulative_sum(make):
    return make.forward(jnp.cumsum, [make.uniform((ROWS,))])
