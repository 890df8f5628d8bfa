// cuDNN's batch normalization: over batch and space for each channel (spatial), or over the batch for each element.
#include <cmath>

#include "dnn.h"

using namespace vgpu;

namespace {

using Doubles = std::vector<double>;

// Of each set that is normalised together: how many values, and what is counted over them.
struct NormalizationGroups {
  int64_t count, size, sample, space;
  bool spatial;

  NormalizationGroups(const TensorDescriptor& x, int mode)  // cudnn.h: cudnnBatchNormMode_t
      : count(0), size(0), sample((x.check(), x.channels() * x.spatial_size())), space(x.spatial_size()), spatial(mode != 0) {
    count = spatial ? x.channels() : sample;
    size = x.count() / count;
  }
  size_t of(size_t k) const { return static_cast<size_t>(spatial ? int64_t(k) / space % count : int64_t(k) % sample); }
  Doubles zeros() const { return Doubles(static_cast<size_t>(count)); }
  Doubles means(const Doubles& x) const {
    Doubles sums = zeros();
    for (size_t k = 0; k < x.size(); k++) sums[of(k)] += x[k];
    for (double& one : sums) one /= double(size);
    return sums;
  }
  Doubles variances(const Doubles& x, const Doubles& mean) const {
    Doubles sums = zeros();
    for (size_t k = 0; k < x.size(); k++) sums[of(k)] += (x[k] - mean[of(k)]) * (x[k] - mean[of(k)]);
    for (double& one : sums) one /= double(size);
    return sums;
  }
};

Doubles inverse(Doubles variance, double epsilon) {
  for (double& one : variance) one = 1 / std::sqrt(one + epsilon);
  return variance;
}

Doubles parameters(const NormalizationGroups& groups, const TensorDescriptor& of, const void* at) {
  Doubles found = load_tensor<double>(of, at);
  if (int64_t(found.size()) != groups.count) throw InvalidValue();
  return found;
}

// alpha and beta are of the type of x's sums, and all is counted in doubles.
void put(const TensorDescriptor& of_x, const void* alpha, const void* beta, const TensorDescriptor& to, void* at,
         const Doubles& made) {
  double a = 0, b = 0;
  with_compute_type(of_x, [&](auto tag) {
    using T = typename decltype(tag)::type;
    a = *static_cast<const T*>(alpha), b = *static_cast<const T*>(beta);
  });
  AlphaBeta<double>(&a, &b).put(to, at, made);
}
void put(const TensorDescriptor& to, void* at, const Doubles& made) {
  const double one = 1, none = 0;
  if (at) AlphaBeta<double>(&one, &none).put(to, at, made);
}
// A running value goes the way of `factor` towards the new one.
void follow(const TensorDescriptor& to, void* at, double factor, const Doubles& made) {
  const double rest = 1 - factor;
  if (at) AlphaBeta<double>(&factor, &rest).put(to, at, made);
}

struct BatchNormArguments {  // what the calls have in common
  int mode;
  const void *alpha, *beta;
  TensorDescriptor* of_x;
  const void* x;
  TensorDescriptor* of_parameters;
};

// cudnn.h: cudnnBatchNormOps_t
enum Ops : int { kAlone = 0, kActivated = 1, kAddedAndActivated = 2 };

Doubles scaled(const NormalizationGroups& groups, Doubles x, const Doubles& mean, const Doubles& inverse, const Doubles& scale,
               const Doubles& bias) {
  for (size_t k = 0; k < x.size(); k++) {
    const size_t s = groups.of(k);
    x[k] = (x[k] - mean[s]) * inverse[s] * scale[s] + bias[s];
  }
  return x;
}

void train(const BatchNormArguments& g, int ops, TensorDescriptor* of_z, void* z, TensorDescriptor* of_y, void* y, void* scale,
           void* bias, double factor, void* running_mean, void* running_variance, double epsilon, void* saved_mean,
           void* saved_inverse, const Activation* activation) {
  const NormalizationGroups groups(*g.of_x, g.mode);
  const TensorDescriptor& p = *g.of_parameters;
  const Doubles x = load_tensor<double>(*g.of_x, g.x), mean = groups.means(x);
  Doubles variance = groups.variances(x, mean);
  const Doubles by = inverse(variance, epsilon);
  Doubles made = scaled(groups, x, mean, by, parameters(groups, p, scale), parameters(groups, p, bias));
  if (ops == kAddedAndActivated) {
    const Doubles other = load_tensor<double>(*of_z, z);
    for (size_t k = 0; k < made.size(); k++) made[k] += other.at(k);
  }
  if (ops != kAlone)
    for (double& one : made) one = activation->of(one);
  put(*g.of_x, g.alpha, g.beta, *of_y, y, made);
  put(p, saved_mean, mean), put(p, saved_inverse, by);
  follow(p, running_mean, factor, mean);
  for (double& one : variance) one *= double(groups.size) / double(groups.size > 1 ? groups.size - 1 : 1);
  follow(p, running_variance, factor, variance);
}

void backward(const BatchNormArguments& g, const void* alpha_parameters, const void* beta_parameters, Doubles dy,
              TensorDescriptor* of_dx, void* dx, void* scale, void* dscale, void* dbias, double epsilon, void* saved_mean,
              void* saved_inverse) {
  const NormalizationGroups groups(*g.of_x, g.mode);
  const TensorDescriptor& p = *g.of_parameters;
  const Doubles x = load_tensor<double>(*g.of_x, g.x), by = parameters(groups, p, scale);
  if (dy.size() != x.size()) throw InvalidValue();
  const Doubles mean = saved_mean ? parameters(groups, p, saved_mean) : groups.means(x);
  const Doubles inverses = saved_inverse ? parameters(groups, p, saved_inverse) : inverse(groups.variances(x, mean), epsilon);
  Doubles sums = groups.zeros(), products = groups.zeros();
  auto normal = [&](size_t k) { return (x[k] - mean[groups.of(k)]) * inverses[groups.of(k)]; };
  for (size_t k = 0; k < x.size(); k++) sums[groups.of(k)] += dy[k], products[groups.of(k)] += dy[k] * normal(k);
  for (size_t k = 0; k < x.size(); k++) {
    const size_t s = groups.of(k);
    dy[k] = by[s] * inverses[s] * (dy[k] - (sums[s] + normal(k) * products[s]) / double(groups.size));
  }
  put(*g.of_x, g.alpha, g.beta, *of_dx, dx, dy);
  put(*g.of_x, alpha_parameters, beta_parameters, p, dscale, products);
  put(*g.of_x, alpha_parameters, beta_parameters, p, dbias, sums);
}

}  // namespace

API int cudnnBatchNormalizationForwardTraining(void*, int mode, void* alpha, void* beta, TensorDescriptor* of_x, void* x,
                                               TensorDescriptor* of_y, void* y, TensorDescriptor* of_p, void* scale, void* bias,
                                               double factor, void* mean, void* variance, double epsilon, void* saved_mean,
                                               void* saved_inverse) {
  return run_fallback("cudnnBatchNormalizationForwardTraining", [&] {
    train({mode, alpha, beta, of_x, x, of_p}, kAlone, nullptr, nullptr, of_y, y, scale, bias, factor, mean, variance, epsilon,
          saved_mean, saved_inverse, nullptr);
  });
}
API int cudnnBatchNormalizationForwardTrainingEx(void*, int mode, int ops, void* alpha, void* beta, TensorDescriptor* of_x,
                                                 void* x, TensorDescriptor* of_z, void* z, TensorDescriptor* of_y, void* y,
                                                 TensorDescriptor* of_p, void* scale, void* bias, double factor, void* mean,
                                                 void* variance, double epsilon, void* saved_mean, void* saved_inverse,
                                                 Activation* activation, void*, size_t, void*, size_t) {
  return run_fallback("cudnnBatchNormalizationForwardTrainingEx", [&] {
    train({mode, alpha, beta, of_x, x, of_p}, ops, of_z, z, of_y, y, scale, bias, factor, mean, variance, epsilon, saved_mean,
          saved_inverse, activation);
  });
}
API int cudnnBatchNormalizationForwardInference(void*, int mode, void* alpha, void* beta, TensorDescriptor* of_x, void* x,
                                                TensorDescriptor* of_y, void* y, TensorDescriptor* of_p, void* scale,
                                                void* bias, void* mean, void* variance, double epsilon) {
  return run_fallback("cudnnBatchNormalizationForwardInference", [&] {
    const NormalizationGroups groups(*of_x, mode);
    auto given = [&](void* at) { return parameters(groups, *of_p, at); };
    put(*of_x, alpha, beta, *of_y, y,
        scaled(groups, load_tensor<double>(*of_x, x), given(mean), inverse(given(variance), epsilon), given(scale),
               given(bias)));
  });
}
API int cudnnBatchNormalizationBackward(void*, int mode, void* alpha, void* beta, void* alpha_p, void* beta_p,
                                        TensorDescriptor* of_x, void* x, TensorDescriptor* of_dy, void* dy,
                                        TensorDescriptor* of_dx, void* dx, TensorDescriptor* of_p, void* scale, void* dscale,
                                        void* dbias, double epsilon, void* saved_mean, void* saved_inverse) {
  return run_fallback("cudnnBatchNormalizationBackward", [&] {
    backward({mode, alpha, beta, of_x, x, of_p}, alpha_p, beta_p, load_tensor<double>(*of_dy, dy), of_dx, dx, scale, dscale,
             dbias, epsilon, saved_mean, saved_inverse);
  });
}
API int cudnnBatchNormalizationBackwardEx(void*, int mode, int ops, void* alpha, void* beta, void* alpha_p, void* beta_p,
                                          TensorDescriptor* of_x, void* x, TensorDescriptor* of_y, void* y,
                                          TensorDescriptor* of_dy, void* dy, TensorDescriptor* of_dz, void* dz,
                                          TensorDescriptor* of_dx, void* dx, TensorDescriptor* of_p, void* scale, void*,
                                          void* dscale, void* dbias, double epsilon, void* saved_mean, void* saved_inverse,
                                          Activation* activation, void*, size_t, void*, size_t) {
  return run_fallback("cudnnBatchNormalizationBackwardEx", [&] {
    Doubles given = load_tensor<double>(*of_dy, dy);
    if (ops != kAlone) {
      const Doubles made = load_tensor<double>(*of_y, y);  // of what cuDNN takes here, y is above zero where its input is
      for (size_t k = 0; k < given.size(); k++) given[k] *= activation->derivative(made.at(k), made.at(k));
    }
    if (ops == kAddedAndActivated) put(*of_dz, dz, given);
    backward({mode, alpha, beta, of_x, x, of_p}, alpha_p, beta_p, given, of_dx, dx, scale, dscale, dbias, epsilon, saved_mean,
             saved_inverse);
  });
}
