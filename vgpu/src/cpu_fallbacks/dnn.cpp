// Tensor descriptors, activation functions and window indices for the CPU fallbacks of cuDNN.
#include "dnn.h"

#include <cmath>

#include "arithmetic/elementary.h"

namespace vgpu {

DataType data_type_of(int kind) {  // cudnn.h: cudnnDataType_t
  switch (kind) {
    case 0: return DataType::Float;
    case 1: return DataType::Double;
    case 2: return DataType::Half;
    case 9: return DataType::Bfloat;
    default: throw FallbackUnsupported();
  }
}

void TensorDescriptor::set_packed_strides(bool channels_last) {
  strides.assign(dims.size(), 1);
  int64_t step = channels_last ? channels() : 1;
  for (size_t k = dims.size(); k-- > 0;) {
    if (channels_last && k == 1) continue;
    strides[k] = step;
    step *= dims[k];
  }
}

TensorDescriptor TensorDescriptor::broadcast_to(const Dims& shape) const {
  check();
  if (dims.size() != shape.size()) throw InvalidValue();
  TensorDescriptor broadcast = *this;
  for (size_t k = 0; k < dims.size(); k++) {
    if (dims[k] == shape[k]) continue;
    if (dims[k] != 1) throw InvalidValue();
    broadcast.dims[k] = shape[k], broadcast.strides[k] = 0;
  }
  return broadcast;
}

void TensorDescriptor::check() const {
  if (dims.size() < 2 || strides.size() != dims.size()) throw InvalidValue();
  for (size_t k = 0; k < dims.size(); k++)
    if (dims[k] <= 0 || strides[k] < 0) throw InvalidValue();
}

uint64_t TensorDescriptor::bytes() const {
  uint64_t last = 0;
  for (size_t k = 0; k < dims.size(); k++) last += static_cast<uint64_t>(dims[k] - 1) * static_cast<uint64_t>(strides[k]);
  return (last + 1) * size_of(type());
}

// Without gaps, one check is enough; otherwise the bytes between elements must not be checked.
void TensorDescriptor::check_read(const void* data) const {
  const uint32_t size = size_of(type());
  if (static_cast<uint64_t>(count()) * size == bytes()) return vgpu::check_read(data, bytes());
  for_each_element(*this,
                   [=](int64_t, int64_t offset) { vgpu::check_read(static_cast<const char*>(data) + offset * size, size); });
}
void TensorDescriptor::check_write(void* data) const {
  const uint32_t size = size_of(type());
  if (static_cast<uint64_t>(count()) * size == bytes()) return vgpu::check_write(data, bytes());
  for_each_element(*this, [=](int64_t, int64_t offset) { vgpu::check_write(static_cast<char*>(data) + offset * size, size); });
}

Dims spatial_dims(const TensorDescriptor& tensor) { return Dims(tensor.dims.begin() + 2, tensor.dims.end()); }

// cudnn.h: cudnnActivationMode_t
double Activation::value(double x) const {
  switch (mode) {
    case 0: return sigmoid_of(x);
    case 1: return x > 0 || (propagates_nan && x != x) ? x : 0;
    case 2: return tanh_of(x);
    case 3: return x > 0 ? std::fmin(x, coefficient) : propagates_nan && x != x ? x : 0;
    case 4: return x > 0 ? x : coefficient * (exp_of(x) - 1);
    case 5: return x;
    default: throw FallbackUnsupported();
  }
}
double Activation::derivative(double x, double y) const {
  switch (mode) {
    case 0: return y * (1 - y);
    case 1: return x > 0;
    case 2: return 1 - y * y;
    case 3: return x > 0 && x < coefficient;
    case 4: return x > 0 ? 1 : y + coefficient;
    case 5: return 1;
    default: throw FallbackUnsupported();
  }
}

namespace {

// Moves to the next position in row-major order; returns false after the last one.
bool advance(Dims& position, const Dims& dims) {
  for (size_t k = dims.size(); k-- > 0;) {
    if (++position[k] < dims[k]) return true;
    position[k] = 0;
  }
  return false;
}

}  // namespace

// A tap is an element of the window.
WindowIndices::WindowIndices(const Dims& input, const Dims& output, const Dims& window, const Dims& pads, const Dims& strides,
                             const Dims& dilations, bool is_convolution)
    : taps_(element_count(window)), outputs_(element_count(output)) {
  const size_t rank = input.size();
  if (output.size() != rank || window.size() != rank || pads.size() != rank || strides.size() != rank ||
      dilations.size() != rank)
    throw InvalidValue();
  inputs_.reserve(static_cast<size_t>(taps_ * outputs_));
  Dims tap_position(rank, 0);
  do {
    Dims output_position(rank, 0);
    do {
      int64_t index = 0;
      for (size_t k = 0; k < rank && index >= 0; k++) {
        const int64_t tap = is_convolution ? window[k] - 1 - tap_position[k] : tap_position[k];
        const int64_t coordinate = output_position[k] * strides[k] - pads[k] + tap * dilations[k];
        index = coordinate < 0 || coordinate >= input[k] ? -1 : index * input[k] + coordinate;
      }
      inputs_.push_back(index);
    } while (advance(output_position, output));
  } while (advance(tap_position, window));
}

}  // namespace vgpu
