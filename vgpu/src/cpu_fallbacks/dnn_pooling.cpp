// cuDNN's pooling: the greatest value of each window, the first of those that are equal; or its mean.
#include "dnn.h"

using namespace vgpu;

namespace {

// cudnn.h: cudnnPoolingMode_t
bool maximum(const Pooling& how) { return how.mode == 0 || how.mode == 3; }
bool padding_counts(const Pooling& how) { return how.mode == 1; }

struct Plan {
  const Pooling& how;
  int64_t inputs;
  WindowIndices windows;

  Plan(const Pooling& how, const TensorDescriptor& x, const TensorDescriptor& y)
      : how(how),
        inputs((x.check(), y.check(), x.spatial_size())),
        windows(spatial_dims(x), spatial_dims(y), how.window, how.pads, how.strides, Dims(how.window.size(), 1), false) {
    if (x.batch_size() != y.batch_size() || x.channels() != y.channels()) throw InvalidValue();
  }

  // The place in the window; -1: all of it is padding.
  template <class T> int64_t greatest_at(const T* x, int64_t at) const {
    int64_t found = -1;
    for (int64_t place = 0; place < windows.taps(); place++) {
      const int64_t input = windows.input(place, at);
      if (input < 0) continue;
      const bool nan = how.propagates_nan && x[input] != x[input];
      if (found < 0 || x[input] > x[found] || nan) found = input;
      if (nan) break;
    }
    return found;
  }
  template <class F> int64_t each_input(int64_t at, F f) const {  // and how many of them a mean counts
    int64_t count = 0;
    for (int64_t place = 0; place < windows.taps(); place++) {
      const int64_t input = windows.input(place, at);
      if (input >= 0) f(input);
      count += input >= 0 || padding_counts(how);
    }
    return count;
  }
};

template <class T> std::vector<T> forward(const Plan& plan, const std::vector<T>& x) {
  const int64_t planes = static_cast<int64_t>(x.size()) / plan.inputs, outputs = plan.windows.outputs();
  std::vector<T> y(static_cast<size_t>(planes * outputs));
  for (int64_t plane = 0; plane < planes; plane++)
    for (int64_t at = 0; at < outputs; at++) {
      const T* from = &x[plane * plan.inputs];
      T& to = y[plane * outputs + at];
      if (maximum(plan.how)) {
        const int64_t found = plan.greatest_at(from, at);
        to = found < 0 ? T(0) : from[found];
      } else {
        const int64_t count = plan.each_input(at, [&](int64_t input) { to += from[input]; });
        to /= static_cast<T>(count ? count : 1);
      }
    }
  return y;
}

template <class T> std::vector<T> backward(const Plan& plan, const std::vector<T>& x, const std::vector<T>& dy) {
  const int64_t planes = static_cast<int64_t>(x.size()) / plan.inputs, outputs = plan.windows.outputs();
  std::vector<T> dx(x.size());
  for (int64_t plane = 0; plane < planes; plane++)
    for (int64_t at = 0; at < outputs; at++) {
      T* to = &dx[plane * plan.inputs];
      const T given = dy[plane * outputs + at];
      if (maximum(plan.how)) {
        const int64_t found = plan.greatest_at(&x[plane * plan.inputs], at);
        if (found >= 0) to[found] += given;
      } else {
        const int64_t count = plan.each_input(at, [](int64_t) {});
        plan.each_input(at, [&](int64_t input) { to[input] += given / static_cast<T>(count); });
      }
    }
  return dx;
}

}  // namespace

API int cudnnPoolingForward(void*, Pooling* how, void* alpha, TensorDescriptor* of_x, void* x, void* beta,
                            TensorDescriptor* of_y, void* y) {
  return run_fallback("cudnnPoolingForward", [&] {
    with_compute_type(*of_x, [&](auto tag) {
      using T = typename decltype(tag)::type;
      AlphaBeta<T>(alpha, beta).put(*of_y, y, forward(Plan(*how, *of_x, *of_y), load_tensor<T>(*of_x, x)));
    });
  });
}
API int cudnnPoolingBackward(void*, Pooling* how, void* alpha, TensorDescriptor* of_y, void*, TensorDescriptor* of_dy, void* dy,
                             TensorDescriptor* of_x, void* x, void* beta, TensorDescriptor* of_dx, void* dx) {
  return run_fallback("cudnnPoolingBackward", [&] {
    with_compute_type(*of_x, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const Plan plan(*how, *of_x, *of_y);
      AlphaBeta<T>(alpha, beta).put(*of_dx, dx, backward(plan, load_tensor<T>(*of_x, x), load_tensor<T>(*of_dy, dy)));
    });
  });
}
