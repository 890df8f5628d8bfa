// Creates and destroys texture and surface objects.
#include "textures.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "handles.h"
#include "streams.h"
#include "unsupported_log.h"

using namespace vgpu;

namespace {

// What each object was made of, for who asks.
struct Described {
  ResourceDescriptor resource;
  TextureDescriptor texture;
};
struct Descriptions {
  std::mutex lock;
  std::map<uint64_t, Described> all;
  static Descriptions& get() {
    static Descriptions* one = new Descriptions;
    return *one;
  }
  void add(uint64_t handle, const Described& one) {
    std::lock_guard<std::mutex> hold(lock);
    all[handle] = one;
  }
  void remove(uint64_t handle) {
    std::lock_guard<std::mutex> hold(lock);
    all.erase(handle);
  }
  bool find(uint64_t handle, Described& one) {
    std::lock_guard<std::mutex> hold(lock);
    auto found = all.find(handle);
    return found != all.end() && (one = found->second, true);
  }
};

TextureObjects& objects() { return Device::get().textures(); }

// What an object of this kind (Texture or Surface) was made of; false: none has the handle.
template <class T> bool described(uint64_t handle, Described& found) {
  T object;
  return objects().find(handle, object) && Descriptions::get().find(handle, found);
}

CudaResult refused(const char* what) { return note_unsupported(what), kNotSupported; }

bool known(Format format, unsigned channels) { return bytes_of(format) && (channels == 1 || channels == 2 || channels == 4); }
bool most(size_t size, int limit) { return size && size <= static_cast<size_t>(attribute(limit)); }
bool aligned(uint64_t what, int to) { return what % static_cast<uint64_t>(attribute(to)) == 0; }
bool usable(const Texels& of) { return Device::get().memory().covers(of.at, of.bytes); }

CudaResult of_array(Texels& made, void* handle, unsigned flags) {
  const Array* array = alive<Array>(handle);
  if (!array) return handle ? kInvalidHandle : kInvalidValue;
  made = array->texels;
  return (array->described.flags & flags) == flags ? kSuccess : kInvalidValue;
}
CudaResult of_linear(Texels& made, const LinearResource& of) {
  if (!known(of.format, of.channels)) return kInvalidValue;
  made.at = of.at, made.bytes = of.bytes, made.format = of.format, made.channels = of.channels;
  made.width = of.bytes / made.texel_bytes();
  const bool fine = of.at && aligned(of.at, kTextureAlignment) && most(made.width, 69) && usable(made);
  return fine ? kSuccess : kInvalidValue;
}
CudaResult of_pitched(Texels& made, const PitchedResource& of) {
  if (!known(of.format, of.channels) || !most(of.width, 70) || !most(of.height, 71) || !most(of.pitch, 72))
    return kInvalidValue;
  made.at = of.at, made.format = of.format, made.channels = of.channels;
  made.width = of.width, made.height = of.height, made.pitch = of.pitch;
  made.bytes = (of.height - 1) * of.pitch + of.width * made.texel_bytes();
  const bool lies = of.at && aligned(of.at, kTextureAlignment) && aligned(of.pitch, kTexturePitchAlignment);
  return lies && of.width * made.texel_bytes() <= of.pitch && usable(made) ? kSuccess : kInvalidValue;
}

CudaResult resource(Texels& made, const ResourceDescriptor& of) {
  if (of.flags) return kInvalidValue;
  switch (of.kind) {
    case kArrayResource: return of_array(made, of.array, 0);
    case kMipmappedResource: return refused("cuTexObjectCreate: a texture of a mipmapped array");
    case kLinearResource: return of_linear(made, of.linear);
    case kPitchedResource: return of_pitched(made, of.pitched);
    default: return kInvalidValue;
  }
}

bool is_promoted(const Texels& texels, unsigned flags) {
  return !(flags & kReadAsInteger) && !is_float(texels.format) && bytes_of(texels.format) < 4;
}

CudaResult sampler(Texture& made, const TextureDescriptor& of) {
  auto outside = [](int word, int end) { return word < 0 || word >= end; };
  const bool strange = std::any_of(of.address, of.address + 3, [&](int mode) { return outside(mode, 4); });
  if (strange || outside(of.filter, 2)) return kInvalidValue;
  if (of.flags & ~(kReadAsInteger | kNormalizedCoordinates | kSrgb | kNoTrilinear | kSeamless)) return kInvalidValue;
  if (of.flags & kSrgb) return refused("cuTexObjectCreate: sRGB");
  for (int k = 0; k < 3; k++) made.address[k] = static_cast<AddressMode>(of.address[k]);
  std::copy(std::begin(of.border), std::end(of.border), made.border);
  made.linear = of.filter == 1, made.normalized = of.flags & kNormalizedCoordinates;
  made.promoted = is_promoted(made.texels, of.flags);
  if (made.promoted || is_float(made.texels.format)) return kSuccess;
  if (made.linear) return kInvalidValue;  // of integers there is nothing between
  const bool colored = std::any_of(std::begin(of.border), std::end(of.border), [](float one) { return one != 0; });
  const bool bordered = std::find(of.address, of.address + 3, 3) != of.address + 3;
  return colored && bordered ? refused("cuTexObjectCreate: integers with a border that is not 0") : kSuccess;
}

}  // namespace

API int cuTexObjectCreate(uint64_t* to, const ResourceDescriptor* of, const TextureDescriptor* how, const void* view) {
  if (!to || !of || !how) return kInvalidValue;
  if (view) return refused("cuTexObjectCreate: a resource view");
  Texture made;
  if (CudaResult wrong = resource(made.texels, *of)) return wrong;
  made.fetched = of->kind == kLinearResource;
  TextureDescriptor effective = *how;
  if (made.fetched) effective.filter = 0, std::fill_n(effective.border, 4, 0.0f);  // linear memory has neither
  if (CudaResult wrong = sampler(made, effective)) return wrong;
  *to = objects().add(made);
  return Descriptions::get().add(*to, {*of, *how}), kSuccess;
}
API int cuTexObjectDestroy(uint64_t handle) {
  if (CudaResult broken = wait_for_all()) return broken;
  if (!objects().remove_texture(handle)) return kInvalidValue;
  return Descriptions::get().remove(handle), kSuccess;
}
API int cuTexObjectGetResourceDesc(ResourceDescriptor* to, uint64_t handle) {
  Described found;
  return described<Texture>(handle, found) ? give(to, found.resource) : kInvalidValue;
}
API int cuTexObjectGetTextureDesc(TextureDescriptor* to, uint64_t handle) {
  Described found;
  return described<Texture>(handle, found) ? give(to, found.texture) : kInvalidValue;
}
// Of a format, in texels.
API int cuDeviceGetTexture1DLinearMaxWidth(size_t* to, Format format, unsigned channels, int device) {
  if (device) return kInvalidDevice;
  return known(format, channels) ? give(to, attribute(69)) : kInvalidValue;
}
API int cuTexObjectGetResourceViewDesc(void*, uint64_t) { return kInvalidValue; }  // no object has one

API int cuSurfObjectCreate(uint64_t* to, const ResourceDescriptor* of) {
  if (!to || !of || of->flags || of->kind != kArrayResource) return kInvalidValue;
  Surface made;
  if (CudaResult wrong = of_array(made.texels, of->array, kSurfaceArray)) return wrong;
  *to = objects().add(made);
  return Descriptions::get().add(*to, {*of, {}}), kSuccess;
}
API int cuSurfObjectDestroy(uint64_t handle) {
  if (CudaResult broken = wait_for_all()) return broken;
  if (!objects().remove_surface(handle)) return kInvalidValue;
  return Descriptions::get().remove(handle), kSuccess;
}
API int cuSurfObjectGetResourceDesc(ResourceDescriptor* to, uint64_t handle) {
  Described found;
  return described<Surface>(handle, found) ? give(to, found.resource) : kInvalidValue;
}
