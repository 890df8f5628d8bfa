// CUDA_RESOURCE_DESC and CUDA_TEXTURE_DESC, the descriptors of texture and surface objects.
#pragma once
#include "arrays.h"

namespace vgpu {

enum ResourceKind : int { kArrayResource = 0, kMipmappedResource = 1, kLinearResource = 2, kPitchedResource = 3 };

struct LinearResource {
  uint64_t at;
  Format format;
  unsigned channels;
  size_t bytes;
};
struct PitchedResource {
  uint64_t at;
  Format format;
  unsigned channels;
  size_t width, height, pitch;
};
struct ResourceDescriptor {
  int kind, padding;
  union {
    void* array;
    LinearResource linear;
    PitchedResource pitched;
    int reserved[32];
  };
  unsigned flags;
};

enum TextureFlags : unsigned {
  kReadAsInteger = 1,
  kNormalizedCoordinates = 2,
  kSrgb = 0x10,
  kNoTrilinear = 0x20,
  kSeamless = 0x40
};

struct TextureDescriptor {
  int address[3], filter;
  unsigned flags, max_anisotropy;
  int mipmap_filter;
  float mipmap_bias, min_mipmap_level, max_mipmap_level, border[4];
  int reserved[12];
};

}  // namespace vgpu

extern "C" {
int cuTexObjectCreate(uint64_t*, const vgpu::ResourceDescriptor*, const vgpu::TextureDescriptor*, const void*);
int cuTexObjectDestroy(uint64_t);
int cuTexObjectGetResourceDesc(vgpu::ResourceDescriptor*, uint64_t);
int cuTexObjectGetTextureDesc(vgpu::TextureDescriptor*, uint64_t);
int cuSurfObjectCreate(uint64_t*, const vgpu::ResourceDescriptor*);
int cuSurfObjectDestroy(uint64_t);
int cuSurfObjectGetResourceDesc(vgpu::ResourceDescriptor*, uint64_t);
}
