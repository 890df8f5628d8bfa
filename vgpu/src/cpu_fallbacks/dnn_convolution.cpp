// cuDNN's convolutions, by products of matrices: of each sample and group, the sum goes over channels and the window.
#include "dnn.h"
#include "matmul.h"

using namespace vgpu;

namespace {

// A call's shapes, and in which element of a dense tensor a number lies.
struct Plan {
  const TensorDescriptor &x, &w, &y;
  int64_t groups, in, out;  // channels of a group
  WindowIndices windows;

  Plan(const TensorDescriptor& x, const Filter& filter, const Convolution& how, const TensorDescriptor& y)
      : x(checked(x)),
        w(checked(filter.tensor)),
        y(checked(y)),
        groups(how.groups),
        in(w.channels()),
        out(y.channels() / how.groups),
        windows(spatial_dims(x), spatial_dims(y), spatial_dims(w), how.pads, how.strides, how.dilations, how.is_convolution) {
    if (x.channels() != in * groups || w.batch_size() != out * groups || y.channels() != out * groups ||
        x.batch_size() != y.batch_size())
      throw InvalidValue();
  }
  static const TensorDescriptor& checked(const TensorDescriptor& tensor) { return tensor.check(), tensor; }

  int64_t terms() const { return in * windows.taps(); }  // of a sum
  int64_t in_w(int64_t group, int64_t k, int64_t term) const { return (group * out + k) * terms() + term; }
  int64_t in_y(int64_t n, int64_t group, int64_t k, int64_t at) const {
    return (n * y.channels() + group * out + k) * windows.outputs() + at;
  }
  int64_t in_x(int64_t n, int64_t group, int64_t term, int64_t at) const {  // -1: padding
    const int64_t input = windows.input(term % windows.taps(), at);
    return input < 0 ? -1 : (n * x.channels() + group * in + term / windows.taps()) * x.spatial_size() + input;
  }
  template <class F> void each(F f) const {  // of sample and group
    for (int64_t n = 0; n < x.batch_size(); n++)
      for (int64_t group = 0; group < groups; group++) f(n, group);
  }
};

template <class T> std::vector<T> forward(const Plan& plan, const void* at_x, const void* at_w) {
  const std::vector<T> x = load_tensor<T>(plan.x, at_x), w = load_tensor<T>(plan.w, at_w);
  std::vector<T> y(static_cast<size_t>(plan.y.count()));
  plan.each([&](int64_t n, int64_t group) {
    MatrixProduct<T> product(plan.out, plan.windows.outputs(), plan.terms());
    for (int64_t term = 0; term < plan.terms(); term++) {
      for (int64_t k = 0; k < plan.out; k++) product.left(k, term) = w[plan.in_w(group, k, term)];
      for (int64_t at = 0; at < plan.windows.outputs(); at++) {
        const int64_t from = plan.in_x(n, group, term, at);
        product.right(term, at) = from < 0 ? T(0) : x[from];
      }
    }
    product.each([&](int64_t k, int64_t at, T sum) { y[plan.in_y(n, group, k, at)] = sum; });
  });
  return y;
}

template <class T> std::vector<T> backward_data(const Plan& plan, const void* at_w, const void* at_y) {
  const std::vector<T> w = load_tensor<T>(plan.w, at_w), y = load_tensor<T>(plan.y, at_y);
  std::vector<T> x(static_cast<size_t>(plan.x.count()));
  plan.each([&](int64_t n, int64_t group) {
    MatrixProduct<T> product(plan.terms(), plan.windows.outputs(), plan.out);
    for (int64_t k = 0; k < plan.out; k++) {
      for (int64_t term = 0; term < plan.terms(); term++) product.left(term, k) = w[plan.in_w(group, k, term)];
      for (int64_t at = 0; at < plan.windows.outputs(); at++) product.right(k, at) = y[plan.in_y(n, group, k, at)];
    }
    product.each([&](int64_t term, int64_t at, T sum) {
      const int64_t to = plan.in_x(n, group, term, at);
      if (to >= 0) x[to] += sum;
    });
  });
  return x;
}

template <class T> std::vector<T> backward_filter(const Plan& plan, const void* at_x, const void* at_y) {
  const std::vector<T> x = load_tensor<T>(plan.x, at_x), y = load_tensor<T>(plan.y, at_y);
  std::vector<T> w(static_cast<size_t>(plan.w.count()));
  plan.each([&](int64_t n, int64_t group) {
    MatrixProduct<T> product(plan.out, plan.terms(), plan.windows.outputs());
    for (int64_t at = 0; at < plan.windows.outputs(); at++) {
      for (int64_t k = 0; k < plan.out; k++) product.left(k, at) = y[plan.in_y(n, group, k, at)];
      for (int64_t term = 0; term < plan.terms(); term++) {
        const int64_t from = plan.in_x(n, group, term, at);
        product.right(at, term) = from < 0 ? T(0) : x[from];
      }
    }
    product.each([&](int64_t k, int64_t term, T sum) { w[plan.in_w(group, k, term)] += sum; });
  });
  return w;
}

// Auto-tuners try each by its number: that these exist is enough.
bool known(int algorithm) { return algorithm == 0 || algorithm == 1; }
int workspace(const char* call, int algorithm, size_t* bytes) {
  constexpr int kNotSupportedThere = 9;  // cudnn.h: CUDNN_STATUS_NOT_SUPPORTED
  return *bytes = 0, is_fallback_enabled(call) && !known(algorithm) ? kNotSupportedThere : kSuccess;
}

}  // namespace

API int cudnnConvolutionForward(void*, void* alpha, TensorDescriptor* of_x, void* x, Filter* of_w, void* w, Convolution* how,
                                int, void*, size_t, void* beta, TensorDescriptor* of_y, void* y) {
  return run_fallback("cudnnConvolutionForward", [&] {
    with_compute_type(*of_x, [&](auto tag) {
      using T = typename decltype(tag)::type;
      AlphaBeta<T>(alpha, beta).put(*of_y, y, forward<T>(Plan(*of_x, *of_w, *how, *of_y), x, w));
    });
  });
}
API int cudnnConvolutionBackwardData(void*, void* alpha, Filter* of_w, void* w, TensorDescriptor* of_y, void* y,
                                     Convolution* how, int, void*, size_t, void* beta, TensorDescriptor* of_x, void* x) {
  return run_fallback("cudnnConvolutionBackwardData", [&] {
    with_compute_type(*of_y, [&](auto tag) {
      using T = typename decltype(tag)::type;
      AlphaBeta<T>(alpha, beta).put(*of_x, x, backward_data<T>(Plan(*of_x, *of_w, *how, *of_y), w, y));
    });
  });
}
API int cudnnConvolutionBackwardFilter(void*, void* alpha, TensorDescriptor* of_x, void* x, TensorDescriptor* of_y, void* y,
                                       Convolution* how, int, void*, size_t, void* beta, Filter* of_w, void* w) {
  return run_fallback("cudnnConvolutionBackwardFilter", [&] {
    with_compute_type(*of_x, [&](auto tag) {
      using T = typename decltype(tag)::type;
      AlphaBeta<T>(alpha, beta).put(of_w->tensor, w, backward_filter<T>(Plan(*of_x, *of_w, *how, *of_y), x, y));
    });
  });
}
API int cudnnConvolutionBackwardBias(void*, void* alpha, TensorDescriptor* of_y, void* y, void* beta, TensorDescriptor* of_b,
                                     void* b) {
  return run_fallback("cudnnConvolutionBackwardBias", [&] {
    with_compute_type(*of_y, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const std::vector<T> values = load_tensor<T>(*of_y, y);
      std::vector<T> sums(static_cast<size_t>(of_y->channels()));
      for (size_t k = 0; k < values.size(); k++) sums[k / of_y->spatial_size() % sums.size()] += values[k];
      AlphaBeta<T>(alpha, beta).put(*of_b, b, sums);
    });
  });
}
// y = activation(alpha * convolution + keep * z + bias)
API int cudnnConvolutionBiasActivationForward(void*, void* alpha, TensorDescriptor* of_x, void* x, Filter* of_w, void* w,
                                              Convolution* how, int, void*, size_t, void* keep, TensorDescriptor* of_z, void* z,
                                              TensorDescriptor* of_b, void* b, Activation* activation, TensorDescriptor* of_y,
                                              void* y) {
  return run_fallback("cudnnConvolutionBiasActivationForward", [&] {
    with_compute_type(*of_x, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const AlphaBeta<T> scales(alpha, keep);
      std::vector<T> made = forward<T>(Plan(*of_x, *of_w, *how, *of_y), x, w);
      const std::vector<T> bias = load_tensor<T>(*of_b, b);
      const std::vector<T> other = scales.beta != T(0) ? load_tensor<T>(*of_z, z) : std::vector<T>(made.size());
      if (bias.size() != size_t(of_y->channels()) || other.size() != made.size()) throw InvalidValue();
      for (size_t k = 0; k < made.size(); k++) {
        const T sum = scales.alpha * made[k] + scales.beta * other[k] + bias[k / of_y->spatial_size() % bias.size()];
        made[k] = static_cast<T>(activation->of(sum));
      }
      const T one = 1, none = 0;
      AlphaBeta<T>(&one, &none).put(*of_y, y, made);
    });
  });
}

API int cudnnGetConvolutionForwardWorkspaceSize(void*, void*, void*, void*, void*, int algorithm, size_t* bytes) {
  return workspace("cudnnConvolutionForward", algorithm, bytes);
}
API int cudnnGetConvolutionBackwardDataWorkspaceSize(void*, void*, void*, void*, void*, int algorithm, size_t* bytes) {
  return workspace("cudnnConvolutionBackwardData", algorithm, bytes);
}
API int cudnnGetConvolutionBackwardFilterWorkspaceSize(void*, void*, void*, void*, void*, int algorithm, size_t* bytes) {
  return workspace("cudnnConvolutionBackwardFilter", algorithm, bytes);
}
