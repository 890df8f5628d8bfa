// cuDNN's descriptors: what they were told is kept, whether or not anything is computed by it.
#include "dnn.h"

using namespace vgpu;

namespace {

constexpr int kBadParameter = 3;  // cudnn.h: CUDNN_STATUS_BAD_PARAM

template <class D, class F> int set(D* descriptor, F f) { return descriptor ? (f(*descriptor), kSuccess) : kBadParameter; }

Dims listed(int count, const int* values) { return Dims(values, values + count); }
int shape(TensorDescriptor* to, int kind, Dims dims, bool channels_last) {
  return set(to, [&](TensorDescriptor& t) {
    t.kind = kind, t.dims = std::move(dims);
    if (t.dims.size() >= 2) t.set_packed_strides(channels_last);
  });
}
int strided(TensorDescriptor* to, int kind, Dims dims, Dims strides) {
  return set(to, [&](TensorDescriptor& t) { t.kind = kind, t.dims = std::move(dims), t.strides = std::move(strides); });
}
bool channels_last(int format) { return format == 1; }  // cudnn.h: CUDNN_TENSOR_NHWC
// No CPU fallback reads the vectorized layouts (CUDNN_TENSOR_NCHW_VECT_C).
int readable(int kind, int format) { return format > 1 ? -1 : kind; }

}  // namespace

#define DESCRIPTOR(name, type)                                                          \
  API int cudnnCreate##name##Descriptor(type** to) { return *to = new type, kSuccess; } \
  API int cudnnDestroy##name##Descriptor(type* of) { return delete of, kSuccess; }

DESCRIPTOR(Tensor, TensorDescriptor)
DESCRIPTOR(Filter, Filter)
DESCRIPTOR(Convolution, Convolution)
DESCRIPTOR(Pooling, Pooling)
DESCRIPTOR(Activation, Activation)

API int cudnnSetTensor4dDescriptor(TensorDescriptor* to, int format, int kind, int n, int c, int h, int w) {
  return shape(to, readable(kind, format), {n, c, h, w}, channels_last(format));
}
API int cudnnSetTensor4dDescriptorEx(TensorDescriptor* to, int kind, int n, int c, int h, int w, int by_n, int by_c, int by_h,
                                     int by_w) {
  return strided(to, kind, {n, c, h, w}, {by_n, by_c, by_h, by_w});
}
API int cudnnSetTensorNdDescriptor(TensorDescriptor* to, int kind, int rank, const int* dims, const int* strides) {
  return to ? strided(to, kind, listed(rank, dims), listed(rank, strides)) : kBadParameter;
}
API int cudnnSetTensorNdDescriptorEx(TensorDescriptor* to, int format, int kind, int rank, const int* dims) {
  return to ? shape(to, readable(kind, format), listed(rank, dims), channels_last(format)) : kBadParameter;
}
API int cudnnDeriveBNTensorDescriptor(TensorDescriptor* to, const TensorDescriptor* from, int mode) {
  if (!to || !from) return kBadParameter;
  Dims dims = from->dims;
  for (size_t k = 0; k < dims.size(); k++)
    if (k == 0 || (k > 1 && mode != 0)) dims[k] = 1;
  return shape(to, from->kind == 1 ? 1 : 0, dims, false);
}

API int cudnnSetFilter4dDescriptor(Filter* to, int kind, int format, int k, int c, int h, int w) {
  return to ? shape(&to->tensor, readable(kind, format), {k, c, h, w}, channels_last(format)) : kBadParameter;
}
API int cudnnSetFilterNdDescriptor(Filter* to, int kind, int format, int rank, const int* dims) {
  return to ? shape(&to->tensor, readable(kind, format), listed(rank, dims), channels_last(format)) : kBadParameter;
}

API int cudnnSetConvolution2dDescriptor(Convolution* to, int pad_h, int pad_w, int by_h, int by_w, int apart_h, int apart_w,
                                        int mode, int /* sums */) {
  return set(to, [&](Convolution& one) {
    one.pads = {pad_h, pad_w}, one.strides = {by_h, by_w}, one.dilations = {apart_h, apart_w}, one.is_convolution = mode == 0;
  });
}
API int cudnnSetConvolutionNdDescriptor(Convolution* to, int rank, const int* pads, const int* strides, const int* dilations,
                                        int mode, int /* sums */) {
  return set(to, [&](Convolution& one) {
    one.pads = listed(rank, pads), one.strides = listed(rank, strides), one.dilations = listed(rank, dilations);
    one.is_convolution = mode == 0;
  });
}
API int cudnnSetConvolutionGroupCount(Convolution* to, int groups) {
  return set(to, [&](Convolution& one) { one.groups = groups; });
}
API int cudnnSetConvolutionMathType(Convolution* to, int type) {
  return set(to, [&](Convolution& one) { one.math = type; });
}
API int cudnnGetConvolutionGroupCount(const Convolution* of, int* groups) { return *groups = of ? of->groups : 1, kSuccess; }
API int cudnnGetConvolutionMathType(const Convolution* of, int* type) { return *type = of ? of->math : 0, kSuccess; }

API int cudnnSetPooling2dDescriptor(Pooling* to, int mode, int nan, int h, int w, int pad_h, int pad_w, int by_h, int by_w) {
  return set(to, [&](Pooling& one) { one = {mode, nan == 1, {h, w}, {pad_h, pad_w}, {by_h, by_w}}; });
}
API int cudnnSetPoolingNdDescriptor(Pooling* to, int mode, int nan, int rank, const int* window, const int* pads,
                                    const int* strides) {
  return set(to,
             [&](Pooling& one) { one = {mode, nan == 1, listed(rank, window), listed(rank, pads), listed(rank, strides)}; });
}

API int cudnnSetActivationDescriptor(Activation* to, int mode, int nan, double coefficient) {
  return set(to, [&](Activation& one) { one = {mode, nan == 1, coefficient}; });
}
