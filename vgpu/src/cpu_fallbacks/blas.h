// Matrices, vectors and scalars in device memory, as the CPU fallbacks of cuBLAS use them. Matrices are column-major.
#pragma once
#include <cstring>

#include "data_types.h"
#include "library_handles.h"

namespace vgpu {

enum class Op : int { None = 0, Transposed = 1, ConjugateTransposed = 2 };  // cublas_api.h: cublasOperation_t

struct Matrix {
  DataType type;
  int64_t rows, columns, leading_dimension;  // as stored, before the operation `op` is applied

  void check() const {
    if (rows < 0 || columns < 0 || leading_dimension < (rows > 1 ? rows : 1)) throw InvalidValue();
  }
  void check_read(const void* data) const {
    check_read_strided(data, rows * size_of(type), leading_dimension * size_of(type), columns);
  }
  void check_write(void* data) const {
    check_write_strided(data, rows * size_of(type), leading_dimension * size_of(type), columns);
  }
  int64_t index(int64_t row, int64_t column) const { return column * leading_dimension + row; }
};

// Element (row, column) of op(matrix).
template <class T> T element(const Matrix& matrix, const void* data, Op op, int64_t row, int64_t column) {
  if (op == Op::None) return load_element<T>(data, matrix.type, matrix.index(row, column));
  T value = load_element<T>(data, matrix.type, matrix.index(column, row));
  if constexpr (kIsComplex<T>) return op == Op::ConjugateTransposed ? std::conj(value) : value;
  return value;
}

// A strided vector. If the increment is negative, the first element is the last one in memory, as in BLAS.
struct Vector {
  DataType type;
  int64_t count, increment;

  int64_t index(int64_t k) const { return increment < 0 ? (k - count + 1) * increment : k * increment; }
  uint64_t stride() const { return increment < 0 ? -increment : increment; }
  void check_read(const void* data) const {
    check_read_strided(data, size_of(type), stride() * size_of(type), count > 0 ? count : 0);
  }
  void check_write(void* data) const {
    check_write_strided(data, size_of(type), stride() * size_of(type), count > 0 ? count : 0);
  }
};

// alpha or beta: a copy of the host's value, or its device address, as the handle's pointer mode says.
class Scalar {
 public:
  Scalar(void* handle, const void* data, DataType type) : Scalar(scalars_on_device(handle), data, type) {}
  Scalar(bool on_device, const void* data, DataType type) : type_(type) {
    if (!data) throw InvalidValue();
    if (on_device) device_address_ = data;
    else std::memcpy(host_copy_, data, size_of(type));
  }
  template <class T> T load() const {
    if (device_address_) check_read(device_address_, size_of(type_));
    return load_element<T>(device_address_ ? device_address_ : host_copy_, type_, 0);
  }

 private:
  DataType type_;
  const void* device_address_ = nullptr;
  alignas(16) char host_copy_[16] = {};
};

// Writes a result to host or device memory, as the handle's pointer mode says.
template <class T> void write_scalar(void* handle, void* data, DataType type, T value) {
  if (scalars_on_device(handle)) check_write(data, size_of(type));
  store_element(data, type, 0, value);
}

}  // namespace vgpu
