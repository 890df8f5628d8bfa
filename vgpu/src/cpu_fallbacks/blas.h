// What the stand-ins of cuBLAS share: matrices lie column by column.
#pragma once
#include "data_types.h"

namespace vgpu {

enum class Op : int { AsIs = 0, Transposed = 1, Conjugate = 2 };  // cublas_api.h: cublasOperation_t

struct Matrix {
  Number type;
  int64_t rows, columns, step;  // as they lie there; elements from a column to the next

  void check() const {
    if (rows < 0 || columns < 0 || step < (rows > 1 ? rows : 1)) throw BadArguments();
  }
  void reads(const void* at) const { reads_columns(at, rows * size_of(type), step * size_of(type), columns); }
  void writes(void* at) const { writes_columns(at, rows * size_of(type), step * size_of(type), columns); }
  int64_t index(int64_t row, int64_t column) const { return column * step + row; }
};

// Element (row, column) of op(matrix).
template <class T> T element(const Matrix& of, const void* at, Op op, int64_t row, int64_t column) {
  if (op == Op::AsIs) return read_number<T>(at, of.type, of.index(row, column));
  T value = read_number<T>(at, of.type, of.index(column, row));
  if constexpr (kIsComplex<T>) return op == Op::Conjugate ? std::conj(value) : value;
  return value;
}

// Every n-th element of a vector, from its end where the step is negative.
struct Vector {
  Number type;
  int64_t count, step;

  int64_t index(int64_t k) const { return step < 0 ? (k - count + 1) * step : k * step; }
  uint64_t spread() const { return step < 0 ? -step : step; }
  void reads(const void* at) const { reads_columns(at, size_of(type), spread() * size_of(type), count > 0 ? count : 0); }
  void writes(void* at) const { writes_columns(at, size_of(type), spread() * size_of(type), count > 0 ? count : 0); }
};

bool scalars_on_device(void* handle);  // cublasSetPointerMode

// alpha, beta, or where a result goes: the host's or the device's memory, by the handle's mode.
template <class T> T scalar(void* handle, const void* at, Number type) {
  if (scalars_on_device(handle)) reads(at, size_of(type));
  return read_number<T>(at, type, 0);
}
template <class T> void put_scalar(void* handle, void* at, Number type, T value) {
  if (scalars_on_device(handle)) writes(at, size_of(type));
  write_number(at, type, 0, value);
}

}  // namespace vgpu
