#include "dnn.h"

#include <cmath>

#include "arithmetic/elementary.h"

namespace vgpu {

Number Tensor::type() const {  // cudnn.h: cudnnDataType_t
  switch (kind) {
    case 0: return Number::Float;
    case 1: return Number::Double;
    case 2: return Number::Half;
    case 9: return Number::Bfloat;
    default: throw NotStoodIn();
  }
}

void Tensor::lay_out(bool channels_last) {
  steps.assign(sizes.size(), 1);
  int64_t step = channels_last ? channels() : 1;
  for (size_t k = sizes.size(); k-- > 0;) {
    if (channels_last && k == 1) continue;
    steps[k] = step;
    step *= sizes[k];
  }
}

void Tensor::check() const {
  if (sizes.size() < 2 || steps.size() != sizes.size()) throw BadArguments();
  for (size_t k = 0; k < sizes.size(); k++)
    if (sizes[k] <= 0 || steps[k] < 0) throw BadArguments();
}

uint64_t Tensor::bytes() const {
  uint64_t last = 0;
  for (size_t k = 0; k < sizes.size(); k++) last += static_cast<uint64_t>(sizes[k] - 1) * static_cast<uint64_t>(steps[k]);
  return (last + 1) * size_of(type());
}

// What lies between its elements is none of its own.
void Tensor::reads(const void* at) const {
  const uint32_t size = size_of(type());
  if (static_cast<uint64_t>(count()) * size == bytes()) return vgpu::reads(at, bytes());
  each_element(*this, [=](int64_t, int64_t offset) { vgpu::reads(static_cast<const char*>(at) + offset * size, size); });
}
void Tensor::writes(void* at) const {
  const uint32_t size = size_of(type());
  if (static_cast<uint64_t>(count()) * size == bytes()) return vgpu::writes(at, bytes());
  each_element(*this, [=](int64_t, int64_t offset) { vgpu::writes(static_cast<char*>(at) + offset * size, size); });
}

Sizes space_of(const Tensor& tensor) { return Sizes(tensor.sizes.begin() + 2, tensor.sizes.end()); }

// cudnn.h: cudnnActivationMode_t
double Activation::of(double x) const {
  switch (mode) {
    case 0: return 1 / (1 + exp_of(-x));
    case 1: return x > 0 || (hands_nan_on && x != x) ? x : 0;
    case 2: return tanh_of(x);
    case 3: return x > 0 ? std::fmin(x, coefficient) : hands_nan_on && x != x ? x : 0;
    case 4: return x > 0 ? x : coefficient * (exp_of(x) - 1);
    case 5: return x;
    default: throw NotStoodIn();
  }
}
double Activation::slope(double x, double y) const {
  switch (mode) {
    case 0: return y * (1 - y);
    case 1: return x > 0;
    case 2: return 1 - y * y;
    case 3: return x > 0 && x < coefficient;
    case 4: return x > 0 ? 1 : y + coefficient;
    case 5: return 1;
    default: throw NotStoodIn();
  }
}

namespace {

bool step_on(Sizes& at, const Sizes& sizes) {
  for (size_t k = sizes.size(); k-- > 0;) {
    if (++at[k] < sizes[k]) return true;
    at[k] = 0;
  }
  return false;
}

}  // namespace

Windows::Windows(const Sizes& input, const Sizes& output, const Sizes& window, const Sizes& pads, const Sizes& strides,
                 const Sizes& dilations, bool flipped)
    : places_(product_of(window)), outputs_(product_of(output)) {
  const size_t rank = input.size();
  if (output.size() != rank || window.size() != rank || pads.size() != rank || strides.size() != rank ||
      dilations.size() != rank)
    throw BadArguments();
  inputs_.reserve(static_cast<size_t>(places_ * outputs_));
  Sizes place(rank, 0);
  do {
    Sizes at(rank, 0);
    do {
      int64_t number = 0;
      for (size_t k = 0; k < rank && number >= 0; k++) {
        const int64_t tap = flipped ? window[k] - 1 - place[k] : place[k];
        const int64_t where = at[k] * strides[k] - pads[k] + tap * dilations[k];
        number = where < 0 || where >= input[k] ? -1 : number * input[k] + where;
      }
      inputs_.push_back(number);
    } while (step_on(at, output));
  } while (step_on(place, window));
}

}  // namespace vgpu
