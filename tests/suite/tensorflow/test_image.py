"""Cases of ops on images.

@case gives the source of nondeterminism, patterns of the ops that must run, and the modes; make, a CaseBuilder,
draws the inputs and returns what is run: forward, gradient, or a program that each repeat builds anew.
"""

import tensorflow as tf
from tfdet_probe import case

tf1 = getattr(tf.compat, "v1", tf)


def crop(image, boxes, indices):
    return tf1.image.crop_and_resize(image, boxes, indices, [14, 14])


@case("crop-and-resize-backprop", ops=["CropAndResizeGradImage"])
def crop_and_resize_to_image(make):
    image = make.uniform((2, 24, 24, 8))
    boxes = make.uniform((2048, 4), low=0.0, high=1.0)
    indices = make.integers(0, 2, (2048,))
    return make.gradient(lambda i, b: crop(i, b, indices), [image, boxes], wrt=[0])


@case("crop-and-resize-backprop", ops=["CropAndResizeGradBoxes"])
def crop_and_resize_to_boxes(make):
    image = make.uniform((2, 24, 24, 8))
    boxes = make.uniform((256, 4), low=0.0, high=1.0)
    indices = make.integers(0, 2, (256,))
    return make.gradient(lambda i, b: crop(i, b, indices), [image, boxes], wrt=[1])


@case("adjust-contrast", ops=["AdjustContrastv2"], modes=("eager", "function"))
def adjust_contrast(make):
    image = make.uniform((4, 64, 64, 3))
    return make.forward(lambda i: tf.image.adjust_contrast(i, 1.7), [image])


@case("contrib-resampler", ops=["ResamplerGrad"], modes=("eager", "session"))
def resampler(make):
    """TensorFlow 1 only; warp points overlap."""
    image = make.uniform((2, 16, 16, 4))
    warp = make.uniform((2, 2048, 2), low=0.0, high=15.0)
    return make.gradient(lambda i, w: tf.contrib.resampler.resampler(i, w), [image, warp], wrt=[0, 1])
