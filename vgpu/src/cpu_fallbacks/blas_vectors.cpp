// cuBLAS's vectors: sums, and products of a matrix and a vector; and its triangular systems.
#include <cstring>
#include <mutex>
#include <unordered_map>

#include "blas.h"

using namespace vgpu;

namespace {

std::mutex modes_lock;
std::unordered_map<void*, int>& modes() {
  static auto* all = new std::unordered_map<void*, int>;
  return *all;
}

template <class T> T dot(Number type, int n, const void* x, int by_x, const void* y, int by_y, bool conjugate) {
  Vector vx{type, n, by_x}, vy{type, n, by_y};
  vx.reads(x), vy.reads(y);
  T sum = 0;
  for (int64_t k = 0; k < n; k++) {
    T one = read_number<T>(x, type, vx.index(k));
    if constexpr (kIsComplex<T>)
      if (conjugate) one = std::conj(one);
    sum += one * read_number<T>(y, type, vy.index(k));
  }
  return sum;
}

// y = a * x + keep * y
template <class T> void add(Number type, int n, T a, const void* x, int by_x, void* y, int by_y) {
  Vector vx{type, n, by_x}, vy{type, n, by_y};
  vx.reads(x), vy.reads(y), vy.writes(y);
  for (int64_t k = 0; k < n; k++) {
    T made = a * read_number<T>(x, type, vx.index(k)) + read_number<T>(y, type, vy.index(k));
    write_number(y, type, vy.index(k), made);
  }
}

template <class T> void scale(Number type, int n, T a, void* x, int by) {
  Vector v{type, n, by};
  v.reads(x), v.writes(x);
  for (int64_t k = 0; k < n; k++) write_number(x, type, v.index(k), a * read_number<T>(x, type, v.index(k)));
}

void copy(Number type, int n, const void* x, int by_x, void* y, int by_y) {
  Vector vx{type, n, by_x}, vy{type, n, by_y};
  vx.reads(x), vy.writes(y);
  const size_t size = size_of(type);
  for (int64_t k = 0; k < n; k++)
    std::memcpy(static_cast<char*>(y) + vy.index(k) * size, static_cast<const char*>(x) + vx.index(k) * size, size);
}

template <class T> void matrix_vector(Number type, int op, int m, int n, T alpha, const void* a, int step, const void* x,
                                      int by_x, T beta, void* y, int by_y) {
  const Matrix matrix{type, m, n, step};
  matrix.check();
  if (!by_x || !by_y || op < 0 || op > 2) throw BadArguments();
  const Vector vx{type, op ? m : n, by_x}, vy{type, op ? n : m, by_y};
  if (alpha != T(0)) matrix.reads(a), vx.reads(x);
  if (beta != T(0)) vy.reads(y);
  vy.writes(y);
  for (int64_t row = 0; row < vy.count; row++) {
    T sum = 0;
    for (int64_t k = 0; k < vx.count && alpha != T(0); k++)
      sum += element<T>(matrix, a, Op(op), row, k) * read_number<T>(x, type, vx.index(k));
    T made = alpha * sum;
    if (beta != T(0)) made += beta * read_number<T>(y, type, vy.index(row));
    write_number(y, type, vy.index(row), made);
  }
}

// Solves op(A) X = alpha B, or X op(A) = alpha B, in B's place.
struct Triangle {
  Number type;
  bool right, upper, unit;
  Op op;
  int64_t m, n, step_a, step_b;

  template <class T> void solve(T alpha, const void* a, void* b) const {
    const int64_t order = right ? n : m;
    const Matrix given{type, order, order, step_a}, made{type, m, n, step_b};
    given.check(), made.check();
    given.reads(a), made.reads(b), made.writes(b);
    // Of op(A), or of what stands on the other side turned round: forwards where it is lower.
    const bool forwards = (upper != (op != Op::AsIs)) == right;
    for (int64_t other = 0; other < (right ? m : n); other++)
      for (int64_t k = 0; k < order; k++) {
        const int64_t row = forwards ? k : order - 1 - k;
        T left = alpha * read_number<T>(b, type, place(made, row, other));
        for (int64_t j = 0; j < k; j++) {
          const int64_t known = forwards ? j : order - 1 - j;
          left -= factor<T>(given, a, row, known) * read_number<T>(b, type, place(made, known, other));
        }
        if (!unit) left /= factor<T>(given, a, row, row);
        write_number(b, type, place(made, row, other), left);
      }
  }

 private:
  int64_t place(const Matrix& b, int64_t row, int64_t other) const { return right ? b.index(other, row) : b.index(row, other); }
  template <class T> T factor(const Matrix& of, const void* a, int64_t row, int64_t column) const {
    return right ? element<T>(of, a, op, column, row) : element<T>(of, a, op, row, column);
  }
};

}  // namespace

namespace vgpu {

bool scalars_on_device(void* handle) {
  std::lock_guard<std::mutex> hold(modes_lock);
  auto found = modes().find(handle);
  return found != modes().end() && found->second == 1;
}

}  // namespace vgpu

API int cublasSetPointerMode_v2(void* handle, int mode) {
  std::lock_guard<std::mutex> hold(modes_lock);
  return modes()[handle] = mode, kSuccess;
}
API int cublasGetPointerMode_v2(void* handle, int* mode) { return *mode = scalars_on_device(handle), kSuccess; }

#define VECTORS(letter, T, number)                                                                                             \
  API int cublas##letter##axpy_v2(void* h, int n, void* a, void* x, int by_x, void* y, int by_y) {                             \
    return stand_in("cublas" #letter "axpy_v2",                                                                                \
                    [&] { add<T>(Number::number, n, scalar<T>(h, a, Number::number), x, by_x, y, by_y); });                    \
  }                                                                                                                            \
  API int cublas##letter##scal_v2(void* h, int n, void* a, void* x, int by) {                                                  \
    return stand_in("cublas" #letter "scal_v2", [&] { scale<T>(Number::number, n, scalar<T>(h, a, Number::number), x, by); }); \
  }                                                                                                                            \
  API int cublas##letter##copy_v2(void*, int n, void* x, int by_x, void* y, int by_y) {                                        \
    return stand_in("cublas" #letter "copy_v2", [&] { copy(Number::number, n, x, by_x, y, by_y); });                           \
  }                                                                                                                            \
  API int cublas##letter##gemv_v2(void* h, int op, int m, int n, void* alpha, void* a, int step, void* x, int by_x,            \
                                  void* beta, void* y, int by_y) {                                                             \
    return stand_in("cublas" #letter "gemv_v2", [&] {                                                                          \
      matrix_vector<T>(Number::number, op, m, n, scalar<T>(h, alpha, Number::number), a, step, x, by_x,                        \
                       scalar<T>(h, beta, Number::number), y, by_y);                                                           \
    });                                                                                                                        \
  }                                                                                                                            \
  API int cublas##letter##trsm_v2(void* h, int side, int fill, int op, int unit, int m, int n, void* alpha, void* a,           \
                                  int step_a, void* b, int step_b) {                                                           \
    return stand_in("cublas" #letter "trsm_v2", [&] {                                                                          \
      Triangle one{Number::number, side == 1, fill == 1, unit == 1, Op(op), m, n, step_a, step_b};                             \
      one.solve<T>(scalar<T>(h, alpha, Number::number), a, b);                                                                 \
    });                                                                                                                        \
  }                                                                                                                            \
  API int cublas##letter##trsmBatched(void* h, int side, int fill, int op, int unit, int m, int n, void* alpha, void** a,      \
                                      int step_a, void** b, int step_b, int count) {                                           \
    return stand_in("cublas" #letter "trsmBatched", [&] {                                                                      \
      Triangle one{Number::number, side == 1, fill == 1, unit == 1, Op(op), m, n, step_a, step_b};                             \
      reads(a, count * sizeof *a), reads(b, count * sizeof *b);                                                                \
      for (int k = 0; k < count; k++) one.solve<T>(scalar<T>(h, alpha, Number::number), a[k], b[k]);                           \
    });                                                                                                                        \
  }

#define DOT(name, T, number, conjugate)                                                                                     \
  API int cublas##name##_v2(void* h, int n, void* x, int by_x, void* y, int by_y, void* to) {                               \
    return stand_in("cublas" #name "_v2",                                                                                   \
                    [&] { put_scalar<T>(h, to, Number::number, dot<T>(Number::number, n, x, by_x, y, by_y, conjugate)); }); \
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
