"""The processing of many rows in chunks, so that temporary tensors stay small and in caches."""

from tfdeterminism.patches.common import cast, while_loop, without_loops

CHUNK_ELEMENTS = 2 ** 18  # elements of a chunk
_PARALLEL_CHUNKS = 2


def chunk_of(rows):
    """Return a function (start, stop) -> rows[start:stop]; start=None returns all rows without an op in the graph."""
    return lambda start, stop: rows if start is None else rows[start:stop]


def fits_one_chunk(row_count, width):
    """Return whether rows need no chunks, because they are few, or a saved graph must have no loops.

    row_count: the number of rows; width: the number of elements in a row.
    """
    if without_loops():
        return True
    return isinstance(row_count, int) and isinstance(width, int) and row_count * width <= 2 * CHUNK_ELEMENTS


def map_chunks(row_count, width, process, start, min_rows=1, shapes=None):
    """Fold a function over all chunks, one after another.

    Args:
        row_count: the number of rows; an int if known.
        width: the number of elements in a row; an int if known.
        process: process(result so far, start, stop) -> result, a list of tensors.  process(None, None, None)
            processes all rows at once.
        start: start() -> the result before the first chunk, if there are several; eagerly None is used instead.
        min_rows: the minimum number of rows in a chunk.
        shapes: the shapes of the result, if a chunk changes them.

    Returns:
        The result after the last chunk.
    """
    from tensorflow.python.eager import context
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import array_ops, math_ops
    if fits_one_chunk(row_count, width):
        return process(None, None, None)
    min_rows = math_ops.maximum(cast(min_rows, dtypes.int32), 1)
    step = math_ops.maximum(CHUNK_ELEMENTS // math_ops.maximum(width, 1), min_rows)
    if context.executing_eagerly():
        result = None
        for begin in range(0, row_count, int(step)):
            result = process(result, begin, begin + int(step))
        return start() if result is None else result
    result = start()
    shapes = shapes or [value.shape for value in result]

    def body(begin, *values):
        result = process(list(values), begin, begin + step)
        for value, shape in zip(result, shapes):
            value.set_shape(shape)
        return [begin + step] + result
    return while_loop(lambda begin, *result: begin < row_count, body, [array_ops.zeros_like(step)] + result,
                      [step.shape] + shapes, parallel_iterations=_PARALLEL_CHUNKS)[1:]
