// What the CPU fallbacks of cuBLAS share: matrices and vectors in device memory. Matrices are column-major.
#pragma once
#include <cstring>

#include "data_types.h"

namespace vgpu {

enum class Op : int { None = 0, Transposed = 1, ConjugateTransposed = 2 };  // cublas_api.h: cublasOperation_t

struct Matrix {
  DataType type;
  int64_t rows, columns, leading_dimension;  // as stored, before the operation `op` is applied

  void check() const {
    if (rows < 0 || columns < 0 || leading_dimension < (rows > 1 ? rows : 1)) throw InvalidValue();
  }
  void check_read(const void* at) const {
    check_read_strided(at, rows * size_of(type), leading_dimension * size_of(type), columns);
  }
  void check_write(void* at) const {
    check_write_strided(at, rows * size_of(type), leading_dimension * size_of(type), columns);
  }
  int64_t index(int64_t row, int64_t column) const { return column * leading_dimension + row; }
};

// Element (row, column) of op(matrix).
template <class T> T element(const Matrix& of, const void* at, Op op, int64_t row, int64_t column) {
  if (op == Op::None) return load_element<T>(at, of.type, of.index(row, column));
  T value = load_element<T>(at, of.type, of.index(column, row));
  if constexpr (kIsComplex<T>) return op == Op::ConjugateTransposed ? std::conj(value) : value;
  return value;
}

// Every n-th element of a vector, from its end where the step is negative.
struct Vector {
  DataType type;
  int64_t count, increment;

  int64_t index(int64_t k) const { return increment < 0 ? (k - count + 1) * increment : k * increment; }
  uint64_t spread() const { return increment < 0 ? -increment : increment; }
  void check_read(const void* at) const {
    check_read_strided(at, size_of(type), spread() * size_of(type), count > 0 ? count : 0);
  }
  void check_write(void* at) const { check_write_strided(at, size_of(type), spread() * size_of(type), count > 0 ? count : 0); }
};

bool scalars_on_device(void* handle);  // cublasSetPointerMode
void* stream_of_handle(void* handle);  // cublasSetStream

// alpha or beta: a copy of the host's, or where the device has it, by the handle's mode.
class Scalar {
 public:
  Scalar(void* handle, const void* at, DataType type) : Scalar(scalars_on_device(handle), at, type) {}
  Scalar(bool on_device, const void* at, DataType type) : type_(type) {
    if (!at) throw InvalidValue();
    if (on_device) on_device_ = at;
    else std::memcpy(copy_, at, size_of(type));
  }
  template <class T> T load() const {
    if (on_device_) check_read(on_device_, size_of(type_));
    return load_element<T>(on_device_ ? on_device_ : copy_, type_, 0);
  }

 private:
  DataType type_;
  const void* on_device_ = nullptr;
  alignas(16) char copy_[16] = {};
};

// Where a result goes: the host's or the device's memory, likewise.
template <class T> void write_scalar(void* handle, void* at, DataType type, T value) {
  if (scalars_on_device(handle)) check_write(at, size_of(type));
  store_element(at, type, 0, value);
}

}  // namespace vgpu
