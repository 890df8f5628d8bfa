// cuBLAS's vectors: sums, and products of a matrix and a vector; and its triangular systems.
#include <cstring>

#include "blas.h"

using namespace vgpu;

namespace {

template <class T> T dot(DataType type, int n, const void* x, int by_x, const void* y, int by_y, bool conjugate) {
  Vector vx{type, n, by_x}, vy{type, n, by_y};
  vx.check_read(x), vy.check_read(y);
  T sum = 0;
  for (int64_t k = 0; k < n; k++) {
    T one = load_element<T>(x, type, vx.index(k));
    if constexpr (kIsComplex<T>)
      if (conjugate) one = std::conj(one);
    sum += one * load_element<T>(y, type, vy.index(k));
  }
  return sum;
}

// y = a * x + keep * y
template <class T> void add(DataType type, int n, T a, const void* x, int by_x, void* y, int by_y) {
  Vector vx{type, n, by_x}, vy{type, n, by_y};
  vx.check_read(x), vy.check_read(y), vy.check_write(y);
  for (int64_t k = 0; k < n; k++) {
    T made = a * load_element<T>(x, type, vx.index(k)) + load_element<T>(y, type, vy.index(k));
    store_element(y, type, vy.index(k), made);
  }
}

template <class T> void scale(DataType type, int n, T a, void* x, int by) {
  Vector v{type, n, by};
  v.check_read(x), v.check_write(x);
  for (int64_t k = 0; k < n; k++) store_element(x, type, v.index(k), a * load_element<T>(x, type, v.index(k)));
}

void copy(DataType type, int n, const void* x, int by_x, void* y, int by_y) {
  Vector vx{type, n, by_x}, vy{type, n, by_y};
  vx.check_read(x), vy.check_write(y);
  const size_t size = size_of(type);
  for (int64_t k = 0; k < n; k++)
    std::memcpy(static_cast<char*>(y) + vy.index(k) * size, static_cast<const char*>(x) + vx.index(k) * size, size);
}

template <class T> void matrix_vector(DataType type, int op, int m, int n, T alpha, const void* a, int lda, const void* x,
                                      int by_x, T beta, void* y, int by_y) {
  const Matrix matrix{type, m, n, lda};
  matrix.check();
  if (!by_x || !by_y || op < 0 || op > 2) throw InvalidValue();
  const Vector vx{type, op ? m : n, by_x}, vy{type, op ? n : m, by_y};
  if (alpha != T(0)) matrix.check_read(a), vx.check_read(x);
  if (beta != T(0)) vy.check_read(y);
  vy.check_write(y);
  for (int64_t row = 0; row < vy.count; row++) {
    T sum = 0;
    for (int64_t k = 0; k < vx.count && alpha != T(0); k++)
      sum += element<T>(matrix, a, Op(op), row, k) * load_element<T>(x, type, vx.index(k));
    T made = alpha * sum;
    if (beta != T(0)) made += beta * load_element<T>(y, type, vy.index(row));
    store_element(y, type, vy.index(row), made);
  }
}

// Solves op(A) X = alpha B, or X op(A) = alpha B, in B's place.
struct Triangle {
  DataType type;
  bool right, upper, unit;
  Op op;
  int64_t m, n, lda, ldb;

  template <class T> void solve(T alpha, const void* a, void* b) const {
    const int64_t order = right ? n : m;
    const Matrix given{type, order, order, lda}, made{type, m, n, ldb};
    given.check(), made.check();
    given.check_read(a), made.check_read(b), made.check_write(b);
    // Of op(A), or of what stands on the other side turned round: forwards where it is lower.
    const bool forwards = (upper != (op != Op::None)) == right;
    for (int64_t other = 0; other < (right ? m : n); other++)
      for (int64_t k = 0; k < order; k++) {
        const int64_t row = forwards ? k : order - 1 - k;
        T left = alpha * load_element<T>(b, type, place(made, row, other));
        for (int64_t j = 0; j < k; j++) {
          const int64_t known = forwards ? j : order - 1 - j;
          left -= factor<T>(given, a, row, known) * load_element<T>(b, type, place(made, known, other));
        }
        if (!unit) left /= factor<T>(given, a, row, row);
        store_element(b, type, place(made, row, other), left);
      }
  }

 private:
  int64_t place(const Matrix& b, int64_t row, int64_t other) const { return right ? b.index(other, row) : b.index(row, other); }
  template <class T> T factor(const Matrix& of, const void* a, int64_t row, int64_t column) const {
    return right ? element<T>(of, a, op, column, row) : element<T>(of, a, op, row, column);
  }
};

}  // namespace

#define VECTORS(letter, T, number)                                                                                             \
  API int cublas##letter##axpy_v2(void* h, int n, void* alpha, void* x, int by_x, void* y, int by_y) {                         \
    return run_fallback_on("cublas" #letter "axpy_v2", stream_of_handle(h), [&] {                                              \
      const Scalar a(h, alpha, DataType::number);                                                                              \
      return [=] { add<T>(DataType::number, n, a.load<T>(), x, by_x, y, by_y); };                                              \
    });                                                                                                                        \
  }                                                                                                                            \
  API int cublas##letter##scal_v2(void* h, int n, void* alpha, void* x, int by) {                                              \
    return run_fallback_on("cublas" #letter "scal_v2", stream_of_handle(h), [&] {                                              \
      const Scalar a(h, alpha, DataType::number);                                                                              \
      return [=] { scale<T>(DataType::number, n, a.load<T>(), x, by); };                                                       \
    });                                                                                                                        \
  }                                                                                                                            \
  API int cublas##letter##copy_v2(void* h, int n, void* x, int by_x, void* y, int by_y) {                                      \
    return run_fallback_on("cublas" #letter "copy_v2", stream_of_handle(h),                                                    \
                           [&] { return [=] { copy(DataType::number, n, x, by_x, y, by_y); }; });                              \
  }                                                                                                                            \
  API int cublas##letter##gemv_v2(void* h, int op, int m, int n, void* alpha, void* a, int lda, void* x, int by_x, void* beta, \
                                  void* y, int by_y) {                                                                         \
    return run_fallback_on("cublas" #letter "gemv_v2", stream_of_handle(h), [&] {                                              \
      const Scalar by(h, alpha, DataType::number), keep(h, beta, DataType::number);                                            \
      return [=] { matrix_vector<T>(DataType::number, op, m, n, by.load<T>(), a, lda, x, by_x, keep.load<T>(), y, by_y); };    \
    });                                                                                                                        \
  }                                                                                                                            \
  API int cublas##letter##trsm_v2(void* h, int side, int fill, int op, int unit, int m, int n, void* alpha, void* a, int lda,  \
                                  void* b, int ldb) {                                                                          \
    return run_fallback_on("cublas" #letter "trsm_v2", stream_of_handle(h), [&] {                                              \
      const Triangle one{DataType::number, side == 1, fill == 1, unit == 1, Op(op), m, n, lda, ldb};                           \
      const Scalar by(h, alpha, DataType::number);                                                                             \
      return [=] { one.solve<T>(by.load<T>(), a, b); };                                                                        \
    });                                                                                                                        \
  }                                                                                                                            \
  API int cublas##letter##trsmBatched(void* h, int side, int fill, int op, int unit, int m, int n, void* alpha, void** a,      \
                                      int lda, void** b, int ldb, int count) {                                                 \
    return run_fallback_on("cublas" #letter "trsmBatched", stream_of_handle(h), [&] {                                          \
      const Triangle one{DataType::number, side == 1, fill == 1, unit == 1, Op(op), m, n, lda, ldb};                           \
      const Scalar by(h, alpha, DataType::number);                                                                             \
      return [=] {                                                                                                             \
        check_read(a, count * sizeof *a), check_read(b, count * sizeof *b);                                                    \
        for (int k = 0; k < count; k++) one.solve<T>(by.load<T>(), a[k], b[k]);                                                \
      };                                                                                                                       \
    });                                                                                                                        \
  }

#define DOT(name, T, number, conjugate)                                                                   \
  API int cublas##name##_v2(void* h, int n, void* x, int by_x, void* y, int by_y, void* to) {             \
    return run_fallback("cublas" #name "_v2", [&] {                                                       \
      write_scalar<T>(h, to, DataType::number, dot<T>(DataType::number, n, x, by_x, y, by_y, conjugate)); \
    });                                                                                                   \
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
