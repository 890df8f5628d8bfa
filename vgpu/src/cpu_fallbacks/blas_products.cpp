// cuBLAS's products of matrices.
#include "gemm.h"

using namespace vgpu;

namespace {

// C in its own place.
Gemm gemm(void* handle, int ta, int tb, int64_t m, int64_t n, int64_t k, const void* alpha, const void* beta, DataType sums,
          DataType a, int64_t lda, DataType b, int64_t ldb, DataType c, int64_t ldc) {
  const Op op_a = Op(ta), op_b = Op(tb);
  const Matrix left = op_a == Op::None ? Matrix{a, m, k, lda} : Matrix{a, k, m, lda};
  const Matrix right = op_b == Op::None ? Matrix{b, k, n, ldb} : Matrix{b, n, k, ldb};
  const Matrix result{c, m, n, ldc};
  return {op_a, op_b, k, sums, Scalar(handle, alpha, sums), Scalar(handle, beta, sums), left, right, result, result};
}

Operation one(const Gemm& p, const void* a, const void* b, void* c) {
  p.check();
  return [=] { p.run(a, b, c, c); };
}

Operation batched(const Gemm& p, const void* const* a, const void* const* b, void* const* c, int count) {
  p.check();
  return [=] {
    for (const void* list : {static_cast<const void*>(a), static_cast<const void*>(b), static_cast<const void*>(c)})
      check_read(list, count * sizeof(void*));
    for (int k = 0; k < count; k++) p.run(a[k], b[k], c[k], c[k]);
  };
}

Operation strided(const Gemm& p, const void* a, int64_t by_a, const void* b, int64_t by_b, void* c, int64_t by_c, int count) {
  p.check();
  return [=] {
    for (int k = 0; k < count; k++) {
      void* at = moved(c, p.c.type, k * by_c);
      p.run(moved(a, p.a.type, k * by_a), moved(b, p.b.type, k * by_b), at, at);
    }
  };
}

// An algorithm by its number is an auto-tuner's trial: its failure ends no stream, and saves it the check of what came out.
WhenDisabled trial(int algorithm) {
  constexpr int kDefault = -1, kDefaultTensorOp = 99;
  return algorithm == kDefault || algorithm == kDefaultTensorOp ? WhenDisabled::OnStream : WhenDisabled::Trial;
}

}  // namespace

namespace vgpu {

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

}  // namespace vgpu

#define PRODUCTS(letter, name, type)                                                                                          \
  API int cublas##letter##name(void* h, int ta, int tb, int m, int n, int k, void* alpha, void* a, int lda, void* b, int ldb, \
                               void* beta, void* c, int ldc) {                                                                \
    return run_fallback_on("cublas" #letter #name, stream_of_handle(h), [&] {                                                 \
      return one(gemm(h, ta, tb, m, n, k, alpha, beta, DataType::type, DataType::type, lda, DataType::type, ldb,              \
                      DataType::type, ldc),                                                                                   \
                 a, b, c);                                                                                                    \
    });                                                                                                                       \
  }                                                                                                                           \
  API int cublas##letter##gemmBatched(void* h, int ta, int tb, int m, int n, int k, void* alpha, void** a, int lda, void** b, \
                                      int ldb, void* beta, void** c, int ldc, int count) {                                    \
    return run_fallback_on("cublas" #letter "gemmBatched", stream_of_handle(h), [&] {                                         \
      return batched(gemm(h, ta, tb, m, n, k, alpha, beta, DataType::type, DataType::type, lda, DataType::type, ldb,          \
                          DataType::type, ldc),                                                                               \
                     a, b, c, count);                                                                                         \
    });                                                                                                                       \
  }                                                                                                                           \
  API int cublas##letter##gemmStridedBatched(void* h, int ta, int tb, int m, int n, int k, void* alpha, void* a, int lda,     \
                                             int64_t by_a, void* b, int ldb, int64_t by_b, void* beta, void* c, int ldc,      \
                                             int64_t by_c, int count) {                                                       \
    return run_fallback_on("cublas" #letter "gemmStridedBatched", stream_of_handle(h), [&] {                                  \
      return strided(gemm(h, ta, tb, m, n, k, alpha, beta, DataType::type, DataType::type, lda, DataType::type, ldb,          \
                          DataType::type, ldc),                                                                               \
                     a, by_a, b, by_b, c, by_c, count);                                                                       \
    });                                                                                                                       \
  }

PRODUCTS(S, gemm_v2, Float)
PRODUCTS(D, gemm_v2, Double)
PRODUCTS(C, gemm_v2, Complex)
PRODUCTS(Z, gemm_v2, DoubleComplex)
PRODUCTS(H, gemm, Half)

API int cublasSgemmEx(void* h, int ta, int tb, int m, int n, int k, void* alpha, void* a, DataType type_a, int lda, void* b,
                      DataType type_b, int ldb, void* beta, void* c, DataType type_c, int ldc) {
  return run_fallback_on("cublasSgemmEx", stream_of_handle(h), [&] {
    return one(gemm(h, ta, tb, m, n, k, alpha, beta, DataType::Float, type_a, lda, type_b, ldb, type_c, ldc), a, b, c);
  });
}
API int cublasGemmEx(void* h, int ta, int tb, int m, int n, int k, void* alpha, void* a, DataType type_a, int lda, void* b,
                     DataType type_b, int ldb, void* beta, void* c, DataType type_c, int ldc, int compute, int algorithm) {
  auto prepare = [&] {
    return one(gemm(h, ta, tb, m, n, k, alpha, beta, accumulator_type(compute, type_c), type_a, lda, type_b, ldb, type_c, ldc),
               a, b, c);
  };
  return run_fallback_on("cublasGemmEx", stream_of_handle(h), prepare, trial(algorithm));
}
API int cublasGemmBatchedEx(void* h, int ta, int tb, int m, int n, int k, void* alpha, void** a, DataType type_a, int lda,
                            void** b, DataType type_b, int ldb, void* beta, void** c, DataType type_c, int ldc, int count,
                            int compute, int algorithm) {
  auto prepare = [&] {
    return batched(
        gemm(h, ta, tb, m, n, k, alpha, beta, accumulator_type(compute, type_c), type_a, lda, type_b, ldb, type_c, ldc), a, b,
        c, count);
  };
  return run_fallback_on("cublasGemmBatchedEx", stream_of_handle(h), prepare, trial(algorithm));
}
API int cublasGemmStridedBatchedEx(void* h, int ta, int tb, int m, int n, int k, void* alpha, void* a, DataType type_a, int lda,
                                   int64_t by_a, void* b, DataType type_b, int ldb, int64_t by_b, void* beta, void* c,
                                   DataType type_c, int ldc, int64_t by_c, int count, int compute, int algorithm) {
  auto prepare = [&] {
    return strided(
        gemm(h, ta, tb, m, n, k, alpha, beta, accumulator_type(compute, type_c), type_a, lda, type_b, ldb, type_c, ldc), a,
        by_a, b, by_b, c, by_c, count);
  };
  return run_fallback_on("cublasGemmStridedBatchedEx", stream_of_handle(h), prepare, trial(algorithm));
}
