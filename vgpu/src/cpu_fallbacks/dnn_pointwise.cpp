// CPU fallbacks of cuDNN's activations and softmax, and of its calls that add, fill, scale or re-layout tensors.
#include <algorithm>

#include "arithmetic/elementary.h"
#include "dnn.h"

using namespace vgpu;

namespace {

// cudnn.h: cudnnSoftmaxAlgorithm_t, cudnnSoftmaxMode_t
constexpr int kLog = 2, kOverChannels = 1;

// Calls f(first, stride, count) for each set of elements over which a softmax is computed.
template <class F> void for_each_softmax(const TensorDescriptor& tensor, int mode, F f) {
  const int64_t space = tensor.spatial_size(), sample = tensor.channels() * space;
  for (int64_t n = 0; n < tensor.batch_size(); n++) {
    if (mode != kOverChannels) f(n * sample, int64_t(1), sample);
    else
      for (int64_t position = 0; position < space; position++) f(n * sample + position, space, tensor.channels());
  }
}

template <class T> std::vector<T> softmax(const Tensor& x, int algorithm, int mode) {
  std::vector<T> values = load_tensor<T>(x);
  for_each_softmax(x.descriptor, mode, [&](int64_t first, int64_t stride, int64_t count) {
    T maximum = values[first], sum = 0;
    for (int64_t k = 1; k < count; k++) maximum = std::max(maximum, values[first + k * stride]);
    for (int64_t k = 0; k < count; k++) sum += exp_of(values[first + k * stride] - maximum);
    for (int64_t k = 0; k < count; k++) {
      T& value = values[first + k * stride];
      value = algorithm == kLog ? value - maximum - log_of(sum) : exp_of(value - maximum) / sum;
    }
  });
  return values;
}

template <class T> std::vector<T> softmax_gradient(const Tensor& y, const Tensor& dy, int algorithm, int mode) {
  const std::vector<T> outputs = load_tensor<T>(y);
  std::vector<T> values = load_tensor<T>(dy);
  if (outputs.size() != values.size()) throw InvalidValue();
  for_each_softmax(y.descriptor, mode, [&](int64_t first, int64_t stride, int64_t count) {
    T sum = 0;
    for (int64_t element = first, k = 0; k < count; k++, element += stride)
      sum += algorithm == kLog ? values[element] : values[element] * outputs[element];
    for (int64_t element = first, k = 0; k < count; k++, element += stride)
      values[element] =
          algorithm == kLog ? values[element] - exp_of(outputs[element]) * sum : outputs[element] * (values[element] - sum);
  });
  return values;
}

}  // namespace

API int cudnnActivationForward(void* handle, Activation* activation_desc, void* alpha, TensorDescriptor* x_desc, void* x_data,
                               void* beta, TensorDescriptor* y_desc, void* y_data) {
  return run_fallback_on_stream("cudnnActivationForward", stream_of_handle(handle), [&] {
    const Tensor x(x_desc, x_data), y(y_desc, y_data);
    const Scales scales(x.descriptor, alpha, beta);
    return operation_in_compute_type(x.descriptor, [=, activation = required(activation_desc)](auto tag) {
      using T = typename decltype(tag)::type;
      std::vector<T> values = load_tensor<T>(x);
      for (T& value : values) value = static_cast<T>(activation.value(value));
      store_tensor(y, values, scales);
    });
  });
}
API int cudnnActivationBackward(void* handle, Activation* activation_desc, void* alpha, TensorDescriptor* y_desc, void* y_data,
                                TensorDescriptor* dy_desc, void* dy_data, TensorDescriptor* x_desc, void* x_data, void* beta,
                                TensorDescriptor* dx_desc, void* dx_data) {
  return run_fallback_on_stream("cudnnActivationBackward", stream_of_handle(handle), [&] {
    const Tensor x(x_desc, x_data), y(y_desc, y_data), dy(dy_desc, dy_data), dx(dx_desc, dx_data);
    const Scales scales(x.descriptor, alpha, beta);
    return operation_in_compute_type(x.descriptor, [=, activation = required(activation_desc)](auto tag) {
      using T = typename decltype(tag)::type;
      const std::vector<T> inputs = load_tensor<T>(x), outputs = load_tensor<T>(y);
      std::vector<T> values = load_tensor<T>(dy);
      if (inputs.size() != outputs.size() || inputs.size() != values.size()) throw InvalidValue();
      for (size_t k = 0; k < values.size(); k++) values[k] *= static_cast<T>(activation.derivative(inputs[k], outputs[k]));
      store_tensor(dx, values, scales);
    });
  });
}

API int cudnnSoftmaxForward(void* handle, int algorithm, int mode, void* alpha, TensorDescriptor* x_desc, void* x_data,
                            void* beta, TensorDescriptor* y_desc, void* y_data) {
  return run_fallback_on_stream("cudnnSoftmaxForward", stream_of_handle(handle), [&] {
    const Tensor x(x_desc, x_data), y(y_desc, y_data);
    const Scales scales(x.descriptor, alpha, beta);
    return operation_in_compute_type(x.descriptor, [=](auto tag) {
      using T = typename decltype(tag)::type;
      store_tensor(y, softmax<T>(x, algorithm, mode), scales);
    });
  });
}
API int cudnnSoftmaxBackward(void* handle, int algorithm, int mode, void* alpha, TensorDescriptor* y_desc, void* y_data,
                             TensorDescriptor* dy_desc, void* dy_data, void* beta, TensorDescriptor* dx_desc, void* dx_data) {
  return run_fallback_on_stream("cudnnSoftmaxBackward", stream_of_handle(handle), [&] {
    const Tensor y(y_desc, y_data), dy(dy_desc, dy_data), dx(dx_desc, dx_data);
    const Scales scales(y.descriptor, alpha, beta);
    return operation_in_compute_type(y.descriptor, [=](auto tag) {
      using T = typename decltype(tag)::type;
      store_tensor(dx, softmax_gradient<T>(y, dy, algorithm, mode), scales);
    });
  });
}

API int cudnnAddTensor(void* handle, void* alpha, TensorDescriptor* a_desc, void* a_data, void* beta, TensorDescriptor* c_desc,
                       void* c_data) {
  return run_fallback_on_stream("cudnnAddTensor", stream_of_handle(handle), [&] {
    const Tensor a(a_desc, a_data), c(c_desc, c_data);
    const Scales scales(c.descriptor, alpha, beta);
    return operation_in_compute_type(c.descriptor, [=](auto tag) {
      using T = typename decltype(tag)::type;
      store_tensor(c, load_tensor<T>(Tensor(a.descriptor.broadcast_to(c.descriptor.dims), a.data)), scales);
    });
  });
}
API int cudnnTransformTensor(void* handle, void* alpha, TensorDescriptor* x_desc, void* x_data, void* beta,
                             TensorDescriptor* y_desc, void* y_data) {
  return run_fallback_on_stream("cudnnTransformTensor", stream_of_handle(handle), [&] {
    const Tensor x(x_desc, x_data), y(y_desc, y_data);
    const Scales scales(x.descriptor, alpha, beta);
    return operation_in_compute_type(x.descriptor, [=](auto tag) {
      using T = typename decltype(tag)::type;
      store_tensor(y, load_tensor<T>(x), scales);
    });
  });
}
API int cudnnSetTensor(void* handle, TensorDescriptor* y_desc, void* y_data, void* value_data) {
  return run_fallback_on_stream("cudnnSetTensor", stream_of_handle(handle), [&] {
    const Tensor y(y_desc, y_data);
    const double value = load_element<double>(value_data, y.descriptor.type(), 0);
    return operation_in_compute_type(y.descriptor, [=](auto tag) {
      using T = typename decltype(tag)::type;
      store_tensor(y, std::vector<T>(static_cast<size_t>(y.descriptor.count()), T(value)));
    });
  });
}
API int cudnnScaleTensor(void* handle, TensorDescriptor* y_desc, void* y_data, void* alpha) {
  return run_fallback_on_stream("cudnnScaleTensor", stream_of_handle(handle), [&] {
    const Tensor y(y_desc, y_data);
    const Scales scales(Scales(y.descriptor, alpha, alpha).alpha, 0);
    return operation_in_compute_type(y.descriptor, [=](auto tag) {
      using T = typename decltype(tag)::type;
      store_tensor(y, load_tensor<T>(y), scales);
    });
  });
}
