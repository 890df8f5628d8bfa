// cuDNN's activations and softmax, and sums, fills and changes of layout of tensors.
#include <algorithm>

#include "arithmetic/elementary.h"
#include "dnn.h"

using namespace vgpu;

namespace {

// cudnn.h: cudnnSoftmaxAlgorithm_t, cudnnSoftmaxMode_t
constexpr int kLog = 2, kOfChannels = 1;

// f(first, step, count) for each set of elements that one softmax is over.
template <class F> void each_distribution(const TensorDescriptor& tensor, int mode, F f) {
  const int64_t space = tensor.spatial_size(), sample = tensor.channels() * space;
  for (int64_t n = 0; n < tensor.batch_size(); n++) {
    if (mode != kOfChannels) f(n * sample, int64_t(1), sample);
    else
      for (int64_t at = 0; at < space; at++) f(n * sample + at, space, tensor.channels());
  }
}

template <class T> std::vector<T> softmax(const TensorDescriptor& of_x, const void* x, int algorithm, int mode) {
  std::vector<T> values = load_tensor<T>(of_x, x);
  each_distribution(of_x, mode, [&](int64_t first, int64_t step, int64_t count) {
    T most = values[first], sum = 0;
    for (int64_t k = 1; k < count; k++) most = std::max(most, values[first + k * step]);
    for (int64_t k = 0; k < count; k++) sum += exp_of(values[first + k * step] - most);
    for (int64_t k = 0; k < count; k++) {
      T& one = values[first + k * step];
      one = algorithm == kLog ? one - most - log_of(sum) : exp_of(one - most) / sum;
    }
  });
  return values;
}

template <class T>
std::vector<T> softmax_gradient(const TensorDescriptor& of_y, const void* y, const TensorDescriptor& of_dy, const void* dy,
                                int algorithm, int mode) {
  const std::vector<T> made = load_tensor<T>(of_y, y);
  std::vector<T> values = load_tensor<T>(of_dy, dy);
  if (made.size() != values.size()) throw InvalidValue();
  each_distribution(of_y, mode, [&](int64_t first, int64_t step, int64_t count) {
    T sum = 0;
    for (int64_t at = first, k = 0; k < count; k++, at += step) sum += algorithm == kLog ? values[at] : values[at] * made[at];
    for (int64_t at = first, k = 0; k < count; k++, at += step)
      values[at] = algorithm == kLog ? values[at] - exp_of(made[at]) * sum : made[at] * (values[at] - sum);
  });
  return values;
}

// A tensor of 1 where another has more counts for each of those.
template <class T> std::vector<T> spread(const TensorDescriptor& small, const void* at, const TensorDescriptor& large) {
  TensorDescriptor wide = small;
  small.check();
  if (small.dims.size() != large.dims.size()) throw InvalidValue();
  for (size_t k = 0; k < wide.dims.size(); k++) {
    if (small.dims[k] != 1 && small.dims[k] != large.dims[k]) throw InvalidValue();
    if (small.dims[k] != large.dims[k]) wide.dims[k] = large.dims[k], wide.strides[k] = 0;
  }
  return load_tensor<T>(wide, at);
}

template <class T> void fill(const TensorDescriptor& tensor, void* at, T value) {
  const T one = 1, none = 0;
  AlphaBeta<T>(&one, &none).put(tensor, at, std::vector<T>(static_cast<size_t>(tensor.count()), value));
}

}  // namespace

API int cudnnActivationForward(void*, Activation* how, void* alpha, TensorDescriptor* of_x, void* x, void* beta,
                               TensorDescriptor* of_y, void* y) {
  return run_fallback("cudnnActivationForward", [&] {
    with_compute_type(*of_x, [&](auto tag) {
      using T = typename decltype(tag)::type;
      std::vector<T> values = load_tensor<T>(*of_x, x);
      for (T& one : values) one = static_cast<T>(how->of(one));
      AlphaBeta<T>(alpha, beta).put(*of_y, y, values);
    });
  });
}
API int cudnnActivationBackward(void*, Activation* how, void* alpha, TensorDescriptor* of_y, void* y, TensorDescriptor* of_dy,
                                void* dy, TensorDescriptor* of_x, void* x, void* beta, TensorDescriptor* of_dx, void* dx) {
  return run_fallback("cudnnActivationBackward", [&] {
    with_compute_type(*of_x, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const std::vector<T> in = load_tensor<T>(*of_x, x), out = load_tensor<T>(*of_y, y);
      std::vector<T> values = load_tensor<T>(*of_dy, dy);
      if (in.size() != out.size() || in.size() != values.size()) throw InvalidValue();
      for (size_t k = 0; k < values.size(); k++) values[k] *= static_cast<T>(how->derivative(in[k], out[k]));
      AlphaBeta<T>(alpha, beta).put(*of_dx, dx, values);
    });
  });
}

API int cudnnSoftmaxForward(void*, int algorithm, int mode, void* alpha, TensorDescriptor* of_x, void* x, void* beta,
                            TensorDescriptor* of_y, void* y) {
  return run_fallback("cudnnSoftmaxForward", [&] {
    with_compute_type(*of_x, [&](auto tag) {
      using T = typename decltype(tag)::type;
      AlphaBeta<T>(alpha, beta).put(*of_y, y, softmax<T>(*of_x, x, algorithm, mode));
    });
  });
}
API int cudnnSoftmaxBackward(void*, int algorithm, int mode, void* alpha, TensorDescriptor* of_y, void* y,
                             TensorDescriptor* of_dy, void* dy, void* beta, TensorDescriptor* of_dx, void* dx) {
  return run_fallback("cudnnSoftmaxBackward", [&] {
    with_compute_type(*of_y, [&](auto tag) {
      using T = typename decltype(tag)::type;
      AlphaBeta<T>(alpha, beta).put(*of_dx, dx, softmax_gradient<T>(*of_y, y, *of_dy, dy, algorithm, mode));
    });
  });
}

API int cudnnAddTensor(void*, void* alpha, TensorDescriptor* of_a, void* a, void* beta, TensorDescriptor* of_c, void* c) {
  return run_fallback("cudnnAddTensor", [&] {
    with_compute_type(*of_c, [&](auto tag) {
      using T = typename decltype(tag)::type;
      AlphaBeta<T>(alpha, beta).put(*of_c, c, spread<T>(*of_a, a, *of_c));
    });
  });
}
API int cudnnTransformTensor(void*, void* alpha, TensorDescriptor* of_x, void* x, void* beta, TensorDescriptor* of_y, void* y) {
  return run_fallback("cudnnTransformTensor", [&] {
    with_compute_type(*of_x, [&](auto tag) {
      using T = typename decltype(tag)::type;
      AlphaBeta<T>(alpha, beta).put(*of_y, y, load_tensor<T>(*of_x, x));
    });
  });
}
API int cudnnSetTensor(void*, TensorDescriptor* of_y, void* y, void* value) {
  return run_fallback("cudnnSetTensor", [&] {
    with_compute_type(*of_y, [&](auto tag) {
      using T = typename decltype(tag)::type;
      fill(*of_y, y, load_element<T>(value, of_y->type(), 0));
    });
  });
}
API int cudnnScaleTensor(void*, TensorDescriptor* of_y, void* y, void* alpha) {
  return run_fallback("cudnnScaleTensor", [&] {
    with_compute_type(*of_y, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T none = 0;
      AlphaBeta<T>(alpha, &none).put(*of_y, y, load_tensor<T>(*of_y, y));
    });
  });
}
