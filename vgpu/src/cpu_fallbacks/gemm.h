// D = alpha op(A) op(B) + beta C, and the epilogue that is applied to each element of D before it is stored.
#pragma once
#include <algorithm>

#include "arithmetic/elementary.h"
#include "blas.h"
#include "matmul.h"

namespace vgpu {

DataType accumulator_type(int compute, DataType result);  // compute: cublasComputeType_t; before CUDA 11 cudaDataType_t

// Adds a bias, then applies ReLU and GELU (cublasLt.h: cublasLtEpilogue_t).
struct Epilogue {
  const void* bias = nullptr;  // an element for each row of D
  DataType bias_type = DataType::Float;
  bool relu = false, gelu = false;

  template <class T> T operator()(int64_t row, T value) const {
    if (bias) value += load_element<T>(bias, bias_type, row);
    if constexpr (!kIsComplex<T>) {
      if (relu) value = std::max(value, T(0));
      if (gelu) value = T(gelu_value(double(value)));
    }
    return value;
  }

 private:
  static double gelu_value(double x) { return 0.5 * x * (1 + tanh_of(0.7978845608028654 * (x + 0.044715 * x * x * x))); }
};

struct Gemm {
  Op op_a, op_b;
  int64_t depth;
  DataType accumulator;
  Scalar alpha, beta;
  Matrix a, b, c, d;

  void check() const {
    if (is_invalid(op_a) || is_invalid(op_b)) throw InvalidValue();
    a.check(), b.check(), c.check(), d.check();
  }
  void run(const void* at_a, const void* at_b, const void* at_c, void* at_d, const Epilogue& epilogue = {}) const {
    with_accumulator_type(accumulator,
                          [&](auto tag) { run_with_type<typename decltype(tag)::type>(at_a, at_b, at_c, at_d, epilogue); });
  }

 private:
  static bool is_invalid(Op op) { return op < Op::None || op > Op::ConjugateTransposed; }

  template <class T>
  void run_with_type(const void* at_a, const void* at_b, const void* at_c, void* at_d, const Epilogue& epilogue) const {
    const T a_b_scale = alpha.load<T>(), c_scale = beta.load<T>();
    const int64_t terms = a_b_scale == T(0) ? 0 : depth;  // if alpha is 0, A and B are not read, as in BLAS
    if (terms) a.check_read(at_a), b.check_read(at_b);
    if (c_scale != T(0)) c.check_read(at_c);
    if (epilogue.bias) check_read(epilogue.bias, d.rows * size_of(epilogue.bias_type));
    d.check_write(at_d);
    MatrixProduct<T> product(d.rows, d.columns, terms);
    for (int64_t k = 0; k < terms; k++) {
      for (int64_t row = 0; row < d.rows; row++) product.left(row, k) = element<T>(a, at_a, op_a, row, k);
      for (int64_t column = 0; column < d.columns; column++) product.right(k, column) = element<T>(b, at_b, op_b, k, column);
    }
    product.for_each([&](int64_t row, int64_t column, T sum) {
      T value = a_b_scale * sum;
      if (c_scale != T(0)) value += c_scale * load_element<T>(at_c, c.type, c.index(row, column));
      store_element(at_d, d.type, d.index(row, column), epilogue(row, value));
    });
  }
};

inline const void* offset_by_elements(const void* data, DataType type, int64_t elements) {
  return static_cast<const char*>(data) + elements * int64_t(size_of(type));
}
inline void* offset_by_elements(void* data, DataType type, int64_t elements) {
  return static_cast<char*>(data) + elements * int64_t(size_of(type));
}

}  // namespace vgpu
