"""Work through many rows a piece at a time: what is needed beside inputs and outputs stays small, and in caches."""

from tfdeterminism.patches.common import at_once, cast, while_loop

ELEMENTS = 2 ** 18  # of a piece
_AHEAD = 2  # pieces at once


def of(rows):
    """(start, stop) -> rows[start:stop]; without start all of them, and no op more in the graph."""
    return lambda start, stop: rows if start is None else rows[start:stop]


def is_one(many, width):
    """Whether many rows of width elements are known to be so few that nothing is gained, or no loop may be made."""
    return at_once() or isinstance(many, int) and isinstance(width, int) and many * width <= 2 * ELEMENTS


def over(many, width, more, start, least=1, shapes=None):
    """more(what came before, start, stop), a list of tensors, over all pieces one after the other.

    many, width: rows and elements in each; ints where known.  more(None, None, None) takes all rows at once.
    start(): what comes before the first piece, where there are several; eagerly it is None.
    least: rows of a piece.  shapes: of what is found, where they change.
    """
    from tensorflow.python.eager import context
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import array_ops, math_ops
    if is_one(many, width):
        return more(None, None, None)
    step = math_ops.maximum(ELEMENTS // math_ops.maximum(width, 1), math_ops.maximum(cast(least, dtypes.int32), 1))
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
                      [step.shape] + shapes, parallel_iterations=_AHEAD)[1:]
