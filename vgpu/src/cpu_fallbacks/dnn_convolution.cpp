// CPU fallbacks of cuDNN's calls for convolutions.
#include "dnn_convolution.h"

#include "vendor_stubs/library_status.h"

using namespace vgpu;

namespace {

// Auto-tuners try algorithms by their numbers; two are offered, which compute the same.
bool is_supported_algorithm(int algorithm) { return algorithm == 0 || algorithm == 1; }
int workspace_size(const char* call, int algorithm, size_t* bytes) {
  const bool is_refused = is_fallback_enabled(call) && !is_supported_algorithm(algorithm);
  return *bytes = 0, is_refused ? library_status(call)->not_supported : kSuccess;
}

}  // namespace

API int cudnnConvolutionForward(void* handle, void* alpha, TensorDescriptor* x_desc, void* x_data, Filter* w_desc, void* w_data,
                                Convolution* convolution, int, void*, size_t, void* beta, TensorDescriptor* y_desc,
                                void* y_data) {
  return run_fallback_on_stream("cudnnConvolutionForward", stream_of_handle(handle), [&] {
    const Tensor x(x_desc, x_data), w(required(w_desc).tensor, w_data), y(y_desc, y_data);
    const Scales scales(x.descriptor, alpha, beta);
    const ConvolutionShapes shapes(x.descriptor, w.descriptor, required(convolution), y.descriptor);
    return operation_in_compute_type(x.descriptor, [=](auto tag) {
      using T = typename decltype(tag)::type;
      store_tensor(y, convolve(shapes, load_tensor<T>(x), load_tensor<T>(w)), scales);
    });
  });
}
API int cudnnConvolutionBackwardData(void* handle, void* alpha, Filter* w_desc, void* w_data, TensorDescriptor* dy_desc,
                                     void* dy_data, Convolution* convolution, int, void*, size_t, void* beta,
                                     TensorDescriptor* dx_desc, void* dx_data) {
  return run_fallback_on_stream("cudnnConvolutionBackwardData", stream_of_handle(handle), [&] {
    const Tensor w(required(w_desc).tensor, w_data), dy(dy_desc, dy_data), dx(dx_desc, dx_data);
    const Scales scales(dy.descriptor, alpha, beta);
    const ConvolutionShapes shapes(dx.descriptor, w.descriptor, required(convolution), dy.descriptor);
    return operation_in_compute_type(dy.descriptor, [=](auto tag) {
      using T = typename decltype(tag)::type;
      store_tensor(dx, convolve_backward_data(shapes, load_tensor<T>(w), load_tensor<T>(dy)), scales);
    });
  });
}
API int cudnnConvolutionBackwardFilter(void* handle, void* alpha, TensorDescriptor* x_desc, void* x_data,
                                       TensorDescriptor* dy_desc, void* dy_data, Convolution* convolution, int, void*, size_t,
                                       void* beta, Filter* dw_desc, void* dw_data) {
  return run_fallback_on_stream("cudnnConvolutionBackwardFilter", stream_of_handle(handle), [&] {
    const Tensor x(x_desc, x_data), dy(dy_desc, dy_data), dw(required(dw_desc).tensor, dw_data);
    const Scales scales(x.descriptor, alpha, beta);
    const ConvolutionShapes shapes(x.descriptor, dw.descriptor, required(convolution), dy.descriptor);
    return operation_in_compute_type(x.descriptor, [=](auto tag) {
      using T = typename decltype(tag)::type;
      store_tensor(dw, convolve_backward_filter(shapes, load_tensor<T>(x), load_tensor<T>(dy)), scales);
    });
  });
}
API int cudnnConvolutionBackwardBias(void* handle, void* alpha, TensorDescriptor* dy_desc, void* dy_data, void* beta,
                                     TensorDescriptor* db_desc, void* db_data) {
  return run_fallback_on_stream("cudnnConvolutionBackwardBias", stream_of_handle(handle), [&] {
    const Tensor dy(dy_desc, dy_data), db(db_desc, db_data);
    const Scales scales(dy.descriptor, alpha, beta);
    return operation_in_compute_type(dy.descriptor, [=](auto tag) {
      using T = typename decltype(tag)::type;
      const std::vector<T> gradients = load_tensor<T>(dy);
      std::vector<T> sums(static_cast<size_t>(dy.descriptor.channels()));
      const size_t space = static_cast<size_t>(dy.descriptor.spatial_size());
      for (size_t k = 0; k < gradients.size(); k++) sums[k / space % sums.size()] += gradients[k];
      store_tensor(db, sums, scales);
    });
  });
}
// y = activation(alpha1 * convolution + alpha2 * z + bias)
API int cudnnConvolutionBiasActivationForward(void* handle, void* alpha1, TensorDescriptor* x_desc, void* x_data,
                                              Filter* w_desc, void* w_data, Convolution* convolution, int, void*, size_t,
                                              void* alpha2, TensorDescriptor* z_desc, void* z_data, TensorDescriptor* b_desc,
                                              void* b_data, Activation* activation_desc, TensorDescriptor* y_desc,
                                              void* y_data) {
  return run_fallback_on_stream("cudnnConvolutionBiasActivationForward", stream_of_handle(handle), [&] {
    const Tensor x(x_desc, x_data), w(required(w_desc).tensor, w_data), b(b_desc, b_data), y(y_desc, y_data);
    const Scales scales(x.descriptor, alpha1, alpha2);
    const Tensor z = scales.beta != 0 ? Tensor(z_desc, z_data) : y;  // which is not read then
    const Activation activation = required(activation_desc);
    const ConvolutionShapes shapes(x.descriptor, w.descriptor, required(convolution), y.descriptor);
    if (b.descriptor.count() != y.descriptor.channels() || z.descriptor.count() != y.descriptor.count()) throw InvalidValue();
    return operation_in_compute_type(x.descriptor, [=](auto tag) {
      using T = typename decltype(tag)::type;
      std::vector<T> results = convolve(shapes, load_tensor<T>(x), load_tensor<T>(w));
      const std::vector<T> bias = load_tensor<T>(b);
      const std::vector<T> addends = scales.beta != 0 ? load_tensor<T>(z) : std::vector<T>(results.size());
      const size_t space = static_cast<size_t>(y.descriptor.spatial_size());
      for (size_t k = 0; k < results.size(); k++) {
        const T sum = T(scales.alpha) * results[k] + T(scales.beta) * addends[k] + bias[k / space % bias.size()];
        results[k] = static_cast<T>(activation.value(sum));
      }
      store_tensor(y, results);
    });
  });
}

API int cudnnGetConvolutionForwardWorkspaceSize(void*, void*, void*, void*, void*, int algorithm, size_t* bytes) {
  return workspace_size("cudnnConvolutionForward", algorithm, bytes);
}
API int cudnnGetConvolutionBackwardDataWorkspaceSize(void*, void*, void*, void*, void*, int algorithm, size_t* bytes) {
  return workspace_size("cudnnConvolutionBackwardData", algorithm, bytes);
}
API int cudnnGetConvolutionBackwardFilterWorkspaceSize(void*, void*, void*, void*, void*, int algorithm, size_t* bytes) {
  return workspace_size("cudnnConvolutionBackwardFilter", algorithm, bytes);
}
