"""Cases of the patched image ops. Each function yields cases, made by `m`, a making_checks.Maker.

Of a case: wrt: which inputs to differentiate by; second: whether to test second derivatives, too; terms: how many
numbers a result sums at most, which bounds its error; eps: a less exact dtype that bounds it, too;
modes: eager, and in graphs that know the shape (STATIC), also the number of dimensions alone (DIMS).
"""

import numpy as np
from making_checks import DIMS, EAGER, FLOATS, STATIC

_SIZES = (((5, 3), (40, 31)), ((9, 9), (4, 3)), ((1, 1), (7, 5)), ((4, 4), (1, 1)), ((6, 5), (6, 5)), ((3, 8), (13, 4)),
          ((2, 300), (3, 700)))


def resizes(tf, tf1, m, version):
    image_ops = tf1.image
    for function, patch in (("resize_bilinear", "resize-bilinear"), ("resize_nearest_neighbor", "resize-nearest")):
        for align, half in ((False, False), (True, False), (False, True)):
            if half and version < (1, 14):
                continue
            options = {"align_corners": align}
            if half:
                options["half_pixel_centers"] = True
            for dtype in FLOATS:
                for old, new in _SIZES if dtype == "float32" else _SIZES[:3]:
                    terms = 4 * (new[0] // old[0] + 2) * (new[1] // old[1] + 2)
                    yield m.case("%s %s %s to %s %s" % (function, dtype, old, new, sorted(options)), patch,
                                 lambda x, s, f=function, o=options: getattr(image_ops, f)(x, s, **o),
                                 [m.real((2,) + old + (3,), dtype), np.array(new, "int32")], wrt=[0],
                                 terms=terms, eps="float32",
                                 modes=DIMS if old == (3, 8) and dtype == "float32" else EAGER)
        yield m.case(function + " of no images", patch, lambda x, s, f=function: getattr(image_ops, f)(x, s),
                     [m.real((0, 3, 4, 2)), np.array([6, 7], "int32")], wrt=[0])
    if version >= (2, 0):
        for method in ("bilinear", "nearest"):
            yield m.case("tf.image.resize " + method, "resize-" + method,
                         lambda x, method=method: tf.image.resize(x, [11, 9], method=method), [m.real((2, 4, 5, 3))],
                         wrt=[0], terms=30, modes=STATIC)


def crops(tf, tf1, m, version):
    def call(method, size, extrapolation=0.0):
        return lambda image, boxes, box: tf1.image.crop_and_resize(
            image, boxes, box, size, method=method, extrapolation_value=extrapolation)
    for method in ("bilinear", "nearest"):
        for dtype in ("float32", "float64"):  # float16 makes TensorFlow 2.0 abort
            for size in ((4, 3), (1, 1), (7, 1), (1, 5)):
                boxes = m.real((12, 4), low=-0.2, high=1.2)
                yield m.case("crop_and_resize %s %s %s" % (method, dtype, size), "crop-and-resize",
                             call(method, list(size), 0.5),
                             [m.real((2, 6, 5, 3), dtype), boxes, m.ints(0, 2, (12,))], wrt=[0, 1], terms=300,
                             eps="float32",
                             modes=DIMS if size == (4, 3) and dtype == "float32" else EAGER)
        boxes = np.array([[0, 0, 1, 1], [1, 1, 0, 0], [0.5, 0.5, 0.5, 0.5], [0, 0, 0.4, 0.4]], "float32")
        yield m.case("crop_and_resize %s on the grid, flipped, a point" % method, "crop-and-resize",
                     call(method, [6, 5]), [m.real((1, 6, 5, 2)), boxes, np.zeros(4, "int32")], wrt=[0, 1], terms=60)
        yield m.case("crop_and_resize %s of no boxes" % method, "crop-and-resize", call(method, [2, 2]),
                     [m.real((1, 6, 5, 2)), np.zeros((0, 4), "float32"), np.zeros((0,), "int32")], wrt=[0, 1])
        yield m.case("crop_and_resize %s of one pixel" % method, "crop-and-resize", call(method, [3, 3]),
                     [m.real((1, 1, 1, 2)), m.real((3, 4), low=0, high=1), np.zeros((3,), "int32")], wrt=[0, 1])


def contrasts(tf, tf1, m, version):
    for shape in ((4, 5, 3), (2, 4, 5, 3), (2, 1, 4, 5, 1), (1, 1, 1)):
        yield m.case("adjust_contrast %s" % (shape,), "adjust-contrast",
                     lambda x: tf.image.adjust_contrast(x, 1.7), [m.real(shape)], terms=30,
                     modes=DIMS if shape[0] == 2 else EAGER,
                     expected=lambda x: (x - x.mean((-3, -2), keepdims=True)) * np.float32(1.7)
                     + x.mean((-3, -2), keepdims=True))
    yield m.case("adjust_contrast uint8", "adjust-contrast", lambda x: tf.image.adjust_contrast(x, 0.4),
                 [m.ints(0, 255, (2, 4, 5, 3), "uint8")], terms=30)
