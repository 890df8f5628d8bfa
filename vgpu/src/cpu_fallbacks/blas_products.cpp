// CPU fallbacks of cuBLAS's matrix products (gemm), also batched.
#include "gemm.h"

using namespace vgpu;

namespace {

// Returns the product whose result overwrites C. ta, tb: cublasOperation_t.
Gemm gemm(void* handle, int ta, int tb, int64_t m, int64_t n, int64_t k, const void* alpha, const void* beta, DataType sums,
          DataType a, int64_t lda, DataType b, int64_t ldb, DataType c, int64_t ldc) {
  const Op op_a = Op(ta), op_b = Op(tb);
  const Matrix left = op_a == Op::None ? Matrix{a, m, k, lda} : Matrix{a, k, m, lda};
  const Matrix right = op_b == Op::None ? Matrix{b, k, n, ldb} : Matrix{b, n, k, ldb};
  const Matrix result{c, m, n, ldc};
  return {op_a, op_b, k, sums, Scalar(handle, alpha, sums), Scalar(handle, beta, sums), left, right, result, result};
}

Operation multiply(const Gemm& product, const void* a, const void* b, void* c) {
  product.check();
  return [=] { product.run(a, b, c, c); };
}

Operation multiply_batched(const Gemm& product, const void* const* a, const void* const* b, void* const* c, int count) {
  product.check();
  return [=] {
    for (const void* pointers : {static_cast<const void*>(a), static_cast<const void*>(b), static_cast<const void*>(c)})
      check_read(pointers, count * sizeof(void*));
    for (int k = 0; k < count; k++) product.run(a[k], b[k], c[k], c[k]);
  };
}

Operation multiply_strided(const Gemm& product, const void* a, int64_t stride_a, const void* b, int64_t stride_b, void* c,
                           int64_t stride_c, int count) {
  product.check();
  return [=] {
    for (int k = 0; k < count; k++) {
      void* result = offset_by_elements(c, product.c.type, k * stride_c);
      product.run(offset_by_elements(a, product.a.type, k * stride_a), offset_by_elements(b, product.b.type, k * stride_b),
                  result, result);
    }
  };
}

// Returns how an unsupported call fails. Only auto-tuners name an algorithm by its number; to them the call may return an
// error, which they handle by trying another algorithm.
OnFailure failure_mode_of(int algorithm) {
  constexpr int kDefault = -1, kDefaultTensorOp = 99;
  return algorithm == kDefault || algorithm == kDefaultTensorOp ? OnFailure::RaiseInPython : OnFailure::ReturnError;
}

}  // namespace

namespace vgpu {

// compute: cublasComputeType_t (cublas_api.h), whose numbers begin with 64; before CUDA 11 a DataType.
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
    return run_fallback_on_stream("cublas" #letter #name, stream_of_handle(h), [&] {                                          \
      return multiply(gemm(h, ta, tb, m, n, k, alpha, beta, DataType::type, DataType::type, lda, DataType::type, ldb,         \
                           DataType::type, ldc),                                                                              \
                      a, b, c);                                                                                               \
    });                                                                                                                       \
  }                                                                                                                           \
  API int cublas##letter##gemmBatched(void* h, int ta, int tb, int m, int n, int k, void* alpha, void** a, int lda, void** b, \
                                      int ldb, void* beta, void** c, int ldc, int count) {                                    \
    return run_fallback_on_stream("cublas" #letter "gemmBatched", stream_of_handle(h), [&] {                                  \
      return multiply_batched(gemm(h, ta, tb, m, n, k, alpha, beta, DataType::type, DataType::type, lda, DataType::type, ldb, \
                                   DataType::type, ldc),                                                                      \
                              a, b, c, count);                                                                                \
    });                                                                                                                       \
  }                                                                                                                           \
  API int cublas##letter##gemmStridedBatched(void* h, int ta, int tb, int m, int n, int k, void* alpha, void* a, int lda,     \
                                             int64_t stride_a, void* b, int ldb, int64_t stride_b, void* beta, void* c,       \
                                             int ldc, int64_t stride_c, int count) {                                          \
    return run_fallback_on_stream("cublas" #letter "gemmStridedBatched", stream_of_handle(h), [&] {                           \
      return multiply_strided(gemm(h, ta, tb, m, n, k, alpha, beta, DataType::type, DataType::type, lda, DataType::type, ldb, \
                                   DataType::type, ldc),                                                                      \
                              a, stride_a, b, stride_b, c, stride_c, count);                                                  \
    });                                                                                                                       \
  }

PRODUCTS(S, gemm_v2, Float)
PRODUCTS(D, gemm_v2, Double)
PRODUCTS(C, gemm_v2, Complex)
PRODUCTS(Z, gemm_v2, DoubleComplex)
PRODUCTS(H, gemm, Half)

API int cublasSgemmEx(void* h, int ta, int tb, int m, int n, int k, void* alpha, void* a, DataType type_a, int lda, void* b,
                      DataType type_b, int ldb, void* beta, void* c, DataType type_c, int ldc) {
  return run_fallback_on_stream("cublasSgemmEx", stream_of_handle(h), [&] {
    return multiply(gemm(h, ta, tb, m, n, k, alpha, beta, DataType::Float, type_a, lda, type_b, ldb, type_c, ldc), a, b, c);
  });
}
API int cublasGemmEx(void* h, int ta, int tb, int m, int n, int k, void* alpha, void* a, DataType type_a, int lda, void* b,
                     DataType type_b, int ldb, void* beta, void* c, DataType type_c, int ldc, int compute, int algorithm) {
  auto prepare = [&] {
    return multiply(
        gemm(h, ta, tb, m, n, k, alpha, beta, accumulator_type(compute, type_c), type_a, lda, type_b, ldb, type_c, ldc), a, b,
        c);
  };
  return run_fallback_on_stream("cublasGemmEx", stream_of_handle(h), prepare, failure_mode_of(algorithm));
}
API int cublasGemmBatchedEx(void* h, int ta, int tb, int m, int n, int k, void* alpha, void** a, DataType type_a, int lda,
                            void** b, DataType type_b, int ldb, void* beta, void** c, DataType type_c, int ldc, int count,
                            int compute, int algorithm) {
  auto prepare = [&] {
    return multiply_batched(
        gemm(h, ta, tb, m, n, k, alpha, beta, accumulator_type(compute, type_c), type_a, lda, type_b, ldb, type_c, ldc), a, b,
        c, count);
  };
  return run_fallback_on_stream("cublasGemmBatchedEx", stream_of_handle(h), prepare, failure_mode_of(algorithm));
}
API int cublasGemmStridedBatchedEx(void* h, int ta, int tb, int m, int n, int k, void* alpha, void* a, DataType type_a, int lda,
                                   int64_t stride_a, void* b, DataType type_b, int ldb, int64_t stride_b, void* beta, void* c,
                                   DataType type_c, int ldc, int64_t stride_c, int count, int compute, int algorithm) {
  auto prepare = [&] {
    return multiply_strided(
        gemm(h, ta, tb, m, n, k, alpha, beta, accumulator_type(compute, type_c), type_a, lda, type_b, ldb, type_c, ldc), a,
        stride_a, b, stride_b, c, stride_c, count);
  };
  return run_fallback_on_stream("cublasGemmStridedBatchedEx", stream_of_handle(h), prepare, failure_mode_of(algorithm));
}
