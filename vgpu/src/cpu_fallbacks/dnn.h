// What the stand-ins of cuDNN share: descriptors, and tensors of any strides, computed on as dense ones.
#pragma once
#include <vector>

#include "data_types.h"

namespace vgpu {

using Sizes = std::vector<int64_t>;

inline int64_t product_of(const Sizes& sizes, size_t from = 0) {
  int64_t all = 1;
  for (size_t k = from; k < sizes.size(); k++) all *= sizes[k];
  return all;
}

// cudnnTensorDescriptor_t: samples, channels, and then space, whatever their order in memory.
struct Tensor {
  int kind = 0;  // cudnnDataType_t
  Sizes sizes, steps;

  Number type() const;
  int64_t count() const { return product_of(sizes); }
  int64_t samples() const { return sizes[0]; }
  int64_t channels() const { return sizes[1]; }
  int64_t space() const { return product_of(sizes, 2); }
  void lay_out(bool channels_last);
  void check() const;
  void reads(const void* at) const;
  void writes(void* at) const;
  uint64_t bytes() const;  // from its first element to behind its last
};

// cudnnFilterDescriptor_t: channels out and in, and then space.
struct Filter { Tensor tensor; };

// cudnnConvolutionDescriptor_t
struct Convolution {
  Sizes pads, strides, dilations;
  bool flipped = false;  // a convolution, not a cross-correlation
  int groups = 1, math = 0;
};

// cudnnPoolingDescriptor_t
struct Pooling {
  int mode = 0;
  bool hands_nan_on = false;
  Sizes window, pads, strides;
};

// cudnnActivationDescriptor_t
struct Activation {
  int mode = 0;
  bool hands_nan_on = false;
  double coefficient = 0;

  double of(double x) const;
  double slope(double x, double y) const;
};

// f(number, offset) for each element, in the order of their numbers.
template <class F> void each_element(const Tensor& tensor, F f) {
  const size_t rank = tensor.sizes.size();
  Sizes at(rank, 0);
  int64_t offset = 0;
  for (int64_t number = 0, count = tensor.count(); number < count; number++) {
    f(number, offset);
    for (size_t k = rank; k-- > 0;) {
      offset += tensor.steps[k];
      if (++at[k] < tensor.sizes[k]) break;
      offset -= at[k] * tensor.steps[k], at[k] = 0;
    }
  }
}

template <class T> std::vector<T> values_of(const Tensor& tensor, const void* at) {
  tensor.check();
  tensor.reads(at);
  std::vector<T> values(static_cast<size_t>(tensor.count()));
  const Number type = tensor.type();
  each_element(tensor, [&](int64_t k, int64_t offset) { values[k] = read_number<T>(at, type, offset); });
  return values;
}

// alpha and beta: how what was made goes to what lies there; of the type in which sums are made.
template <class T> struct Blend {
  T alpha, beta;
  Blend(const void* a, const void* b) : alpha(*static_cast<const T*>(a)), beta(*static_cast<const T*>(b)) {}

  void put(const Tensor& tensor, void* at, const std::vector<T>& made) const {
    tensor.check();
    if (static_cast<int64_t>(made.size()) != tensor.count()) throw BadArguments();
    if (beta != T(0)) tensor.reads(at);
    tensor.writes(at);
    const Number type = tensor.type();
    each_element(tensor, [&](int64_t k, int64_t offset) {
      T value = alpha * made[k];
      if (beta != T(0)) value += beta * read_number<T>(at, type, offset);
      write_number(at, type, offset, value);
    });
  }
};

// f(Tag<T>()) with the T in which it is computed.
template <class F> void in_type_of(const Tensor& tensor, F f) {
  if (tensor.type() == Number::Double) f(Tag<double>());
  else f(Tag<float>());
}

// Which element of the input each place of a window meets at each place of the output.
class Windows {
 public:
  Windows(const Sizes& input, const Sizes& output, const Sizes& window, const Sizes& pads, const Sizes& strides,
          const Sizes& dilations, bool flipped);
  int64_t places() const { return places_; }
  int64_t outputs() const { return outputs_; }
  int64_t input(int64_t place, int64_t output) const { return inputs_[place * outputs_ + output]; }  // -1: padding

 private:
  int64_t places_, outputs_;
  std::vector<int64_t> inputs_;
};

Sizes space_of(const Tensor& tensor);

}  // namespace vgpu
