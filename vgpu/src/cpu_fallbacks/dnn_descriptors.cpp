// cuDNN's descriptors. They store their attributes even when the fallbacks are off.
#include <algorithm>

#include "dnn.h"
#include "vendor_stubs/library_status.h"

using namespace vgpu;

namespace {

int bad_parameter() { return library_status("cudnn")->invalid_value; }

template <class D, class F> int set(D* descriptor, F f) { return descriptor ? (f(*descriptor), kSuccess) : bad_parameter(); }

Dims to_dims(int count, const int* values) { return Dims(values, values + count); }
int set_packed(TensorDescriptor* descriptor, int kind, Dims dims, bool channels_last) {
  return set(descriptor, [&](TensorDescriptor& t) {
    t.kind = kind, t.dims = std::move(dims);
    if (t.dims.size() >= 2) t.set_packed_strides(channels_last);
  });
}
int set_strided(TensorDescriptor* descriptor, int kind, Dims dims, Dims strides) {
  return set(descriptor, [&](TensorDescriptor& t) { t.kind = kind, t.dims = std::move(dims), t.strides = std::move(strides); });
}
bool is_channels_last(int format) { return format == 1; }  // cudnn.h: CUDNN_TENSOR_NHWC
// Returns the kind, or an invalid one for the vectorized layout (CUDNN_TENSOR_NCHW_VECT_C), which no CPU fallback supports.
int supported_kind(int kind, int format) { return format > 1 ? -1 : kind; }

}  // namespace

#define DESCRIPTOR(name, type)                                                                          \
  API int cudnnCreate##name##Descriptor(type** descriptor) { return *descriptor = new type, kSuccess; } \
  API int cudnnDestroy##name##Descriptor(type* descriptor) { return delete descriptor, kSuccess; }

DESCRIPTOR(Tensor, TensorDescriptor)
DESCRIPTOR(Filter, Filter)
DESCRIPTOR(Convolution, Convolution)
DESCRIPTOR(Pooling, Pooling)
DESCRIPTOR(Activation, Activation)

API int cudnnSetTensor4dDescriptor(TensorDescriptor* descriptor, int format, int kind, int n, int c, int h, int w) {
  return set_packed(descriptor, supported_kind(kind, format), {n, c, h, w}, is_channels_last(format));
}
API int cudnnSetTensor4dDescriptorEx(TensorDescriptor* descriptor, int kind, int n, int c, int h, int w, int stride_n,
                                     int stride_c, int stride_h, int stride_w) {
  return set_strided(descriptor, kind, {n, c, h, w}, {stride_n, stride_c, stride_h, stride_w});
}
API int cudnnSetTensorNdDescriptor(TensorDescriptor* descriptor, int kind, int rank, const int* dims, const int* strides) {
  return descriptor ? set_strided(descriptor, kind, to_dims(rank, dims), to_dims(rank, strides)) : bad_parameter();
}
API int cudnnSetTensorNdDescriptorEx(TensorDescriptor* descriptor, int format, int kind, int rank, const int* dims) {
  return descriptor ? set_packed(descriptor, supported_kind(kind, format), to_dims(rank, dims), is_channels_last(format))
                    : bad_parameter();
}
API int cudnnGetTensorNdDescriptor(const TensorDescriptor* descriptor, int requested, int* kind, int* rank, int* dims,
                                   int* strides) {
  if (!descriptor || !kind || !rank || !dims || !strides) return bad_parameter();
  *kind = descriptor->kind, *rank = int(descriptor->dims.size());
  for (int k = 0; k < std::min(requested, *rank); k++)
    dims[k] = int(descriptor->dims[size_t(k)]), strides[k] = int(descriptor->strides[size_t(k)]);
  return kSuccess;
}
API int cudnnDeriveBNTensorDescriptor(TensorDescriptor* descriptor, const TensorDescriptor* from, int mode) {
  if (!descriptor || !from) return bad_parameter();
  Dims dims = from->dims;
  for (size_t k = 0; k < dims.size(); k++)
    if (k == 0 || (k > 1 && mode != 0)) dims[k] = 1;  // mode 0: CUDNN_BATCHNORM_PER_ACTIVATION
  return set_packed(descriptor, from->kind == 1 ? 1 : 0, dims, false);  // doubles for doubles, else floats
}

API int cudnnSetFilter4dDescriptor(Filter* descriptor, int kind, int format, int k, int c, int h, int w) {
  return descriptor ? set_packed(&descriptor->tensor, supported_kind(kind, format), {k, c, h, w}, is_channels_last(format))
                    : bad_parameter();
}
API int cudnnSetFilterNdDescriptor(Filter* descriptor, int kind, int format, int rank, const int* dims) {
  return descriptor
             ? set_packed(&descriptor->tensor, supported_kind(kind, format), to_dims(rank, dims), is_channels_last(format))
             : bad_parameter();
}

API int cudnnSetConvolution2dDescriptor(Convolution* descriptor, int pad_h, int pad_w, int stride_h, int stride_w,
                                        int dilation_h, int dilation_w, int mode, int /* compute_type */) {
  return set(descriptor, [&](Convolution& convolution) {
    convolution.pads = {pad_h, pad_w}, convolution.strides = {stride_h, stride_w},
    convolution.dilations = {dilation_h, dilation_w}, convolution.is_convolution = mode == 0;
  });
}
API int cudnnSetConvolutionNdDescriptor(Convolution* descriptor, int rank, const int* pads, const int* strides,
                                        const int* dilations, int mode, int /* compute_type */) {
  return set(descriptor, [&](Convolution& convolution) {
    convolution.pads = to_dims(rank, pads), convolution.strides = to_dims(rank, strides),
    convolution.dilations = to_dims(rank, dilations);
    convolution.is_convolution = mode == 0;  // CUDNN_CONVOLUTION; 1: CUDNN_CROSS_CORRELATION
  });
}
API int cudnnSetConvolutionGroupCount(Convolution* descriptor, int groups) {
  return set(descriptor, [&](Convolution& convolution) { convolution.groups = groups; });
}
API int cudnnSetConvolutionMathType(Convolution* descriptor, int type) {
  return set(descriptor, [&](Convolution& convolution) { convolution.math = type; });
}
API int cudnnGetConvolutionGroupCount(const Convolution* descriptor, int* groups) {
  return *groups = descriptor ? descriptor->groups : 1, kSuccess;
}
API int cudnnGetConvolutionMathType(const Convolution* descriptor, int* type) {
  return *type = descriptor ? descriptor->math : 0, kSuccess;
}

API int cudnnSetPooling2dDescriptor(Pooling* descriptor, int mode, int nan, int h, int w, int pad_h, int pad_w, int stride_h,
                                    int stride_w) {
  return set(descriptor, [&](Pooling& pooling) { pooling = {mode, nan == 1, {h, w}, {pad_h, pad_w}, {stride_h, stride_w}}; });
}
API int cudnnSetPoolingNdDescriptor(Pooling* descriptor, int mode, int nan, int rank, const int* window, const int* pads,
                                    const int* strides) {
  return set(descriptor, [&](Pooling& pooling) {
    pooling = {mode, nan == 1, to_dims(rank, window), to_dims(rank, pads), to_dims(rank, strides)};
  });
}

API int cudnnSetActivationDescriptor(Activation* descriptor, int mode, int nan, double coefficient) {
  return set(descriptor, [&](Activation& activation) { activation = {mode, nan == 1, coefficient}; });
}
