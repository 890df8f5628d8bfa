// CUDA arrays: texels in consecutive rows without padding.
#pragma once
#include <memory>
#include <vector>

#include "api.h"

namespace vgpu {

// CUDA_ARRAY_DESCRIPTOR and CUDA_ARRAY3D_DESCRIPTOR.
struct FlatDescriptor {
  size_t width, height;
  Format format;
  unsigned channels;
};
struct ArrayDescriptor {
  size_t width, height, depth;  // 0: no such dimension; depth of a layered array: number of layers
  Format format;
  unsigned channels, flags;
};

enum ArrayFlags : unsigned { kLayeredArray = 1, kSurfaceArray = 2, kGatherArray = 8 };

struct Array {
  ArrayDescriptor descriptor;
  Texels texels;
  bool level = false;  // whether it belongs to a mipmapped array, which frees it
};
struct MipmappedArray { std::vector<Array*> levels; };

}  // namespace vgpu

extern "C" {
int cuArray3DCreate_v2(vgpu::Array**, const vgpu::ArrayDescriptor*);
int cuArrayCreate_v2(vgpu::Array**, const vgpu::FlatDescriptor*);
int cuArray3DGetDescriptor_v2(vgpu::ArrayDescriptor*, void*);
int cuArrayDestroy(void*);
int cuMipmappedArrayCreate(vgpu::MipmappedArray**, const vgpu::ArrayDescriptor*, unsigned);
int cuMipmappedArrayGetLevel(vgpu::Array**, void*, unsigned);
int cuMipmappedArrayDestroy(void*);
int cuMemcpyHtoA_v2(void*, size_t, const void*, size_t);
int cuMemcpyHtoAAsync_v2(void*, size_t, const void*, size_t, void*);
int cuMemcpyAtoH_v2(void*, void*, size_t, size_t);
int cuMemcpyAtoHAsync_v2(void*, void*, size_t, size_t, void*);
int cuMemcpyAtoA_v2(void*, size_t, void*, size_t, size_t);
int cuMemAllocPitch_v2(uint64_t*, size_t*, size_t, size_t, unsigned);
}
