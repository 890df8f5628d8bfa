// cuBLAS's products of matrices.
#include "blas.h"
#include "matmul.h"

using namespace vgpu;

namespace {

// cublas_api.h: cublasComputeType_t from CUDA 11 on, cudaDataType_t before.
DataType accumulator_type(int compute, DataType result) {
  bool complex = result == DataType::Complex || result == DataType::DoubleComplex;
  switch (compute) {
    case 64:
    case 65: return DataType::Half;
    case 68:
    case 69:
    case 74:
    case 75:
    case 77: return complex ? DataType::Complex : DataType::Float;
    case 70:
    case 71: return complex ? DataType::DoubleComplex : DataType::Double;
    case 72:
    case 73: return DataType::Int32;
    default: return static_cast<DataType>(compute);
  }
}

struct Gemm {
  void* handle;
  Op op_a, op_b;
  int64_t rows, columns, depth;
  const void *alpha, *beta;
  DataType sums;  // and alpha's and beta's type
  Matrix a, b, c;

  Gemm(void* handle, int ta, int tb, int64_t m, int64_t n, int64_t k, const void* alpha, const void* beta, DataType sums,
       DataType a, int64_t lda, DataType b, int64_t ldb, DataType c, int64_t ldc)
      : handle(handle),
        op_a(Op(ta)),
        op_b(Op(tb)),
        rows(m),
        columns(n),
        depth(k),
        alpha(alpha),
        beta(beta),
        sums(sums),
        a(op_a == Op::None ? Matrix{a, m, k, lda} : Matrix{a, k, m, lda}),
        b(op_b == Op::None ? Matrix{b, k, n, ldb} : Matrix{b, n, k, ldb}),
        c{c, m, n, ldc} {}

  void check() const {
    if (ta_bad(op_a) || ta_bad(op_b)) throw InvalidValue();
    a.check(), b.check(), c.check();
  }
  static bool ta_bad(Op op) { return op < Op::None || op > Op::ConjugateTransposed; }

  void run(const void* at_a, const void* at_b, void* at_c) const {
    with_accumulator_type(sums, [&](auto tag) { run_in<typename decltype(tag)::type>(at_a, at_b, at_c); });
  }

 private:
  template <class T> void run_in(const void* at_a, const void* at_b, void* at_c) const {
    const T by = scalar<T>(handle, alpha, sums), keep = scalar<T>(handle, beta, sums);
    const int64_t terms = by == T(0) ? 0 : depth;  // then neither is looked at
    if (terms) a.check_read(at_a), b.check_read(at_b);
    if (keep != T(0)) c.check_read(at_c);
    c.check_write(at_c);
    MatrixProduct<T> product(rows, columns, terms);
    for (int64_t k = 0; k < terms; k++) {
      for (int64_t row = 0; row < rows; row++) product.left(row, k) = element<T>(a, at_a, op_a, row, k);
      for (int64_t column = 0; column < columns; column++) product.right(k, column) = element<T>(b, at_b, op_b, k, column);
    }
    product.each([&](int64_t row, int64_t column, T sum) {
      int64_t at = c.index(row, column);
      T made = by * sum;
      if (keep != T(0)) made += keep * load_element<T>(at_c, c.type, at);
      store_element(at_c, c.type, at, made);
    });
  }
};

const void* moved(const void* at, DataType type, int64_t elements) {
  return static_cast<const char*>(at) + elements * int64_t(size_of(type));
}
void* moved(void* at, DataType type, int64_t elements) { return static_cast<char*>(at) + elements * int64_t(size_of(type)); }

void one(const Gemm& p, const void* a, const void* b, void* c) { p.check(), p.run(a, b, c); }

void batched(const Gemm& p, const void* const* a, const void* const* b, void* const* c, int count) {
  p.check();
  for (const void* list : {static_cast<const void*>(a), static_cast<const void*>(b), static_cast<const void*>(c)})
    check_read(list, count * sizeof(void*));
  for (int k = 0; k < count; k++) p.run(a[k], b[k], c[k]);
}

void strided(const Gemm& p, const void* a, int64_t by_a, const void* b, int64_t by_b, void* c, int64_t by_c, int count) {
  p.check();
  for (int k = 0; k < count; k++)
    p.run(moved(a, p.a.type, k * by_a), moved(b, p.b.type, k * by_b), moved(c, p.c.type, k * by_c));
}

// An algorithm by its number is an auto-tuner's trial: its failure ends no stream, and saves it the check of what came out.
WhenDisabled trial(int algorithm) {
  constexpr int kDefault = -1, kDefaultTensorOp = 99;
  return algorithm == kDefault || algorithm == kDefaultTensorOp ? WhenDisabled::OnStream : WhenDisabled::Trial;
}

}  // namespace

#define PRODUCTS(letter, name, type)                                                                                           \
  API int cublas##letter##name(void* h, int ta, int tb, int m, int n, int k, void* alpha, void* a, int lda, void* b, int ldb,  \
                               void* beta, void* c, int ldc) {                                                                 \
    return run_fallback("cublas" #letter #name, [&] {                                                                          \
      one({h, ta, tb, m, n, k, alpha, beta, DataType::type, DataType::type, lda, DataType::type, ldb, DataType::type, ldc}, a, \
          b, c);                                                                                                               \
    });                                                                                                                        \
  }                                                                                                                            \
  API int cublas##letter##gemmBatched(void* h, int ta, int tb, int m, int n, int k, void* alpha, void** a, int lda, void** b,  \
                                      int ldb, void* beta, void** c, int ldc, int count) {                                     \
    return run_fallback("cublas" #letter "gemmBatched", [&] {                                                                  \
      batched(                                                                                                                 \
          {h, ta, tb, m, n, k, alpha, beta, DataType::type, DataType::type, lda, DataType::type, ldb, DataType::type, ldc}, a, \
          b, c, count);                                                                                                        \
    });                                                                                                                        \
  }                                                                                                                            \
  API int cublas##letter##gemmStridedBatched(void* h, int ta, int tb, int m, int n, int k, void* alpha, void* a, int lda,      \
                                             int64_t by_a, void* b, int ldb, int64_t by_b, void* beta, void* c, int ldc,       \
                                             int64_t by_c, int count) {                                                        \
    return run_fallback("cublas" #letter "gemmStridedBatched", [&] {                                                           \
      strided(                                                                                                                 \
          {h, ta, tb, m, n, k, alpha, beta, DataType::type, DataType::type, lda, DataType::type, ldb, DataType::type, ldc}, a, \
          by_a, b, by_b, c, by_c, count);                                                                                      \
    });                                                                                                                        \
  }

PRODUCTS(S, gemm_v2, Float)
PRODUCTS(D, gemm_v2, Double)
PRODUCTS(C, gemm_v2, Complex)
PRODUCTS(Z, gemm_v2, DoubleComplex)
PRODUCTS(H, gemm, Half)

API int cublasSgemmEx(void* h, int ta, int tb, int m, int n, int k, void* alpha, void* a, DataType type_a, int lda, void* b,
                      DataType type_b, int ldb, void* beta, void* c, DataType type_c, int ldc) {
  return run_fallback("cublasSgemmEx", [&] {
    one({h, ta, tb, m, n, k, alpha, beta, DataType::Float, type_a, lda, type_b, ldb, type_c, ldc}, a, b, c);
  });
}
API int cublasGemmEx(void* h, int ta, int tb, int m, int n, int k, void* alpha, void* a, DataType type_a, int lda, void* b,
                     DataType type_b, int ldb, void* beta, void* c, DataType type_c, int ldc, int compute, int algorithm) {
  auto run = [&] {
    one({h, ta, tb, m, n, k, alpha, beta, accumulator_type(compute, type_c), type_a, lda, type_b, ldb, type_c, ldc}, a, b, c);
  };
  return run_fallback("cublasGemmEx", run, trial(algorithm));
}
API int cublasGemmBatchedEx(void* h, int ta, int tb, int m, int n, int k, void* alpha, void** a, DataType type_a, int lda,
                            void** b, DataType type_b, int ldb, void* beta, void** c, DataType type_c, int ldc, int count,
                            int compute, int algorithm) {
  auto run = [&] {
    batched({h, ta, tb, m, n, k, alpha, beta, accumulator_type(compute, type_c), type_a, lda, type_b, ldb, type_c, ldc}, a, b,
            c, count);
  };
  return run_fallback("cublasGemmBatchedEx", run, trial(algorithm));
}
API int cublasGemmStridedBatchedEx(void* h, int ta, int tb, int m, int n, int k, void* alpha, void* a, DataType type_a, int lda,
                                   int64_t by_a, void* b, DataType type_b, int ldb, int64_t by_b, void* beta, void* c,
                                   DataType type_c, int ldc, int64_t by_c, int count, int compute, int algorithm) {
  auto run = [&] {
    strided({h, ta, tb, m, n, k, alpha, beta, accumulator_type(compute, type_c), type_a, lda, type_b, ldb, type_c, ldc}, a,
            by_a, b, by_b, c, by_c, count);
  };
  return run_fallback("cublasGemmStridedBatchedEx", run, trial(algorithm));
}
