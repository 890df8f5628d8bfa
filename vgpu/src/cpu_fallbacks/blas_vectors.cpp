// CPU fallbacks of cuBLAS's vector operations, matrix-vector products and triangular solves (trsm).
#include <cstring>

#include "blas.h"

using namespace vgpu;

namespace {

template <class T> T dot(DataType type, int n, const void* x, int incx, const void* y, int incy, bool conjugate) {
  Vector vector_x{type, n, incx}, vector_y{type, n, incy};
  vector_x.check_read(x), vector_y.check_read(y);
  T sum = 0;
  for (int64_t k = 0; k < n; k++) {
    T factor_x = load_element<T>(x, type, vector_x.index(k));
    if constexpr (kIsComplex<T>)
      if (conjugate) factor_x = std::conj(factor_x);
    sum += factor_x * load_element<T>(y, type, vector_y.index(k));
  }
  return sum;
}

// y = a * x + y
template <class T> void add(DataType type, int n, T a, const void* x, int incx, void* y, int incy) {
  Vector vector_x{type, n, incx}, vector_y{type, n, incy};
  vector_x.check_read(x), vector_y.check_read(y), vector_y.check_write(y);
  for (int64_t k = 0; k < n; k++) {
    T sum = a * load_element<T>(x, type, vector_x.index(k)) + load_element<T>(y, type, vector_y.index(k));
    store_element(y, type, vector_y.index(k), sum);
  }
}

template <class T> void scale(DataType type, int n, T a, void* x, int incx) {
  Vector vector{type, n, incx};
  vector.check_read(x), vector.check_write(x);
  for (int64_t k = 0; k < n; k++) store_element(x, type, vector.index(k), a * load_element<T>(x, type, vector.index(k)));
}

void copy(DataType type, int n, const void* x, int incx, void* y, int incy) {
  Vector vector_x{type, n, incx}, vector_y{type, n, incy};
  vector_x.check_read(x), vector_y.check_write(y);
  const size_t size = size_of(type);
  for (int64_t k = 0; k < n; k++)
    std::memcpy(static_cast<char*>(y) + vector_y.index(k) * size, static_cast<const char*>(x) + vector_x.index(k) * size, size);
}

template <class T> void matrix_vector(DataType type, int op, int m, int n, T alpha, const void* a, int lda, const void* x,
                                      int incx, T beta, void* y, int incy) {
  const Matrix matrix{type, m, n, lda};
  matrix.check();
  if (!incx || !incy || op < 0 || op > 2) throw InvalidValue();
  const Vector vector_x{type, op ? m : n, incx}, vector_y{type, op ? n : m, incy};
  if (alpha != T(0)) matrix.check_read(a), vector_x.check_read(x);
  if (beta != T(0)) vector_y.check_read(y);
  vector_y.check_write(y);
  for (int64_t row = 0; row < vector_y.count; row++) {
    T sum = 0;
    for (int64_t k = 0; k < vector_x.count && alpha != T(0); k++)
      sum += element<T>(matrix, a, Op(op), row, k) * load_element<T>(x, type, vector_x.index(k));
    T result = alpha * sum;
    if (beta != T(0)) result += beta * load_element<T>(y, type, vector_y.index(row));
    store_element(y, type, vector_y.index(row), result);
  }
}

// The system op(A) X = alpha B, or X op(A) = alpha B if `right`, with a triangular A; the solution X overwrites B.
struct TriangularSystem {
  DataType type;
  bool right, upper, unit;
  Op op;
  int64_t m, n, lda, ldb;

  template <class T> void solve(T alpha, const void* a, void* b) const {
    const int64_t order = right ? n : m;
    const Matrix matrix{type, order, order, lda}, solution{type, m, n, ldb};
    matrix.check(), solution.check();
    matrix.check_read(a), solution.check_read(b), solution.check_write(b);
    // Substitution runs forwards if op(A), transposed if A is on the right, is lower triangular.
    const bool forwards = (upper != (op != Op::None)) == right;
    for (int64_t column = 0; column < (right ? m : n); column++)
      for (int64_t k = 0; k < order; k++) {
        const int64_t row = forwards ? k : order - 1 - k;
        T value = alpha * load_element<T>(b, type, solution_index(solution, row, column));
        for (int64_t j = 0; j < k; j++) {
          const int64_t solved_row = forwards ? j : order - 1 - j;
          value -=
              factor<T>(matrix, a, row, solved_row) * load_element<T>(b, type, solution_index(solution, solved_row, column));
        }
        if (!unit) value /= factor<T>(matrix, a, row, row);
        store_element(b, type, solution_index(solution, row, column), value);
      }
  }

 private:
  int64_t solution_index(const Matrix& b, int64_t row, int64_t column) const {
    return right ? b.index(column, row) : b.index(row, column);
  }
  template <class T> T factor(const Matrix& matrix, const void* a, int64_t row, int64_t column) const {
    return right ? element<T>(matrix, a, op, column, row) : element<T>(matrix, a, op, row, column);
  }
};

}  // namespace

#define VECTORS(letter, T, number)                                                                                             \
  API int cublas##letter##axpy_v2(void* h, int n, void* alpha, void* x, int incx, void* y, int incy) {                         \
    return run_fallback_on_stream("cublas" #letter "axpy_v2", stream_of_handle(h), [&] {                                       \
      const Scalar a(h, alpha, DataType::number);                                                                              \
      return [=] { add<T>(DataType::number, n, a.load<T>(), x, incx, y, incy); };                                              \
    });                                                                                                                        \
  }                                                                                                                            \
  API int cublas##letter##scal_v2(void* h, int n, void* alpha, void* x, int incx) {                                            \
    return run_fallback_on_stream("cublas" #letter "scal_v2", stream_of_handle(h), [&] {                                       \
      const Scalar a(h, alpha, DataType::number);                                                                              \
      return [=] { scale<T>(DataType::number, n, a.load<T>(), x, incx); };                                                     \
    });                                                                                                                        \
  }                                                                                                                            \
  API int cublas##letter##copy_v2(void* h, int n, void* x, int incx, void* y, int incy) {                                      \
    return run_fallback_on_stream("cublas" #letter "copy_v2", stream_of_handle(h),                                             \
                                  [&] { return [=] { copy(DataType::number, n, x, incx, y, incy); }; });                       \
  }                                                                                                                            \
  API int cublas##letter##gemv_v2(void* h, int op, int m, int n, void* alpha, void* a, int lda, void* x, int incx, void* beta, \
                                  void* y, int incy) {                                                                         \
    return run_fallback_on_stream("cublas" #letter "gemv_v2", stream_of_handle(h), [&] {                                       \
      const Scalar a_scale(h, alpha, DataType::number), y_scale(h, beta, DataType::number);                                    \
      return [=] {                                                                                                             \
        matrix_vector<T>(DataType::number, op, m, n, a_scale.load<T>(), a, lda, x, incx, y_scale.load<T>(), y, incy);          \
      };                                                                                                                       \
    });                                                                                                                        \
  }                                                                                                                            \
  API int cublas##letter##trsm_v2(void* h, int side, int fill, int op, int unit, int m, int n, void* alpha, void* a, int lda,  \
                                  void* b, int ldb) {                                                                          \
    return run_fallback_on_stream("cublas" #letter "trsm_v2", stream_of_handle(h), [&] {                                       \
      const TriangularSystem system{DataType::number, side == 1, fill == 1, unit == 1, Op(op), m, n, lda, ldb};                \
      const Scalar scale(h, alpha, DataType::number);                                                                          \
      return [=] { system.solve<T>(scale.load<T>(), a, b); };                                                                  \
    });                                                                                                                        \
  }                                                                                                                            \
  API int cublas##letter##trsmBatched(void* h, int side, int fill, int op, int unit, int m, int n, void* alpha, void** a,      \
                                      int lda, void** b, int ldb, int count) {                                                 \
    return run_fallback_on_stream("cublas" #letter "trsmBatched", stream_of_handle(h), [&] {                                   \
      const TriangularSystem system{DataType::number, side == 1, fill == 1, unit == 1, Op(op), m, n, lda, ldb};                \
      const Scalar scale(h, alpha, DataType::number);                                                                          \
      return [=] {                                                                                                             \
        check_read(a, count * sizeof *a), check_read(b, count * sizeof *b);                                                    \
        for (int k = 0; k < count; k++) system.solve<T>(scale.load<T>(), a[k], b[k]);                                          \
      };                                                                                                                       \
    });                                                                                                                        \
  }

#define DOT(name, T, number, conjugate)                                                                       \
  API int cublas##name##_v2(void* h, int n, void* x, int incx, void* y, int incy, void* result) {             \
    return run_fallback("cublas" #name "_v2", [&] {                                                           \
      write_scalar<T>(h, result, DataType::number, dot<T>(DataType::number, n, x, incx, y, incy, conjugate)); \
    });                                                                                                       \
  }

VECTORS(S, float, Float)
VECTORS(D, double, Double)
VECTORS(C, std::complex<float>, Complex)
VECTORS(Z, std::complex<double>, DoubleComplex)
DOT(Sdot, float, Float, false)
DOT(Ddot, double, Double, false)
DOT(Cdotu, std::complex<float>, Complex, false)
DOT(Cdotc, std::complex<float>, Complex, true)
DOT(Zdotu, std::complex<double>, DoubleComplex, false)
DOT(Zdotc, std::complex<double>, DoubleComplex, true)
