// Convolutions and their gradients, as one matrix product for each sample and group; sums run over channels and window.
#pragma once
#include "dnn.h"
#include "matmul.h"

namespace vgpu {

// The shapes of a convolution y = x * w, and the indices of their elements in packed tensors. InvalidValue if they do not fit.
struct ConvolutionShapes {
  TensorDescriptor x, w, y;
  int64_t groups, group_inputs, group_outputs;  // group_*: channels of a group
  WindowIndices windows;

  ConvolutionShapes(const TensorDescriptor& x_desc, const TensorDescriptor& w_desc, const Convolution& convolution,
                    const TensorDescriptor& y_desc)
      : x(checked(x_desc)),
        w(checked(w_desc)),
        y(checked(y_desc)),
        groups(convolution.groups),
        group_inputs(w.channels()),
        group_outputs(groups > 0 ? y.channels() / groups : 0),
        windows(spatial_dims(x), spatial_dims(y), spatial_dims(w), convolution.pads, convolution.strides, convolution.dilations,
                convolution.is_convolution) {
    if (groups <= 0 || x.channels() != group_inputs * groups || w.batch_size() != group_outputs * groups ||
        y.channels() != group_outputs * groups || x.batch_size() != y.batch_size())
      throw InvalidValue();
  }
  static const TensorDescriptor& checked(const TensorDescriptor& tensor) { return tensor.check(), tensor; }

  // n: a sample; k: an output channel of the group; term: an input channel of the group with a tap (element of the window);
  // output: a position of y.
  int64_t terms() const { return group_inputs * windows.taps(); }  // of each sum
  int64_t w_index(int64_t group, int64_t k, int64_t term) const { return (group * group_outputs + k) * terms() + term; }
  int64_t y_index(int64_t n, int64_t group, int64_t k, int64_t output) const {
    return (n * y.channels() + group * group_outputs + k) * windows.outputs() + output;
  }
  int64_t x_index(int64_t n, int64_t group, int64_t term, int64_t output) const {  // -1: padding
    const int64_t input = windows.input(term % windows.taps(), output);
    return input < 0 ? -1 : (n * x.channels() + group * group_inputs + term / windows.taps()) * x.spatial_size() + input;
  }
  template <class F> void for_each_sample_and_group(F f) const {
    for (int64_t n = 0; n < x.batch_size(); n++)
      for (int64_t group = 0; group < groups; group++) f(n, group);
  }
};

template <class T>
std::vector<T> convolve(const ConvolutionShapes& shapes, const std::vector<T>& x, const std::vector<T>& w) {
  std::vector<T> y(static_cast<size_t>(shapes.y.count()));
  shapes.for_each_sample_and_group([&](int64_t n, int64_t group) {
    MatrixProduct<T> product(shapes.group_outputs, shapes.windows.outputs(), shapes.terms());
    for (int64_t term = 0; term < shapes.terms(); term++) {
      for (int64_t k = 0; k < shapes.group_outputs; k++) product.left(k, term) = w[shapes.w_index(group, k, term)];
      for (int64_t output = 0; output < shapes.windows.outputs(); output++) {
        const int64_t input = shapes.x_index(n, group, term, output);
        product.right(term, output) = input < 0 ? T(0) : x[input];
      }
    }
    product.for_each([&](int64_t k, int64_t output, T sum) { y[shapes.y_index(n, group, k, output)] = sum; });
  });
  return y;
}

// dy is the gradient of y; returns that of x.
template <class T>
std::vector<T> convolve_backward_data(const ConvolutionShapes& shapes, const std::vector<T>& w, const std::vector<T>& dy) {
  std::vector<T> dx(static_cast<size_t>(shapes.x.count()));
  shapes.for_each_sample_and_group([&](int64_t n, int64_t group) {
    MatrixProduct<T> product(shapes.terms(), shapes.windows.outputs(), shapes.group_outputs);
    for (int64_t k = 0; k < shapes.group_outputs; k++) {
      for (int64_t term = 0; term < shapes.terms(); term++) product.left(term, k) = w[shapes.w_index(group, k, term)];
      for (int64_t output = 0; output < shapes.windows.outputs(); output++)
        product.right(k, output) = dy[shapes.y_index(n, group, k, output)];
    }
    product.for_each([&](int64_t term, int64_t output, T sum) {
      const int64_t input = shapes.x_index(n, group, term, output);
      if (input >= 0) dx[input] += sum;
    });
  });
  return dx;
}

// Likewise; returns the gradient of w.
template <class T>
std::vector<T> convolve_backward_filter(const ConvolutionShapes& shapes, const std::vector<T>& x, const std::vector<T>& dy) {
  std::vector<T> dw(static_cast<size_t>(shapes.w.count()));
  shapes.for_each_sample_and_group([&](int64_t n, int64_t group) {
    MatrixProduct<T> product(shapes.group_outputs, shapes.terms(), shapes.windows.outputs());
    for (int64_t output = 0; output < shapes.windows.outputs(); output++) {
      for (int64_t k = 0; k < shapes.group_outputs; k++) product.left(k, output) = dy[shapes.y_index(n, group, k, output)];
      for (int64_t term = 0; term < shapes.terms(); term++) {
        const int64_t input = shapes.x_index(n, group, term, output);
        product.right(output, term) = input < 0 ? T(0) : x[input];
      }
    }
    product.for_each([&](int64_t k, int64_t term, T sum) { dw[shapes.w_index(group, k, term)] += sum; });
  });
  return dw;
}

}  // namespace vgpu
