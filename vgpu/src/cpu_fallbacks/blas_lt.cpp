// CPU fallback of cublasLtMatmul(), and cublasLt's descriptors, which store their attributes even when the fallback is off.
#include <new>

#include "gemm.h"
#include "vendor_stubs/library_status.h"

using namespace vgpu;

namespace {

constexpr int kAllocationFailed = 3;  // cublas_api.h: cublasStatus_t

struct MatmulDescriptor {  // cublasLtMatmulDesc_t
  int compute, scale_type, pointer_mode = 0, op_a = 0, op_b = 0;
  unsigned epilogue = 1;
  const void* bias = nullptr;
  int64_t bias_batch_stride = 0;
  int bias_type = -1;  // -1: the type of D
  bool has_unsupported_attributes = false;
};
struct MatrixLayout {  // cublasLtMatrixLayout_t
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

template <class D> int create(D** descriptor, const D& value) { return *descriptor = new D(value), kSuccess; }
// Constructs the descriptor in the caller's memory, whose size is that of the opaque type in the caller's version of cublasLt.
template <class D> int initialize(void* memory, size_t size, const D& value) {
  if (!memory) return kCublasStatus.invalid_value;
  return size < sizeof(D) ? kAllocationFailed : (new (memory) D(value), kSuccess);
}

template <class T> int copy_attribute(T& attribute, const void* value, size_t size) {
  if (size < sizeof attribute) return kCublasStatus.invalid_value;
  return std::memcpy(&attribute, value, sizeof attribute), kSuccess;
}
bool is_zero(const void* value, size_t size) {
  const char* bytes = static_cast<const char*>(value);
  return std::all_of(bytes, bytes + size, [](char byte) { return !byte; });
}

// cublasLt.h: cublasLtMatmulDescAttributes_t
int set_attribute(MatmulDescriptor& descriptor, int attribute, const void* value, size_t size) {
  constexpr int kSmCountTarget = 15, kFastAccumulation = 25;
  switch (attribute) {
    case 0: return copy_attribute(descriptor.compute, value, size);
    case 1: return copy_attribute(descriptor.scale_type, value, size);
    case 2: return copy_attribute(descriptor.pointer_mode, value, size);
    case 3: return copy_attribute(descriptor.op_a, value, size);
    case 4: return copy_attribute(descriptor.op_b, value, size);
    case 7: return copy_attribute(descriptor.epilogue, value, size);
    case 8: return copy_attribute(descriptor.bias, value, size);
    case 10: return copy_attribute(descriptor.bias_batch_stride, value, size);
    case 26: return copy_attribute(descriptor.bias_type, value, size);
    case kSmCountTarget:
    case kFastAccumulation: return kSuccess;
    default: return descriptor.has_unsupported_attributes |= !is_zero(value, size), kSuccess;
  }
}
int set_attribute(MatrixLayout& layout, int attribute, const void* value, size_t size) {
  switch (attribute) {
    case 0: return copy_attribute(layout.type, value, size);
    case 1: return copy_attribute(layout.order, value, size);
    case 2: return copy_attribute(layout.rows, value, size);
    case 3: return copy_attribute(layout.columns, value, size);
    case 4: return copy_attribute(layout.leading_dimension, value, size);
    case 5: return copy_attribute(layout.batch_count, value, size);
    case 6: return copy_attribute(layout.batch_stride, value, size);
    case 7: return copy_attribute(layout.plane_offset, value, size);
    default: return kCublasStatus.invalid_value;
  }
}

struct Product {
  MatmulDescriptor descriptor;
  MatrixLayout a, b, c, d;

  // Throws FallbackUnsupported or InvalidValue if the fallback cannot compute this product.
  Gemm gemm(const void* alpha, const void* beta) const {
    if (descriptor.pointer_mode > 1 || descriptor.has_unsupported_attributes ||
        descriptor.epilogue & ~(kDefault | kRelu | kBias | kGelu))
      throw FallbackUnsupported();
    for (const MatrixLayout* layout : {&a, &b, &c, &d}) {
      if (layout->order || layout->plane_offset) throw FallbackUnsupported();
      if (layout->batch_count != d.batch_count) throw InvalidValue();
    }
    const Op op_a = Op(descriptor.op_a), op_b = Op(descriptor.op_b);
    const DataType scale = DataType(descriptor.scale_type);
    const uint64_t depth = op_a == Op::None ? a.columns : a.rows;
    if ((op_a == Op::None ? a.rows : a.columns) != d.rows || (op_b == Op::None ? b.columns : b.rows) != d.columns ||
        (op_b == Op::None ? b.rows : b.columns) != depth || c.rows != d.rows || c.columns != d.columns)
      throw InvalidValue();
    const bool on_device = descriptor.pointer_mode == 1;
    Gemm problem{op_a,
                 op_b,
                 int64_t(depth),
                 accumulator_type(descriptor.compute, DataType(d.type)),
                 Scalar(on_device, alpha, scale),
                 Scalar(on_device, beta, scale),
                 a.matrix(),
                 b.matrix(),
                 c.matrix(),
                 d.matrix()};
    problem.check();
    return problem;
  }
  Epilogue epilogue(int batch) const {
    Epilogue operations;
    operations.relu = descriptor.epilogue & kRelu, operations.gelu = descriptor.epilogue & kGelu;
    operations.bias_type = DataType(descriptor.bias_type < 0 ? d.type : descriptor.bias_type);
    if (descriptor.epilogue & kBias)
      operations.bias = offset_by_elements(descriptor.bias, operations.bias_type, batch * descriptor.bias_batch_stride);
    return operations;
  }

 private:
  enum : unsigned { kDefault = 1, kRelu = 2, kBias = 4, kGelu = 32 };  // cublasLt.h: cublasLtEpilogue_t
};

}  // namespace

API int cublasLtMatmulDescCreate(MatmulDescriptor** descriptor, int compute, int scale) {
  return create(descriptor, MatmulDescriptor{compute, scale});
}
API int cublasLtMatmulDescInit_internal(void* memory, size_t size, int compute, int scale) {
  return initialize(memory, size, MatmulDescriptor{compute, scale});
}
API int cublasLtMatmulDescSetAttribute(MatmulDescriptor* descriptor, int attribute, const void* value, size_t size) {
  return descriptor && value ? set_attribute(*descriptor, attribute, value, size) : kCublasStatus.invalid_value;
}
API int cublasLtMatmulDescDestroy(MatmulDescriptor* descriptor) { return delete descriptor, kSuccess; }

API int cublasLtMatrixLayoutCreate(MatrixLayout** layout, int type, uint64_t rows, uint64_t columns,
                                   int64_t leading_dimension) {
  return create(layout, MatrixLayout{type, 0, rows, columns, leading_dimension});
}
API int cublasLtMatrixLayoutInit_internal(void* memory, size_t size, int type, uint64_t rows, uint64_t columns,
                                          int64_t leading_dimension) {
  return initialize(memory, size, MatrixLayout{type, 0, rows, columns, leading_dimension});
}
API int cublasLtMatrixLayoutSetAttribute(MatrixLayout* layout, int attribute, const void* value, size_t size) {
  return layout && value ? set_attribute(*layout, attribute, value, size) : kCublasStatus.invalid_value;
}
API int cublasLtMatrixLayoutDestroy(MatrixLayout* layout) { return delete layout, kSuccess; }

// Returns one algorithm, as the fallback has no other; or none for a product that cublasLtMatmul() would refuse: PyTorch then
// takes another call.
API int cublasLtMatmulAlgoGetHeuristic(void*, const MatmulDescriptor* descriptor, const MatrixLayout* a, const MatrixLayout* b,
                                       const MatrixLayout* c, const MatrixLayout* d, void*, int requested, Heuristic* results,
                                       int* returned) {
  return run_if_fallback_enabled("cublasLtMatmulAlgoGetHeuristic", [&] {
    if (!descriptor || !a || !b || !c || !d || requested < 1 || !results || !returned) throw InvalidValue();
    *results = {}, *returned = 0;
    const double any_scale[2] = {};
    Product{*descriptor, *a, *b, *c, *d}.gemm(any_scale, any_scale);
    *returned = 1;
  });
}
API int cublasLtMatmul(void*, const MatmulDescriptor* descriptor, const void* alpha, const void* at_a, const MatrixLayout* a,
                       const void* at_b, const MatrixLayout* b, const void* beta, const void* at_c, const MatrixLayout* c,
                       void* at_d, const MatrixLayout* d, void*, void*, size_t, void* stream) {
  auto prepare = [&] {
    if (!descriptor || !a || !b || !c || !d) throw InvalidValue();
    const Product product{*descriptor, *a, *b, *c, *d};
    const Gemm gemm = product.gemm(alpha, beta);
    return [=] {
      for (int k = 0; k < product.d.batch_count; k++)
        gemm.run(offset_by_elements(at_a, gemm.a.type, k * product.a.batch_stride),
                 offset_by_elements(at_b, gemm.b.type, k * product.b.batch_stride),
                 offset_by_elements(at_c, gemm.c.type, k * product.c.batch_stride),
                 offset_by_elements(at_d, gemm.d.type, k * product.d.batch_stride), product.epilogue(k));
    };
  };
  // ReturnError: if the call is not supported, it returns an error and raises nothing in the Python program.
  return run_fallback_on_stream("cublasLtMatmul", stream, prepare, OnFailure::ReturnError);
}
