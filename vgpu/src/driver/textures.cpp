// The driver API's calls of texture and surface objects (cuTexObject*, cuSurfObject*).  Texels are an object's memory and layout.
#include "textures.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "handles.h"
#include "streams.h"
#include "unsupported_log.h"

using namespace vgpu;

namespace {

// The descriptors of each object, for the calls that return them.
struct ObjectDescriptors {
  ResourceDescriptor resource;
  TextureDescriptor texture;
};
struct DescriptorMap {
  std::mutex lock;
  std::map<uint64_t, ObjectDescriptors> by_handle;
  static DescriptorMap& get() {
    static DescriptorMap* descriptors = new DescriptorMap;
    return *descriptors;
  }
  void add(uint64_t handle, const ObjectDescriptors& descriptors) {
    std::lock_guard<std::mutex> guard(lock);
    by_handle[handle] = descriptors;
  }
  void remove(uint64_t handle) {
    std::lock_guard<std::mutex> guard(lock);
    by_handle.erase(handle);
  }
  bool find(uint64_t handle, ObjectDescriptors& descriptors) {
    std::lock_guard<std::mutex> guard(lock);
    auto entry = by_handle.find(handle);
    return entry != by_handle.end() && (descriptors = entry->second, true);
  }
};

TextureObjects& objects() { return Device::get().textures(); }

// Finds the descriptors of an object of type T (Texture or Surface); returns false if the handle is invalid.
template <class T> bool find_descriptors(uint64_t handle, ObjectDescriptors& descriptors) {
  T object;
  return objects().find(handle, object) && DescriptorMap::get().find(handle, descriptors);
}

CudaResult report_not_supported(const char* feature) { return note_unsupported(feature), kNotSupported; }

bool is_valid_format(Format format, unsigned channels) {
  return bytes_of(format) && (channels == 1 || channels == 2 || channels == 4);
}
bool is_valid_size(size_t size, int limit_attribute) { return size && size <= static_cast<size_t>(attribute(limit_attribute)); }
bool is_aligned(uint64_t address_or_pitch, int alignment_attribute) {
  return address_or_pitch % static_cast<uint64_t>(attribute(alignment_attribute)) == 0;
}
bool is_allocated(const Texels& texels) { return Device::get().memory().covers(texels.at, texels.bytes); }

CudaResult array_texels(Texels& texels, void* handle, unsigned flags) {
  const Array* array = find_alive<Array>(handle);
  if (!array) return handle ? kInvalidHandle : kInvalidValue;
  texels = array->texels;
  return (array->descriptor.flags & flags) == flags ? kSuccess : kInvalidValue;
}
CudaResult linear_texels(Texels& texels, const LinearResource& linear) {
  if (!is_valid_format(linear.format, linear.channels)) return kInvalidValue;
  texels.at = linear.at, texels.bytes = linear.bytes, texels.format = linear.format, texels.channels = linear.channels;
  texels.width = linear.bytes / texels.texel_bytes();
  const bool is_valid = linear.at && is_aligned(linear.at, kTextureAlignment) &&
                        is_valid_size(texels.width, kLinearTextureWidth) && is_allocated(texels);
  return is_valid ? kSuccess : kInvalidValue;
}
CudaResult pitched_texels(Texels& texels, const PitchedResource& pitched) {
  if (!is_valid_format(pitched.format, pitched.channels) || !is_valid_size(pitched.width, kPitchedTextureWidth) ||
      !is_valid_size(pitched.height, kPitchedTextureHeight) || !is_valid_size(pitched.pitch, kPitchedTexturePitch))
    return kInvalidValue;
  texels.at = pitched.at, texels.format = pitched.format, texels.channels = pitched.channels;
  texels.width = pitched.width, texels.height = pitched.height, texels.pitch = pitched.pitch;
  texels.bytes = (pitched.height - 1) * pitched.pitch + pitched.width * texels.texel_bytes();
  const bool is_well_aligned =
      pitched.at && is_aligned(pitched.at, kTextureAlignment) && is_aligned(pitched.pitch, kTexturePitchAlignment);
  return is_well_aligned && pitched.width * texels.texel_bytes() <= pitched.pitch && is_allocated(texels) ? kSuccess
                                                                                                          : kInvalidValue;
}

CudaResult resource_texels(Texels& texels, const ResourceDescriptor& descriptor) {
  if (descriptor.flags) return kInvalidValue;
  switch (descriptor.kind) {
    case kArrayResource: return array_texels(texels, descriptor.array, 0);
    case kMipmappedResource: return report_not_supported("cuTexObjectCreate: a texture of a mipmapped array");
    case kLinearResource: return linear_texels(texels, descriptor.linear);
    case kPitchedResource: return pitched_texels(texels, descriptor.pitched);
    default: return kInvalidValue;
  }
}

// Whether reads convert integers of 8 or 16 bits to floats in [0, 1] or [-1, 1].
bool is_promoted(const Texels& texels, unsigned flags) {
  return !(flags & kReadAsInteger) && !is_float(texels.format) && bytes_of(texels.format) < 4;
}

CudaResult apply_sampler(Texture& texture, const TextureDescriptor& descriptor) {
  auto is_outside = [](int value, int end) { return value < 0 || value >= end; };
  const bool has_invalid_mode =
      std::any_of(descriptor.address, descriptor.address + 3, [&](int mode) { return is_outside(mode, 4); });
  if (has_invalid_mode || is_outside(descriptor.filter, 2)) return kInvalidValue;
  if (descriptor.flags & ~(kReadAsInteger | kNormalizedCoordinates | kSrgb | kNoTrilinear | kSeamless)) return kInvalidValue;
  if (descriptor.flags & kSrgb) return report_not_supported("cuTexObjectCreate: sRGB");
  for (int k = 0; k < 3; k++) texture.address[k] = static_cast<AddressMode>(descriptor.address[k]);
  std::copy(std::begin(descriptor.border), std::end(descriptor.border), texture.border);
  texture.linear = descriptor.filter == 1, texture.normalized = descriptor.flags & kNormalizedCoordinates;
  texture.reads_integers_as_floats = is_promoted(texture.texels, descriptor.flags);
  if (texture.reads_integers_as_floats || is_float(texture.texels.format)) return kSuccess;
  if (texture.linear) return kInvalidValue;  // integers cannot be filtered
  const bool has_border_color =
      std::any_of(std::begin(descriptor.border), std::end(descriptor.border), [](float component) { return component != 0; });
  const bool uses_border =
      std::find(descriptor.address, descriptor.address + 3, static_cast<int>(AddressMode::Border)) != descriptor.address + 3;
  return has_border_color && uses_border ? report_not_supported("cuTexObjectCreate: integers with a border that is not 0")
                                         : kSuccess;
}

}  // namespace

API int cuTexObjectCreate(uint64_t* handle, const ResourceDescriptor* resource, const TextureDescriptor* sampler,
                          const void* view) {
  if (!handle || !resource || !sampler) return kInvalidValue;
  if (view) return report_not_supported("cuTexObjectCreate: a resource view");
  Texture texture;
  if (CudaResult error = resource_texels(texture.texels, *resource)) return error;
  texture.is_zero_outside = resource->kind == kLinearResource;  // read by tex1Dfetch, for which texels outside are zero
  TextureDescriptor effective = *sampler;
  if (texture.is_zero_outside)
    effective.filter = 0, std::fill_n(effective.border, 4, 0.0f);  // linear memory has no filtering and no border color
  if (CudaResult error = apply_sampler(texture, effective)) return error;
  *handle = objects().add(texture);
  return DescriptorMap::get().add(*handle, {*resource, *sampler}), kSuccess;
}
API int cuTexObjectDestroy(uint64_t handle) {
  if (CudaResult error = wait_for_all()) return error;
  if (!objects().remove_texture(handle)) return kInvalidValue;
  return DescriptorMap::get().remove(handle), kSuccess;
}
API int cuTexObjectGetResourceDesc(ResourceDescriptor* resource, uint64_t handle) {
  ObjectDescriptors descriptors;
  return find_descriptors<Texture>(handle, descriptors) ? write_output(resource, descriptors.resource) : kInvalidValue;
}
API int cuTexObjectGetTextureDesc(TextureDescriptor* texture, uint64_t handle) {
  ObjectDescriptors descriptors;
  return find_descriptors<Texture>(handle, descriptors) ? write_output(texture, descriptors.texture) : kInvalidValue;
}
// Returns the maximum width in texels.
API int cuDeviceGetTexture1DLinearMaxWidth(size_t* width, Format format, unsigned channels, int device) {
  if (device) return kInvalidDevice;
  return is_valid_format(format, channels) ? write_output(width, attribute(kLinearTextureWidth)) : kInvalidValue;
}
API int cuTexObjectGetResourceViewDesc(void*, uint64_t) { return kInvalidValue; }  // resource views are not supported

API int cuSurfObjectCreate(uint64_t* handle, const ResourceDescriptor* resource) {
  if (!handle || !resource || resource->flags || resource->kind != kArrayResource) return kInvalidValue;
  Surface surface;
  if (CudaResult error = array_texels(surface.texels, resource->array, kSurfaceArray)) return error;
  *handle = objects().add(surface);
  return DescriptorMap::get().add(*handle, {*resource, {}}), kSuccess;
}
API int cuSurfObjectDestroy(uint64_t handle) {
  if (CudaResult error = wait_for_all()) return error;
  if (!objects().remove_surface(handle)) return kInvalidValue;
  return DescriptorMap::get().remove(handle), kSuccess;
}
API int cuSurfObjectGetResourceDesc(ResourceDescriptor* resource, uint64_t handle) {
  ObjectDescriptors descriptors;
  return find_descriptors<Surface>(handle, descriptors) ? write_output(resource, descriptors.resource) : kInvalidValue;
}
