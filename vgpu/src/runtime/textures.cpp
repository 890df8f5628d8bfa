// The runtime's texture and surface objects, which are the driver's with other descriptors.
#include "driver/textures.h"

#include <algorithm>
#include <cstring>

#include "channels.h"

using namespace vgpu;

namespace {

constexpr int kInvalidFilter = 26;

struct RuntimeLinear {
  uint64_t at;
  Channels channels;
  size_t bytes;
};
struct RuntimePitched {
  uint64_t at;
  Channels channels;
  size_t width, height, pitch;
};
struct RuntimeResource {  // cudaResourceDesc; before CUDA 13 it ends behind the union
  int kind, padding;
  union {
    void* array;
    RuntimeLinear linear;
    RuntimePitched pitched;
  };
};
struct RuntimeTexture {  // cudaTextureDesc, as far as all versions have it
  int address[3], filter, read, srgb;
  float border[4];
  int normalized;
  unsigned max_anisotropy;
  int mipmap_filter;
  float mipmap_bias, min_mipmap_level, max_mipmap_level;
};

int to_driver(const RuntimeResource& descriptor, ResourceDescriptor& result) {
  result.kind = descriptor.kind;
  switch (descriptor.kind) {
    case kArrayResource:
    case kMipmappedResource: return result.array = descriptor.array, kSuccess;
    case kLinearResource:
      result.linear.at = descriptor.linear.at, result.linear.bytes = descriptor.linear.bytes;
      return format_of(descriptor.linear.channels, result.linear.format, result.linear.channels);
    case kPitchedResource:
      result.pitched.at = descriptor.pitched.at, result.pitched.width = descriptor.pitched.width,
      result.pitched.height = descriptor.pitched.height;
      result.pitched.pitch = descriptor.pitched.pitch;
      return format_of(descriptor.pitched.channels, result.pitched.format, result.pitched.channels);
    default: return kInvalidValue;
  }
}
RuntimeResource to_runtime(const ResourceDescriptor& descriptor) {
  RuntimeResource result = {};
  result.kind = descriptor.kind;
  if (descriptor.kind == kLinearResource) {
    result.linear = {descriptor.linear.at, channels_of(descriptor.linear.format, descriptor.linear.channels),
                     descriptor.linear.bytes};
  } else if (descriptor.kind == kPitchedResource) {
    const PitchedResource& pitched_source = descriptor.pitched;
    result.pitched = {pitched_source.at, channels_of(pitched_source.format, pitched_source.channels), pitched_source.width,
                      pitched_source.height, pitched_source.pitch};
  } else {
    result.array = descriptor.array;
  }
  return result;
}

// Copies the fields that the runtime's and the driver's texture descriptors share.
template <class From, class To> To copy_shared_fields(const From& descriptor) {
  To result = {};
  std::copy_n(descriptor.address, 3, result.address), std::copy_n(descriptor.border, 4, result.border);
  result.filter = descriptor.filter, result.max_anisotropy = descriptor.max_anisotropy,
  result.mipmap_filter = descriptor.mipmap_filter;
  result.mipmap_bias = descriptor.mipmap_bias, result.min_mipmap_level = descriptor.min_mipmap_level,
  result.max_mipmap_level = descriptor.max_mipmap_level;
  return result;
}
TextureDescriptor to_driver(const RuntimeTexture& descriptor) {
  TextureDescriptor result = copy_shared_fields<RuntimeTexture, TextureDescriptor>(descriptor);
  result.flags = (descriptor.read == 0 ? kReadAsInteger : 0u) | (descriptor.normalized ? kNormalizedCoordinates : 0u) |
                 (descriptor.srgb ? kSrgb : 0u);
  return result;
}
RuntimeTexture to_runtime(const TextureDescriptor& descriptor) {
  RuntimeTexture result = copy_shared_fields<TextureDescriptor, RuntimeTexture>(descriptor);
  result.read = descriptor.flags & kReadAsInteger ? 0 : 1,
  result.normalized = descriptor.flags & kNormalizedCoordinates ? 1 : 0;
  return result;
}

// Returns whether a texture of integers, which are not converted to floats, requests filtering.
bool filters_integers(const ResourceDescriptor& resource, const RuntimeTexture& texture) {
  ArrayDescriptor array;
  if (texture.filter != 1 || texture.read != 0 || resource.kind == kLinearResource) return false;
  Format format = resource.pitched.format;
  if (resource.kind == kArrayResource && cuArray3DGetDescriptor_v2(&array, resource.array) == 0) format = array.format;
  else if (resource.kind != kPitchedResource) return false;
  return !is_float(format);
}

}  // namespace

API int cudaCreateTextureObject(uint64_t* handle, const RuntimeResource* resource_desc, const RuntimeTexture* texture_desc,
                                const void* view) {
  if (!handle || !resource_desc || !texture_desc) return set_last_error(kInvalidValue);
  ResourceDescriptor resource = {};
  if (int error = to_driver(*resource_desc, resource)) return set_last_error(error);
  if (filters_integers(resource, *texture_desc)) return set_last_error(kInvalidFilter);
  const TextureDescriptor texture = to_driver(*texture_desc);
  return set_last_error(cuTexObjectCreate(handle, &resource, &texture, view));
}
API int cudaDestroyTextureObject(uint64_t handle) { return set_last_error(cuTexObjectDestroy(handle)); }
API int cudaGetTextureObjectResourceDesc(RuntimeResource* descriptor, uint64_t handle) {
  ResourceDescriptor driver_descriptor;
  if (int error = cuTexObjectGetResourceDesc(&driver_descriptor, handle)) return set_last_error(error);
  return set_last_error(write_output(descriptor, to_runtime(driver_descriptor)));
}
API int cudaGetTextureObjectTextureDesc(RuntimeTexture* descriptor, uint64_t handle) {
  TextureDescriptor driver_descriptor;
  if (int error = cuTexObjectGetTextureDesc(&driver_descriptor, handle)) return set_last_error(error);
  return set_last_error(write_output(descriptor, to_runtime(driver_descriptor)));
}
API int cudaGetTextureObjectResourceViewDesc(void*, uint64_t) {
  return set_last_error(kInvalidValue);
}  // resource views are not supported
API int cudaCreateSurfaceObject(uint64_t* handle, const RuntimeResource* resource_desc) {
  if (!handle || !resource_desc) return set_last_error(kInvalidValue);
  ResourceDescriptor resource = {};
  if (int error = to_driver(*resource_desc, resource)) return set_last_error(error);
  return set_last_error(cuSurfObjectCreate(handle, &resource));
}
API int cudaDestroySurfaceObject(uint64_t handle) { return set_last_error(cuSurfObjectDestroy(handle)); }
API int cudaGetSurfaceObjectResourceDesc(RuntimeResource* descriptor, uint64_t handle) {
  ResourceDescriptor driver_descriptor;
  if (int error = cuSurfObjectGetResourceDesc(&driver_descriptor, handle)) return set_last_error(error);
  return set_last_error(write_output(descriptor, to_runtime(driver_descriptor)));
}
