// CPU fallbacks of cuDNN's pooling: each window's maximum (of equal ones the first), or its mean.  A tap: a position in a window.
#include "dnn.h"

using namespace vgpu;

namespace {

// cudnn.h: cudnnPoolingMode_t
bool is_maximum(const Pooling& pooling) { return pooling.mode == 0 || pooling.mode == 3; }
bool counts_padding(const Pooling& pooling) { return pooling.mode == 1; }

struct PoolingShapes {
  Pooling pooling;
  int64_t inputs;
  WindowIndices windows;

  PoolingShapes(const Pooling& given, const TensorDescriptor& x, const TensorDescriptor& y)
      : pooling(given),
        inputs((x.check(), y.check(), x.spatial_size())),
        windows(spatial_dims(x), spatial_dims(y), pooling.window, pooling.pads, pooling.strides, Dims(pooling.window.size(), 1),
                /*is_convolution=*/false) {
    if (x.batch_size() != y.batch_size() || x.channels() != y.channels()) throw InvalidValue();
  }

  // Returns the index of the input element with the window's maximum; -1: the whole window is padding.
  template <class T> int64_t index_of_maximum(const T* x, int64_t output) const {
    int64_t maximum = -1;
    for (int64_t tap = 0; tap < windows.taps(); tap++) {
      const int64_t input = windows.input(tap, output);
      if (input < 0) continue;
      const bool nan = pooling.propagates_nan && x[input] != x[input];
      if (maximum < 0 || x[input] > x[maximum] || nan) maximum = input;
      if (nan) break;
    }
    return maximum;
  }
  template <class F> int64_t each_input(int64_t output, F f) const {  // returns the number of elements that a mean divides by
    int64_t count = 0;
    for (int64_t tap = 0; tap < windows.taps(); tap++) {
      const int64_t input = windows.input(tap, output);
      if (input >= 0) f(input);
      count += input >= 0 || counts_padding(pooling);
    }
    return count;
  }
};

template <class T> std::vector<T> forward(const PoolingShapes& shapes, const std::vector<T>& x) {
  const int64_t planes = static_cast<int64_t>(x.size()) / shapes.inputs, outputs = shapes.windows.outputs();
  std::vector<T> y(static_cast<size_t>(planes * outputs));
  for (int64_t plane = 0; plane < planes; plane++)
    for (int64_t output = 0; output < outputs; output++) {
      const T* inputs = &x[plane * shapes.inputs];
      T& result = y[plane * outputs + output];
      if (is_maximum(shapes.pooling)) {
        const int64_t maximum = shapes.index_of_maximum(inputs, output);
        result = maximum < 0 ? T(0) : inputs[maximum];
      } else {
        const int64_t count = shapes.each_input(output, [&](int64_t input) { result += inputs[input]; });
        result /= static_cast<T>(count ? count : 1);
      }
    }
  return y;
}

template <class T> std::vector<T> backward(const PoolingShapes& shapes, const std::vector<T>& x, const std::vector<T>& dy) {
  const int64_t planes = static_cast<int64_t>(x.size()) / shapes.inputs, outputs = shapes.windows.outputs();
  std::vector<T> dx(x.size());
  for (int64_t plane = 0; plane < planes; plane++)
    for (int64_t output = 0; output < outputs; output++) {
      T* gradients = &dx[plane * shapes.inputs];
      const T gradient = dy[plane * outputs + output];
      if (is_maximum(shapes.pooling)) {
        const int64_t maximum = shapes.index_of_maximum(&x[plane * shapes.inputs], output);
        if (maximum >= 0) gradients[maximum] += gradient;
      } else {
        const int64_t count = shapes.each_input(output, [](int64_t) {});
        shapes.each_input(output, [&](int64_t input) { gradients[input] += gradient / static_cast<T>(count); });
      }
    }
  return dx;
}

}  // namespace

API int cudnnPoolingForward(void* handle, Pooling* pooling, void* alpha, TensorDescriptor* x_desc, void* x_data, void* beta,
                            TensorDescriptor* y_desc, void* y_data) {
  return run_fallback_on_stream("cudnnPoolingForward", stream_of_handle(handle), [&] {
    const Tensor x(x_desc, x_data), y(y_desc, y_data);
    const Scales scales(x.descriptor, alpha, beta);
    const PoolingShapes shapes(required(pooling), x.descriptor, y.descriptor);
    return operation_in_compute_type(x.descriptor, [=](auto tag) {
      using T = typename decltype(tag)::type;
      store_tensor(y, forward(shapes, load_tensor<T>(x)), scales);
    });
  });
}
API int cudnnPoolingBackward(void* handle, Pooling* pooling, void* alpha, TensorDescriptor* y_desc, void*,
                             TensorDescriptor* dy_desc, void* dy_data, TensorDescriptor* x_desc, void* x_data, void* beta,
                             TensorDescriptor* dx_desc, void* dx_data) {
  return run_fallback_on_stream("cudnnPoolingBackward", stream_of_handle(handle), [&] {
    const Tensor dy(dy_desc, dy_data), x(x_desc, x_data), dx(dx_desc, dx_data);
    const Scales scales(x.descriptor, alpha, beta);
    const PoolingShapes shapes(required(pooling), x.descriptor, required(y_desc));
    return operation_in_compute_type(x.descriptor, [=](auto tag) {
      using T = typename decltype(tag)::type;
      store_tensor(dx, backward(shapes, load_tensor<T>(x), load_tensor<T>(dy)), scales);
    });
  });
}
