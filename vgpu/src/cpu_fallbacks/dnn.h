// Descriptors and tensors, as the CPU fallbacks of cuDNN use them. Tensors with any strides are packed before computing.
#pragma once
#include <vector>

#include "data_types.h"
#include "library_handles.h"

namespace vgpu {

using Dims = std::vector<int64_t>;

// The descriptor behind a pointer of the program. InvalidValue if there is none.
template <class D> const D& required(const D* descriptor) {
  if (!descriptor) throw InvalidValue();
  return *descriptor;
}

inline int64_t element_count(const Dims& dims, size_t first = 0) {
  int64_t product = 1;
  for (size_t k = first; k < dims.size(); k++) product *= dims[k];
  return product;
}

// Of a cudnnDataType_t; FallbackUnsupported for the others.
DataType data_type_of(int kind);
// The bytes of a number in the type in which calls on this type compute.
inline uint32_t compute_size(DataType type) { return type == DataType::Double ? 8 : 4; }

// cudnnTensorDescriptor_t. Dimensions are batch, channels and then the spatial ones, independent of the order in memory.
struct TensorDescriptor {
  int kind = 0;  // cudnnDataType_t
  Dims dims, strides;

  DataType type() const { return data_type_of(kind); }
  int64_t count() const { return element_count(dims); }
  int64_t batch_size() const { return dims[0]; }
  int64_t channels() const { return dims[1]; }
  int64_t spatial_size() const { return element_count(dims, 2); }
  void set_packed_strides(bool channels_last);
  // The same elements with these dimensions: where this one has 1, its stride is 0. InvalidValue if another differs.
  TensorDescriptor broadcast_to(const Dims& shape) const;
  void check() const;
  void check_read(const void* data) const;
  void check_write(void* data) const;
  uint64_t bytes() const;  // from the start of the first element to the end of the last one
};

// cudnnFilterDescriptor_t. Dimensions are output channels, input channels and then the spatial ones.
struct Filter { TensorDescriptor tensor; };

// cudnnConvolutionDescriptor_t
struct Convolution {
  Dims pads, strides, dilations;
  bool is_convolution = false;  // otherwise a cross-correlation
  int groups = 1, math = 0;  // math: cudnnMathType_t
};

// cudnnPoolingDescriptor_t
struct Pooling {
  int mode = 0;  // cudnnPoolingMode_t
  bool propagates_nan = false;
  Dims window, pads, strides;
};

// cudnnActivationDescriptor_t
struct Activation {
  int mode = 0;  // cudnnActivationMode_t
  bool propagates_nan = false;
  double coefficient = 0;

  double value(double x) const;
  double derivative(double x, double y) const;
};

// Calls f(index, offset) for each element in row-major order; offset: in elements, by the strides.
template <class F> void for_each_element(const TensorDescriptor& tensor, F f) {
  const size_t rank = tensor.dims.size();
  Dims position(rank, 0);
  int64_t offset = 0;
  for (int64_t index = 0, count = tensor.count(); index < count; index++) {
    f(index, offset);
    for (size_t k = rank; k-- > 0;) {
      offset += tensor.strides[k];
      if (++position[k] < tensor.dims[k]) break;
      offset -= position[k] * tensor.strides[k], position[k] = 0;
    }
  }
}

template <class T> std::vector<T> load_tensor(const TensorDescriptor& tensor, const void* data) {
  tensor.check();
  tensor.check_read(data);
  std::vector<T> values(static_cast<size_t>(tensor.count()));
  const DataType type = tensor.type();
  for_each_element(tensor, [&](int64_t k, int64_t offset) { values[k] = load_element<T>(data, type, offset); });
  return values;
}

// A tensor in device memory. Its descriptor is a copy: a program may change or destroy its own once the call has returned.
struct Tensor {
  TensorDescriptor descriptor;
  void* data;

  Tensor(const TensorDescriptor& d, void* at) : descriptor(d), data(at) {}
  Tensor(const TensorDescriptor* d, void* at) : Tensor(required(d), at) {}
};

template <class T> std::vector<T> load_tensor(const Tensor& tensor) { return load_tensor<T>(tensor.descriptor, tensor.data); }

// output = alpha * result + beta * output. Floats are kept as doubles, which hold them exactly.
struct Scales {
  double alpha = 1, beta = 0;

  Scales() = default;
  Scales(double a, double b) : alpha(a), beta(b) {}
  // What a call points to: doubles if the tensor is of doubles, else floats.
  Scales(const TensorDescriptor& tensor, const void* a, const void* b)
      : alpha(load_element<double>(a, scale_type(tensor), 0)), beta(load_element<double>(b, scale_type(tensor), 0)) {}

 private:
  static DataType scale_type(const TensorDescriptor& tensor) {
    return tensor.type() == DataType::Double ? DataType::Double : DataType::Float;
  }
};

template <class T>
void store_tensor(const Tensor& tensor, const std::vector<T>& results, const Scales& scales = Scales()) {
  const TensorDescriptor& descriptor = tensor.descriptor;
  const T alpha = T(scales.alpha), beta = T(scales.beta);
  descriptor.check();
  if (static_cast<int64_t>(results.size()) != descriptor.count()) throw InvalidValue();
  if (beta != T(0)) descriptor.check_read(tensor.data);
  descriptor.check_write(tensor.data);
  const DataType type = descriptor.type();
  for_each_element(descriptor, [&](int64_t k, int64_t offset) {
    T value = alpha * results[k];
    if (beta != T(0)) value += beta * load_element<T>(tensor.data, type, offset);
    store_element(tensor.data, type, offset, value);
  });
}

// The operation that calls f(Tag<T>()), where T is the type in which calls on this type compute.
template <class F> Operation operation_in_compute_type(DataType type, const F& f) {
  if (type == DataType::Double) return [=] { f(Tag<double>()); };
  return [=] { f(Tag<float>()); };
}
template <class F> Operation operation_in_compute_type(const TensorDescriptor& tensor, const F& f) {
  return operation_in_compute_type(tensor.type(), f);
}

// The input element that each tap (element of the window) reads for each output element.
class WindowIndices {
 public:
  WindowIndices(const Dims& input, const Dims& output, const Dims& window, const Dims& pads, const Dims& strides,
                const Dims& dilations, bool is_convolution);
  int64_t taps() const { return taps_; }
  int64_t outputs() const { return outputs_; }
  int64_t input(int64_t tap, int64_t output) const { return inputs_[tap * outputs_ + output]; }  // -1: padding

 private:
  int64_t taps_, outputs_;
  std::vector<int64_t> inputs_;
};

Dims spatial_dims(const TensorDescriptor& tensor);

}  // namespace vgpu
