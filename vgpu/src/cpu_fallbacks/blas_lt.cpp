// cublasLt's product of matrices, and its descriptors, which keep what they were told whether or not anything is computed.
#include <new>

#include "gemm.h"
#include "vendor_stubs/unsupported_call.h"

using namespace vgpu;

namespace {

constexpr int kAllocationFailed = 3, kInvalidValueOfBlas = 7;  // cublas_api.h: cublasStatus_t

struct Description {  // of a product
  int compute, scale_type, pointer_mode = 0, op_a = 0, op_b = 0;
  unsigned epilogue = 1;
  const void* bias = nullptr;
  int64_t bias_batch_stride = 0;
  int bias_type = -1;    // D's
  bool has_more = false;  // what no fallback knows
};
struct Layout {
  int type, order = 0;
  uint64_t rows, columns;
  int64_t leading_dimension;
  int batch_count = 1;
  int64_t batch_stride = 0, plane_offset = 0;

  Matrix matrix() const { return {DataType(type), int64_t(rows), int64_t(columns), leading_dimension}; }
};
struct Heuristic {  // cublasLtMatmulHeuristicResult_t
  uint64_t algorithm[8];
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
};

template <class D> int create(D** to, const D& made) { return *to = new D(made), kSuccess; }
// In memory of the program's, as large as its version's opaque type.
template <class D> int initialise(void* at, size_t size, const D& made) {
  if (!at) return kInvalidValueOfBlas;
  return size < sizeof(D) ? kAllocationFailed : (new (at) D(made), kSuccess);
}

template <class T> int take(T& to, const void* from, size_t size) {
  if (size < sizeof to) return kInvalidValueOfBlas;
  return std::memcpy(&to, from, sizeof to), kSuccess;
}
bool is_zero(const void* at, size_t size) {
  const char* bytes = static_cast<const char*>(at);
  return std::all_of(bytes, bytes + size, [](char one) { return !one; });
}

// cublasLt.h: cublasLtMatmulDescAttributes_t
int set_attribute(Description& of, int attribute, const void* from, size_t size) {
  constexpr int kSmCountTarget = 15, kFastAccumulation = 25;
  switch (attribute) {
    case 0: return take(of.compute, from, size);
    case 1: return take(of.scale_type, from, size);
    case 2: return take(of.pointer_mode, from, size);
    case 3: return take(of.op_a, from, size);
    case 4: return take(of.op_b, from, size);
    case 7: return take(of.epilogue, from, size);
    case 8: return take(of.bias, from, size);
    case 10: return take(of.bias_batch_stride, from, size);
    case 26: return take(of.bias_type, from, size);
    case kSmCountTarget:
    case kFastAccumulation: return kSuccess;
    default: return of.has_more |= !is_zero(from, size), kSuccess;
  }
}
int set_attribute(Layout& of, int attribute, const void* from, size_t size) {
  switch (attribute) {
    case 0: return take(of.type, from, size);
    case 1: return take(of.order, from, size);
    case 2: return take(of.rows, from, size);
    case 3: return take(of.columns, from, size);
    case 4: return take(of.leading_dimension, from, size);
    case 5: return take(of.batch_count, from, size);
    case 6: return take(of.batch_stride, from, size);
    case 7: return take(of.plane_offset, from, size);
    default: return kInvalidValueOfBlas;
  }
}

struct Product {
  Description how;
  Layout a, b, c, d;

  // FallbackUnsupported or InvalidValue where no fallback computes it.
  Gemm gemm(const void* alpha, const void* beta) const {
    if (how.pointer_mode > 1 || how.has_more || how.epilogue & ~unsigned{kDefault | kRelu | kBias | kGelu})
      throw FallbackUnsupported();
    for (const Layout* one : {&a, &b, &c, &d}) {
      if (one->order || one->plane_offset) throw FallbackUnsupported();
      if (one->batch_count != d.batch_count) throw InvalidValue();
    }
    const Op op_a = Op(how.op_a), op_b = Op(how.op_b);
    const DataType scale = DataType(how.scale_type);
    const uint64_t depth = op_a == Op::None ? a.columns : a.rows;
    if ((op_a == Op::None ? a.rows : a.columns) != d.rows || (op_b == Op::None ? b.columns : b.rows) != d.columns ||
        (op_b == Op::None ? b.rows : b.columns) != depth || c.rows != d.rows || c.columns != d.columns)
      throw InvalidValue();
    const bool on_device = how.pointer_mode == 1;
    Gemm made{op_a,
              op_b,
              int64_t(depth),
              accumulator_type(how.compute, DataType(d.type)),
              Scalar(on_device, alpha, scale),
              Scalar(on_device, beta, scale),
              a.matrix(),
              b.matrix(),
              c.matrix(),
              d.matrix()};
    return made.check(), made;
  }
  Epilogue epilogue(int batch) const {
    Epilogue made;
    made.relu = how.epilogue & kRelu, made.gelu = how.epilogue & kGelu;
    made.bias_type = DataType(how.bias_type < 0 ? d.type : how.bias_type);
    if (how.epilogue & kBias) made.bias = moved(how.bias, made.bias_type, batch * how.bias_batch_stride);
    return made;
  }

 private:
  enum : unsigned { kDefault = 1, kRelu = 2, kBias = 4, kGelu = 32 };  // cublasLt.h: cublasLtEpilogue_t
};

}  // namespace

API int cublasLtMatmulDescCreate(Description** to, int compute, int scale) { return create(to, Description{compute, scale}); }
API int cublasLtMatmulDescInit_internal(void* at, size_t size, int compute, int scale) {
  return initialise(at, size, Description{compute, scale});
}
API int cublasLtMatmulDescSetAttribute(Description* of, int attribute, const void* from, size_t size) {
  return of && from ? set_attribute(*of, attribute, from, size) : kInvalidValueOfBlas;
}
API int cublasLtMatmulDescDestroy(Description* of) { return delete of, kSuccess; }

API int cublasLtMatrixLayoutCreate(Layout** to, int type, uint64_t rows, uint64_t columns, int64_t leading_dimension) {
  return create(to, Layout{type, 0, rows, columns, leading_dimension});
}
API int cublasLtMatrixLayoutInit_internal(void* at, size_t size, int type, uint64_t rows, uint64_t columns,
                                          int64_t leading_dimension) {
  return initialise(at, size, Layout{type, 0, rows, columns, leading_dimension});
}
API int cublasLtMatrixLayoutSetAttribute(Layout* of, int attribute, const void* from, size_t size) {
  return of && from ? set_attribute(*of, attribute, from, size) : kInvalidValueOfBlas;
}
API int cublasLtMatrixLayoutDestroy(Layout* of) { return delete of, kSuccess; }

// One algorithm: all would be the same.
API int cublasLtMatmulAlgoGetHeuristic(void*, const Description* how, const Layout* a, const Layout* b, const Layout* c,
                                       const Layout* d, void*, int requested, Heuristic* results, int* returned) {
  const char* call = "cublasLtMatmulAlgoGetHeuristic";
  if (!is_fallback_enabled(call)) return report_unsupported(call);
  if (!how || !a || !b || !c || !d || requested < 1 || !results || !returned) return kInvalidValueOfBlas;
  *results = {}, *returned = 1;
  return kSuccess;
}
API int cublasLtMatmul(void*, const Description* how, const void* alpha, const void* at_a, const Layout* a, const void* at_b,
                       const Layout* b, const void* beta, const void* at_c, const Layout* c, void* at_d, const Layout* d, void*,
                       void*, size_t, void* stream) {
  auto prepare = [&] {
    if (!how || !a || !b || !c || !d) throw InvalidValue();
    const Product product{*how, *a, *b, *c, *d};
    const Gemm gemm = product.gemm(alpha, beta);
    return [=] {
      for (int k = 0; k < product.d.batch_count; k++)
        gemm.run(moved(at_a, gemm.a.type, k * product.a.batch_stride), moved(at_b, gemm.b.type, k * product.b.batch_stride),
                 moved(at_c, gemm.c.type, k * product.c.batch_stride), moved(at_d, gemm.d.type, k * product.d.batch_stride),
                 product.epilogue(k));
    };
  };
  return run_fallback_on("cublasLtMatmul", stream, prepare, WhenDisabled::Trial);
}
