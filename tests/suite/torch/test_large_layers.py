"""Gradients of layers, large enough for many threads of a GPU to meet: PyTorch's own samples are too small.

@case gives the source of nondeterminism, patterns of the ops that must run, and the modes; make, a CaseBuilder,
draws the inputs and returns what is run: forward, gradient, or a program that each repeat builds anew.
"""

import torch.nn.functional as functional
from tfdet_probe import case


@case("torch-nn-functional-embedding-bag", ops=["_embedding_bag.*backward"], mode=["sum", "mean", "max"])
def large_embedding_bag_backward(make, mode):
    index, table = make.integers(0, 7, (25000, 4), "int64"), make.uniform((7, 16))
    return make.gradient(lambda i, x: functional.embedding_bag(i, x, mode=mode), [index, table], wrt=[1])


@case("torch-nn-functional-interpolate-{how}", ops=["_?upsample_.*_backward"],
      how=["nearest", "linear", "bilinear", "bicubic", "trilinear"])
def large_interpolate_backward(make, how):
    sizes = {"linear": (64,), "trilinear": (8, 8, 8)}.get(how, (24, 24))
    corners = {} if how == "nearest" else {"align_corners": False}
    return make.gradient(lambda x: functional.interpolate(x, scale_factor=7.5, mode=how, **corners),
                         [make.uniform((2, 8) + sizes)], wrt=[0])


@case("torch-nn-functional-adaptive-{kind}-pool{rank}d", ops=["_?adaptive_.*_backward"], kind=["avg", "max"],
      rank=[2, 3])
def large_adaptive_pool_backward(make, kind, rank):
    """Windows that overlap: the sizes do not divide."""
    pool = getattr(functional, "adaptive_{}_pool{}d".format(kind, rank))
    return make.gradient(lambda x: pool(x, 19), [make.uniform((4, 8) + (23,) * rank)], wrt=[0])


@case("torch-nn-functional-{kind}-pool{rank}d", ops=["(avg|max)_pool.*_backward"], kind=["avg", "max"], rank=[2, 3])
def large_pool_backward(make, kind, rank):
    pool = getattr(functional, "{}_pool{}d".format(kind, rank))
    return make.gradient(lambda x: pool(x, 5, stride=2), [make.uniform((4, 8) + (33,) * rank)], wrt=[0])


@case("torch-nn-functional-max-unpool2d", ops=["max_unpool2d"])
def large_max_unpool_one_wins(make):
    index = make.integers(0, 50, (2, 8, 128, 128), "int64")
    return make.forward(lambda i, x: functional.max_unpool2d(x, i, 2), [index, make.uniform((2, 8, 128, 128))])


@case("torch-nn-functional-pad-{how}", ops=["(reflection|replication)_pad.*_backward"], how=["reflect", "replicate"],
      rank=[1, 2, 3])
def large_pad_backward(make, how, rank):
    return make.gradient(lambda x: functional.pad(x, (7,) * (2 * rank), mode=how),
                         [make.uniform((4, 8) + (16,) * rank)], wrt=[0])


@case("torch-nn-functional-grid-sample", ops=["(cudnn_)?grid_sampler.*_backward"], rank=[2, 3],
      how=["bilinear", "nearest"])
def large_grid_sample_backward(make, rank, how):
    values, grid = make.uniform((2, 4) + (9,) * rank), make.uniform((2,) + (32,) * rank + (rank,))
    return make.gradient(lambda x, g: functional.grid_sample(x, g, mode=how, align_corners=False), [values, grid],
                         wrt=[0, 1])


@case("torch-nn-functional-ctc-loss", ops=["_(cudnn_)?ctc_loss_backward|mul"])
def large_ctc_loss_backward(make):
    """Labels that repeat: their gradients meet in one class."""
    logits, labels = make.uniform((200, 32, 5), low=-4.0), make.integers(1, 5, (32, 40), "int64")
    return make.gradient(lambda x, y: functional.ctc_loss(x.log_softmax(2), y, (200,) * 32, (40,) * 32,
                                                           zero_infinity=True),
                         [logits, labels], wrt=[0])


@case("torch-nn-functional-nll-loss", ops=["nll_loss2d_forward"])
def large_nll_loss_of_images(make):
    scores, classes = make.uniform((8, 5, 128, 128)), make.integers(0, 5, (8, 128, 128), "int64")
    return make.forward(functional.nll_loss, [scores, classes])


@case("torch-nn-functional-conv{rank}d", ops=["convolution_backward"], rank=[1, 2, 3])
def large_convolution_backward(make, rank):
    values, weights = make.uniform((16, 32) + ((2048,), (56, 56), (16, 16, 16))[rank - 1]), make.uniform(
        (32, 32) + (3,) * rank)
    convolve = getattr(functional, "conv{}d".format(rank))
    return make.gradient(lambda x, w: convolve(x, w, padding=1), [values, weights], wrt=[0, 1])


@case("torch-nn-functional-conv-transpose{rank}d", ops=["convolution_backward"], rank=[1, 2, 3])
def large_transposed_convolution_backward(make, rank):
    values, weights = make.uniform((16, 32) + ((1024,), (28, 28), (8, 8, 8))[rank - 1]), make.uniform(
        (32, 32) + (3,) * rank)
    convolve = getattr(functional, "conv_transpose{}d".format(rank))
    return make.gradient(lambda x, w: convolve(x, w, stride=2), [values, weights], wrt=[0, 1])


@case("torch-nn-functional-scaled-dot-product-attention", ops=["_scaled_dot_product.*backward"], half=[False, True])
def large_attention_backward(make, half):
    """Half: bfloat16, in which models attend."""
    def attend(q, k, v):
        if half:
            q, k, v = q.bfloat16(), k.bfloat16(), v.bfloat16()
        return functional.scaled_dot_product_attention(q, k, v).float()
    return make.gradient(attend, [make.uniform((2, 8, 1024, 64)) for _ in "qkv"], wrt=[0, 1, 2])


@case("torch-nn-functional-{kind}-norm", ops=["(native|cudnn)_.*_norm_backward"], kind=["layer", "group", "batch"])
def large_norm_backward(make, kind):
    values, weights = make.uniform((64, 64, 32, 32)), make.uniform((64,))
    normal = {
        "layer": lambda x, w: functional.layer_norm(x.movedim(1, 3), (64,), w),
        "group": lambda x, w: functional.group_norm(x, 8, w),
        "batch": lambda x, w: functional.batch_norm(x, None, None, w, training=True),
    }
    return make.gradient(normal[kind], [values, weights], wrt=[0, 1])
