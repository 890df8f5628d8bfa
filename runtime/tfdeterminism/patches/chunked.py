"""Process many rows in chunks, so that temporary tensors stay small and in caches."""

from tfdeterminism.patches.common import cast, while_loop, without_loops

CHUNK_ELEMENTS = 2 ** 18  # of a chunk
_PARALLEL_CHUNKS = 2


def chunk_of(rows):
    """A function (start, stop) -> rows[start:stop]; start=None gives all rows without an op in the graph."""
    return lambda start, stop: rows if start is None else rows[start:stop]


def fits_one_chunk(many, width):
    """Whether `many` rows of `width` elements need no chunks: they are few, or loops are not allowed."""
    return without_loops() or isinstance(many, int) and isinstance(width, int) and many * width <= 2 * CHUNK_ELEMENTS


def map_chunks(many, width, more, start, least=1, shapes=None):
    """Fold a function over all chunks, one after another.

    Args:
        many: the number of rows; an int if known.
        width: the number of elements in a row; an int if known.
        more: more(result so far, start, stop) -> result, a list of tensors.  more(None, None, None) processes all rows
            at once.
        start: start() -> the result before the first chunk, if there are several; eagerly None is used instead.
        least: the least number of rows in a chunk.
        shapes: the shapes of the result, if a chunk changes them.

    Returns:
        The result after the last chunk.
    """
    from tensorflow.python.eager import context
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import array_ops, math_ops
    if fits_one_chunk(many, width):
        return more(None, None, None)
    least = math_ops.maximum(cast(least, dtypes.int32), 1)
    step = math_ops.maximum(CHUNK_ELEMENTS // math_ops.maximum(width, 1), least)
    if context.executing_eagerly():
        found = None
        for first in range(0, many, int(step)):
            found = more(found, first, first + int(step))
        return start() if found is None else found
    found = start()
    shapes = shapes or [value.shape for value in found]

    def body(first, *before):
        found = more(list(before), first, first + step)
        for value, shape in zip(found, shapes):
            value.set_shape(shape)
        return [first + step] + found
    return while_loop(lambda first, *found: first < many, body, [array_ops.zeros_like(step)] + found,
                      [step.shape] + shapes, parallel_iterations=_PARALLEL_CHUNKS)[1:]
