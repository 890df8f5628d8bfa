// CPU fallbacks of cuDNN's batch normalization: over batch and space for each channel (spatial), or over the batch for each element.
#include <cmath>

#include "dnn.h"

using namespace vgpu;

namespace {

using Doubles = std::vector<double>;

// The sets of elements that are normalized together, each with a mean and a variance of its own.
struct NormalizationGroups {
  int64_t count, size;  // number of groups, elements of each
  int64_t sample, space;  // elements of one sample, of one channel of it
  bool spatial;

  NormalizationGroups(const TensorDescriptor& x, int mode)  // cudnn.h: cudnnBatchNormMode_t
      : count(0), size(0), sample((x.check(), x.channels() * x.spatial_size())), space(x.spatial_size()), spatial(mode != 0) {
    count = spatial ? x.channels() : sample;
    size = x.count() / count;
  }
  size_t group_of(size_t element) const {
    return static_cast<size_t>(spatial ? int64_t(element) / space % count : int64_t(element) % sample);
  }
  Doubles zeros() const { return Doubles(static_cast<size_t>(count)); }
  Doubles means(const Doubles& x) const {
    Doubles sums = zeros();
    for (size_t k = 0; k < x.size(); k++) sums[group_of(k)] += x[k];
    for (double& sum : sums) sum /= double(size);
    return sums;
  }
  Doubles variances(const Doubles& x, const Doubles& mean) const {
    Doubles sums = zeros();
    for (size_t k = 0; k < x.size(); k++) sums[group_of(k)] += (x[k] - mean[group_of(k)]) * (x[k] - mean[group_of(k)]);
    for (double& sum : sums) sum /= double(size);
    return sums;
  }
};

Doubles inverse_deviation(Doubles variance, double epsilon) {
  for (double& value : variance) value = 1 / std::sqrt(value + epsilon);
  return variance;
}

Doubles load_parameters(const NormalizationGroups& groups, const Tensor& tensor) {
  Doubles values = load_tensor<double>(tensor);
  if (int64_t(values.size()) != groups.count) throw InvalidValue();
  return values;
}

// Stores average = factor * batch_value + (1 - factor) * average, if there is an average.
void update_running_average(const Tensor& average, double factor, const Doubles& batch_value) {
  if (average.data) store_tensor(average, batch_value, Scales(factor, 1 - factor));
}

// cudnn.h: cudnnBatchNormOps_t
enum Ops : int { kBatchNormOnly = 0, kWithActivation = 1, kWithAddAndActivation = 2 };

// The activation of a call that has one, and the tensor that is added before it.
struct Epilogue {
  Ops ops = kBatchNormOnly;
  Activation activation;
  std::vector<Tensor> z;  // one, or none

  Epilogue() = default;
  Epilogue(int mode, const Activation* activation_desc, const TensorDescriptor* z_desc, void* z_data) : ops(Ops(mode)) {
    if (ops != kBatchNormOnly) activation = required(activation_desc);
    if (ops == kWithAddAndActivation) z.emplace_back(z_desc, z_data);
  }
};

Doubles normalize(const NormalizationGroups& groups, Doubles x, const Doubles& mean, const Doubles& inverse_deviations,
                  const Doubles& scale, const Doubles& bias) {
  for (size_t k = 0; k < x.size(); k++) {
    const size_t group = groups.group_of(k);
    x[k] = (x[k] - mean[group]) * inverse_deviations[group] * scale[group] + bias[group];
  }
  return x;
}

// The parameters of a layer, of which all have one shape. A pointer that is null is not used.
struct Parameters {
  TensorDescriptor descriptor;
  void *scale, *bias, *mean, *variance, *saved_mean, *saved_inverse;

  Tensor tensor(void* data) const { return {descriptor, data}; }
};

// y = scales.alpha * (normalized x) + scales.beta * y; updates the running averages.
void train(const Tensor& x, const Tensor& y, int mode, const Scales& scales, const Parameters& parameters, double factor,
           double epsilon, const Epilogue& epilogue) {
  const NormalizationGroups groups(x.descriptor, mode);
  const Doubles inputs = load_tensor<double>(x), mean = groups.means(inputs);
  Doubles variance = groups.variances(inputs, mean);
  const Doubles inverse_deviations = inverse_deviation(variance, epsilon);
  Doubles results =
      normalize(groups, inputs, mean, inverse_deviations, load_parameters(groups, parameters.tensor(parameters.scale)),
                load_parameters(groups, parameters.tensor(parameters.bias)));
  if (epilogue.ops == kWithAddAndActivation) {
    const Doubles addends = load_tensor<double>(epilogue.z[0]);
    if (addends.size() != results.size()) throw InvalidValue();
    for (size_t k = 0; k < results.size(); k++) results[k] += addends[k];
  }
  if (epilogue.ops != kBatchNormOnly)
    for (double& value : results) value = epilogue.activation.value(value);
  store_tensor(y, results, scales);
  if (parameters.saved_mean) store_tensor(parameters.tensor(parameters.saved_mean), mean);
  if (parameters.saved_inverse) store_tensor(parameters.tensor(parameters.saved_inverse), inverse_deviations);
  update_running_average(parameters.tensor(parameters.mean), factor, mean);
  for (double& value : variance) value *= double(groups.size) / double(groups.size > 1 ? groups.size - 1 : 1);
  update_running_average(parameters.tensor(parameters.variance), factor, variance);
}

// The gradients of x, and of the scale and the bias. dy: the gradient of what was normalized.
struct Gradients { Doubles x, scale, bias; };
Gradients backward(const NormalizationGroups& groups, const Doubles& x, const Doubles& dy, const Parameters& parameters,
                   double epsilon) {
  if (dy.size() != x.size()) throw InvalidValue();
  const Doubles scales = load_parameters(groups, parameters.tensor(parameters.scale));
  const Doubles mean =
      parameters.saved_mean ? load_parameters(groups, parameters.tensor(parameters.saved_mean)) : groups.means(x);
  const Doubles inverse_deviations = parameters.saved_inverse
                                         ? load_parameters(groups, parameters.tensor(parameters.saved_inverse))
                                         : inverse_deviation(groups.variances(x, mean), epsilon);
  Doubles sums = groups.zeros(), products = groups.zeros(), dx(x.size());
  auto normalized = [&](size_t k) { return (x[k] - mean[groups.group_of(k)]) * inverse_deviations[groups.group_of(k)]; };
  for (size_t k = 0; k < x.size(); k++)
    sums[groups.group_of(k)] += dy[k], products[groups.group_of(k)] += dy[k] * normalized(k);
  for (size_t k = 0; k < x.size(); k++) {
    const size_t group = groups.group_of(k);
    dx[k] = scales[group] * inverse_deviations[group] *
            (dy[k] - (sums[group] + normalized(k) * products[group]) / double(groups.size));
  }
  return {dx, products, sums};
}

// The forward calls in training, of which the Ex form has an epilogue.
Operation prepare_training(const Tensor& x, const Tensor& y, int mode, const void* alpha, const void* beta,
                           const Parameters& parameters, double factor, double epsilon, const Epilogue& epilogue) {
  const Scales scales(x.descriptor, alpha, beta);
  return [=] { train(x, y, mode, scales, parameters, factor, epsilon, epilogue); };
}

// The gradient calls: of data and of parameters, each with its scales. y is read if the epilogue has an activation, and the
// epilogue's z is the gradient of what was added.
Operation prepare_gradients(const Tensor& x, const std::vector<Tensor>& y, const Tensor& dy, const Tensor& dx, int mode,
                            const Scales& data_scales, const Scales& parameter_scales, const Parameters& parameters,
                            const Tensor& dscale, const Tensor& dbias, double epsilon, const Epilogue& epilogue) {
  return [=] {
    const NormalizationGroups groups(x.descriptor, mode);
    Doubles gradients = load_tensor<double>(dy);
    if (!y.empty()) {  // cuDNN accepts here only activations with y > 0 exactly if x > 0
      const Doubles outputs = load_tensor<double>(y[0]);
      if (outputs.size() != gradients.size()) throw InvalidValue();
      for (size_t k = 0; k < gradients.size(); k++) gradients[k] *= epilogue.activation.derivative(outputs[k], outputs[k]);
    }
    for (const Tensor& dz : epilogue.z) store_tensor(dz, gradients);
    const Gradients of = backward(groups, load_tensor<double>(x), gradients, parameters, epsilon);
    store_tensor(dx, of.x, data_scales);
    store_tensor(dscale, of.scale, parameter_scales), store_tensor(dbias, of.bias, parameter_scales);
  };
}

}  // namespace

API int cudnnBatchNormalizationForwardTraining(void* handle, int mode, void* alpha, void* beta, TensorDescriptor* x_desc,
                                               void* x, TensorDescriptor* y_desc, void* y, TensorDescriptor* parameters_desc,
                                               void* scale, void* bias, double factor, void* mean, void* variance,
                                               double epsilon, void* saved_mean, void* saved_inverse) {
  return run_fallback_on_stream("cudnnBatchNormalizationForwardTraining", stream_of_handle(handle), [&] {
    const Parameters parameters{required(parameters_desc), scale, bias, mean, variance, saved_mean, saved_inverse};
    return prepare_training({x_desc, x}, {y_desc, y}, mode, alpha, beta, parameters, factor, epsilon, Epilogue());
  });
}
API int cudnnBatchNormalizationForwardTrainingEx(void* handle, int mode, int ops, void* alpha, void* beta,
                                                 TensorDescriptor* x_desc, void* x, TensorDescriptor* z_desc, void* z,
                                                 TensorDescriptor* y_desc, void* y, TensorDescriptor* parameters_desc,
                                                 void* scale, void* bias, double factor, void* mean, void* variance,
                                                 double epsilon, void* saved_mean, void* saved_inverse, Activation* activation,
                                                 void*, size_t, void*, size_t) {
  return run_fallback_on_stream("cudnnBatchNormalizationForwardTrainingEx", stream_of_handle(handle), [&] {
    const Parameters parameters{required(parameters_desc), scale, bias, mean, variance, saved_mean, saved_inverse};
    return prepare_training({x_desc, x}, {y_desc, y}, mode, alpha, beta, parameters, factor, epsilon,
                            Epilogue(ops, activation, z_desc, z));
  });
}
API int cudnnBatchNormalizationForwardInference(void* handle, int mode, void* alpha, void* beta, TensorDescriptor* x_desc,
                                                void* x_data, TensorDescriptor* y_desc, void* y_data,
                                                TensorDescriptor* parameters_desc, void* scale, void* bias, void* mean,
                                                void* variance, double epsilon) {
  return run_fallback_on_stream("cudnnBatchNormalizationForwardInference", stream_of_handle(handle), [&]() -> Operation {
    const Tensor x(x_desc, x_data), y(y_desc, y_data);
    const Scales scales(x.descriptor, alpha, beta);
    return [=, descriptor = required(parameters_desc)] {
      const NormalizationGroups groups(x.descriptor, mode);
      auto load = [&](void* data) { return load_parameters(groups, {descriptor, data}); };
      const Doubles inverse_deviations = inverse_deviation(load(variance), epsilon);
      store_tensor(y, normalize(groups, load_tensor<double>(x), load(mean), inverse_deviations, load(scale), load(bias)),
                   scales);
    };
  });
}
API int cudnnBatchNormalizationBackward(void* handle, int mode, void* alpha, void* beta, void* alpha_p, void* beta_p,
                                        TensorDescriptor* x_desc, void* x_data, TensorDescriptor* dy_desc, void* dy,
                                        TensorDescriptor* dx_desc, void* dx, TensorDescriptor* parameters_desc, void* scale,
                                        void* dscale, void* dbias, double epsilon, void* saved_mean, void* saved_inverse) {
  return run_fallback_on_stream("cudnnBatchNormalizationBackward", stream_of_handle(handle), [&] {
    const Tensor x(x_desc, x_data);
    const Parameters parameters{required(parameters_desc), scale, nullptr, nullptr, nullptr, saved_mean, saved_inverse};
    return prepare_gradients(x, {}, {dy_desc, dy}, {dx_desc, dx}, mode, Scales(x.descriptor, alpha, beta),
                             Scales(x.descriptor, alpha_p, beta_p), parameters, parameters.tensor(dscale),
                             parameters.tensor(dbias), epsilon, Epilogue());
  });
}
API int cudnnBatchNormalizationBackwardEx(void* handle, int mode, int ops, void* alpha, void* beta, void* alpha_p, void* beta_p,
                                          TensorDescriptor* x_desc, void* x_data, TensorDescriptor* y_desc, void* y,
                                          TensorDescriptor* dy_desc, void* dy, TensorDescriptor* dz_desc, void* dz,
                                          TensorDescriptor* dx_desc, void* dx, TensorDescriptor* parameters_desc, void* scale,
                                          void*, void* dscale, void* dbias, double epsilon, void* saved_mean,
                                          void* saved_inverse, Activation* activation, void*, size_t, void*, size_t) {
  return run_fallback_on_stream("cudnnBatchNormalizationBackwardEx", stream_of_handle(handle), [&] {
    const Tensor x(x_desc, x_data);
    const Parameters parameters{required(parameters_desc), scale, nullptr, nullptr, nullptr, saved_mean, saved_inverse};
    std::vector<Tensor> outputs;
    if (ops != kBatchNormOnly) outputs.emplace_back(y_desc, y);
    return prepare_gradients(x, outputs, {dy_desc, dy}, {dx_desc, dx}, mode, Scales(x.descriptor, alpha, beta),
                             Scales(x.descriptor, alpha_p, beta_p), parameters, parameters.tensor(dscale),
                             parameters.tensor(dbias), epsilon, Epilogue(ops, activation, dz_desc, dz));
  });
}
