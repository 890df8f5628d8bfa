// The runtime's texture and surface objects: the driver's, by its own descriptors.
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
  unsigned most_anisotropic;
  int mipmap_filter;
  float mipmap_bias, least_mipmap, most_mipmap;
};

int read(const RuntimeResource& of, ResourceDescriptor& made) {
  made.kind = of.kind;
  switch (of.kind) {
    case kArrayResource:
    case kMipmappedResource: return made.array = of.array, kSuccess;
    case kLinearResource:
      made.linear.at = of.linear.at, made.linear.bytes = of.linear.bytes;
      return format_of(of.linear.channels, made.linear.format, made.linear.channels);
    case kPitchedResource:
      made.pitched.at = of.pitched.at, made.pitched.width = of.pitched.width, made.pitched.height = of.pitched.height;
      made.pitched.pitch = of.pitched.pitch;
      return format_of(of.pitched.channels, made.pitched.format, made.pitched.channels);
    default: return kInvalidValue;
  }
}
RuntimeResource told(const ResourceDescriptor& of) {
  RuntimeResource made = {};
  made.kind = of.kind;
  if (of.kind == kLinearResource) {
    made.linear = {of.linear.at, channels_of(of.linear.format, of.linear.channels), of.linear.bytes};
  } else if (of.kind == kPitchedResource) {
    const PitchedResource& all = of.pitched;
    made.pitched = {all.at, channels_of(all.format, all.channels), all.width, all.height, all.pitch};
  } else {
    made.array = of.array;
  }
  return made;
}

// What the runtime's descriptor and the driver's have in common.
template <class From, class To> To alike(const From& of) {
  To made = {};
  std::copy_n(of.address, 3, made.address), std::copy_n(of.border, 4, made.border);
  made.filter = of.filter, made.most_anisotropic = of.most_anisotropic, made.mipmap_filter = of.mipmap_filter;
  made.mipmap_bias = of.mipmap_bias, made.least_mipmap = of.least_mipmap, made.most_mipmap = of.most_mipmap;
  return made;
}
TextureDescriptor read(const RuntimeTexture& of) {
  TextureDescriptor made = alike<RuntimeTexture, TextureDescriptor>(of);
  made.flags = (of.read == 0 ? kReadAsInteger : 0u) | (of.normalized ? kNormalizedCoordinates : 0u) | (of.srgb ? kSrgb : 0u);
  return made;
}
RuntimeTexture told(const TextureDescriptor& of) {
  RuntimeTexture made = alike<TextureDescriptor, RuntimeTexture>(of);
  made.read = of.flags & kReadAsInteger ? 0 : 1, made.normalized = of.flags & kNormalizedCoordinates ? 1 : 0;
  return made;
}

// Integers as they are have nothing between them.
bool filters_integers(const ResourceDescriptor& of, const RuntimeTexture& how) {
  ArrayDescriptor array;
  if (how.filter != 1 || how.read != 0 || of.kind == kLinearResource) return false;
  Format format = of.pitched.format;
  if (of.kind == kArrayResource && cuArray3DGetDescriptor_v2(&array, of.array) == 0) format = array.format;
  else if (of.kind != kPitchedResource) return false;
  return !is_float(format);
}

}  // namespace

API int cudaCreateTextureObject(uint64_t* to, const RuntimeResource* of, const RuntimeTexture* how, const void* view) {
  if (!to || !of || !how) return set_last_error(kInvalidValue);
  ResourceDescriptor resource = {};
  if (int wrong = read(*of, resource)) return set_last_error(wrong);
  if (filters_integers(resource, *how)) return set_last_error(kInvalidFilter);
  const TextureDescriptor texture = read(*how);
  return set_last_error(cuTexObjectCreate(to, &resource, &texture, view));
}
API int cudaDestroyTextureObject(uint64_t handle) { return set_last_error(cuTexObjectDestroy(handle)); }
API int cudaGetTextureObjectResourceDesc(RuntimeResource* to, uint64_t handle) {
  ResourceDescriptor found;
  if (int error = cuTexObjectGetResourceDesc(&found, handle)) return set_last_error(error);
  return set_last_error(give(to, told(found)));
}
API int cudaGetTextureObjectTextureDesc(RuntimeTexture* to, uint64_t handle) {
  TextureDescriptor found;
  if (int error = cuTexObjectGetTextureDesc(&found, handle)) return set_last_error(error);
  return set_last_error(give(to, told(found)));
}
API int cudaGetTextureObjectResourceViewDesc(void*, uint64_t) { return set_last_error(kInvalidValue); }  // no object has one
API int cudaCreateSurfaceObject(uint64_t* to, const RuntimeResource* of) {
  if (!to || !of) return set_last_error(kInvalidValue);
  ResourceDescriptor resource = {};
  if (int wrong = read(*of, resource)) return set_last_error(wrong);
  return set_last_error(cuSurfObjectCreate(to, &resource));
}
API int cudaDestroySurfaceObject(uint64_t handle) { return set_last_error(cuSurfObjectDestroy(handle)); }
API int cudaGetSurfaceObjectResourceDesc(RuntimeResource* to, uint64_t handle) {
  ResourceDescriptor found;
  if (int error = cuSurfObjectGetResourceDesc(&found, handle)) return set_last_error(error);
  return set_last_error(give(to, told(found)));
}
