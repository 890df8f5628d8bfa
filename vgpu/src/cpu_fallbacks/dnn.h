// What the CPU fallbacks of cuDNN share: descriptors, and tensors with any strides, which are packed before computing.
#pragma once
#include <vector>

#include "data_types.h"

namespace vgpu {

using Dims = std::vector<int64_t>;

inline int64_t element_count(const Dims& dims, size_t from = 0) {
  int64_t all = 1;
  for (size_t k = from; k < dims.size(); k++) all *= dims[k];
  return all;
}

// cudnnTensorDescriptor_t: dimensions are batch, channels, then spatial ones, whatever their order in memory.
struct TensorDescriptor {
  int kind = 0;  // cudnnDataType_t
  Dims dims, strides;

  DataType type() const;
  int64_t count() const { return element_count(dims); }
  int64_t batch_size() const { return dims[0]; }
  int64_t channels() const { return dims[1]; }
  int64_t spatial_size() const { return element_count(dims, 2); }
  void set_packed_strides(bool channels_last);
  void check() const;
  void check_read(const void* at) const;
  void check_write(void* at) const;
  uint64_t bytes() const;  // from its first element to behind its last
};

// cudnnFilterDescriptor_t: channels out and in, and then space.
struct Filter { TensorDescriptor tensor; };

// cudnnConvolutionDescriptor_t
struct Convolution {
  Dims pads, strides, dilations;
  bool is_convolution = false;  // a convolution, not a cross-correlation
  int groups = 1, math = 0;
};

// cudnnPoolingDescriptor_t
struct Pooling {
  int mode = 0;
  bool propagates_nan = false;
  Dims window, pads, strides;
};

// cudnnActivationDescriptor_t
struct Activation {
  int mode = 0;
  bool propagates_nan = false;
  double coefficient = 0;

  double of(double x) const;
  double derivative(double x, double y) const;
};

// f(number, offset) for each element, in the order of their numbers.
template <class F> void each_element(const TensorDescriptor& tensor, F f) {
  const size_t rank = tensor.dims.size();
  Dims at(rank, 0);
  int64_t offset = 0;
  for (int64_t number = 0, count = tensor.count(); number < count; number++) {
    f(number, offset);
    for (size_t k = rank; k-- > 0;) {
      offset += tensor.strides[k];
      if (++at[k] < tensor.dims[k]) break;
      offset -= at[k] * tensor.strides[k], at[k] = 0;
    }
  }
}

template <class T> std::vector<T> load_tensor(const TensorDescriptor& tensor, const void* at) {
  tensor.check();
  tensor.check_read(at);
  std::vector<T> values(static_cast<size_t>(tensor.count()));
  const DataType type = tensor.type();
  each_element(tensor, [&](int64_t k, int64_t offset) { values[k] = load_element<T>(at, type, offset); });
  return values;
}

// alpha and beta: how what was made goes to what lies there; of the type in which sums are made.
template <class T> struct AlphaBeta {
  T alpha, beta;
  AlphaBeta(const void* a, const void* b) : alpha(*static_cast<const T*>(a)), beta(*static_cast<const T*>(b)) {}

  void put(const TensorDescriptor& tensor, void* at, const std::vector<T>& made) const {
    tensor.check();
    if (static_cast<int64_t>(made.size()) != tensor.count()) throw InvalidValue();
    if (beta != T(0)) tensor.check_read(at);
    tensor.check_write(at);
    const DataType type = tensor.type();
    each_element(tensor, [&](int64_t k, int64_t offset) {
      T value = alpha * made[k];
      if (beta != T(0)) value += beta * load_element<T>(at, type, offset);
      store_element(at, type, offset, value);
    });
  }
};

// f(Tag<T>()) with the T in which it is computed.
template <class F> void with_compute_type(const TensorDescriptor& tensor, F f) {
  if (tensor.type() == DataType::Double) f(Tag<double>());
  else f(Tag<float>());
}

// Which element of the input each place of a window meets at each place of the output.
class WindowIndices {
 public:
  WindowIndices(const Dims& input, const Dims& output, const Dims& window, const Dims& pads, const Dims& strides,
                const Dims& dilations, bool is_convolution);
  int64_t taps() const { return taps_; }
  int64_t outputs() const { return outputs_; }
  int64_t input(int64_t place, int64_t output) const { return inputs_[place * outputs_ + output]; }  // -1: padding

 private:
  int64_t taps_, outputs_;
  std::vector<int64_t> inputs_;
};

Dims spatial_dims(const TensorDescriptor& tensor);

}  // namespace vgpu
