"""adjust_contrast: distances from each image's mean, scaled."""

from tfdeterminism.patches.common import OpNameScope, cast, tensor, use_original_unless


def install(replacements):
    from tensorflow.python.ops import gen_image_ops, image_ops
    replacements.replace(gen_image_ops, "adjust_contrastv2", _adjust_contrast)
    for name in ("adjust_contrast", "random_contrast"):
        replacements.note_public_caller(getattr(image_ops, name, None))


def _adjust_contrast(images, contrast_factor, name=None):
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import math_ops
    with OpNameScope(name, "AdjustContrastv2") as scope:
        images, factor = tensor(images), tensor(contrast_factor, dtypes.float32)
        use_original_unless(images.dtype in (dtypes.float16, dtypes.float32) and factor.shape.is_compatible_with([]))
        use_original_unless(images.shape.ndims is None or images.shape.ndims >= 3)
        mean = math_ops.reduce_mean(images, [-3, -2], keepdims=True)
        result = (images - mean) * cast(factor, images.dtype) + mean
        result.set_shape(images.shape)
        return scope.named(result)
