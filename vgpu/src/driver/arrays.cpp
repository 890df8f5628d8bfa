// CUDA arrays: allocation, and copies from and to them.
#include "arrays.h"

#include <algorithm>

#include "handles.h"
#include "streams.h"
#include "unsupported_log.h"

using namespace vgpu;

namespace {

constexpr unsigned kKnownFlags = kLayeredArray | kSurfaceArray | kGatherArray;
constexpr unsigned kOtherFlags = 0x1f4;  // cubemaps, depth, colour attachments, sparse and deferred ones, video

// The attributes that say how large an array may be: in each dimension, and how many layers.
struct Limits { int width, height, depth, layers; };

Limits limits(const ArrayDescriptor& of) {
  const bool layered = of.flags & kLayeredArray, surface = of.flags & kSurfaceArray;
  if (layered && !of.height) return surface ? Limits{61, 0, 0, 62} : Limits{42, 0, 0, 43};
  if (layered) return surface ? Limits{63, 64, 0, 65} : Limits{27, 28, 0, 29};
  if (of.depth) return surface ? Limits{58, 59, 60, 0} : Limits{24, 25, 26, 0};
  if (!of.height) return surface ? Limits{55, 0, 0, 0} : Limits{21, 0, 0, 0};
  if (of.flags & kGatherArray) return {45, 46, 0, 0};
  return surface ? Limits{56, 57, 0, 0} : Limits{22, 23, 0, 0};
}

bool within(size_t size, int limit) { return size <= (limit ? static_cast<size_t>(attribute(limit)) : 1); }

Texels texels_of(const ArrayDescriptor& of) {
  Texels made;
  made.array = true, made.format = of.format, made.channels = of.channels;
  made.width = of.width, made.height = std::max<size_t>(of.height, 1);
  (of.flags & kLayeredArray ? made.layers : made.depth) = std::max<size_t>(of.depth, 1);
  made.pitch = made.width * made.texel_bytes(), made.slice = made.pitch * made.height;
  made.bytes = made.slice * made.depth * made.layers;
  return made;
}

// kNotSupported: a card has such arrays, and this device does not.
CudaResult check(const ArrayDescriptor* of) {
  if (!of || !of->width || (of->depth && !of->height && !(of->flags & kLayeredArray))) return kInvalidValue;
  if (of->flags & ~(kKnownFlags | kOtherFlags)) return kInvalidValue;
  if (of->flags & kOtherFlags || static_cast<unsigned>(of->format) >= 0x50) {
    note_unsupported("cuArray3DCreate: a cubemap, or an array for graphics or video");
    return kNotSupported;
  }
  if (!bytes_of(of->format) || (of->channels != 1 && of->channels != 2 && of->channels != 4)) return kInvalidValue;
  if (of->flags & kLayeredArray && !of->depth) return kInvalidValue;
  const Limits most = limits(*of);
  const size_t layers = of->flags & kLayeredArray ? of->depth : 1, depth = of->flags & kLayeredArray ? 1 : of->depth;
  auto fits = [&](const Limits& each) {
    return within(of->width, each.width) && within(of->height, each.height) && within(depth, each.depth);
  };
  const bool deep = most.depth == 26 && fits({47, 48, 49, 0});
  return (fits(most) || deep) && within(layers, most.layers) ? kSuccess : kInvalidValue;
}

Array* make(const ArrayDescriptor& of) {
  Array made{of, texels_of(of)};
  DeviceMemory& memory = Device::get().memory();
  made.texels.at = address(memory.allocate(made.texels.bytes));
  made.texels.allocation = memory.find(made.texels.at).number;
  return made.texels.at ? Handles<Array>::all().add(std::make_unique<Array>(made)) : nullptr;
}
int create(Array** to, const ArrayDescriptor* of) {
  if (!to) return kInvalidValue;
  if (CudaResult wrong = check(of)) return wrong;
  return translate_exceptions([=] {
    if (CudaResult broken = Device::get().sticky_error()) return broken;
    return (*to = make(*of)) ? kSuccess : kOutOfMemory;
  });
}
void free_array(const void* handle) {
  if (std::unique_ptr<Array> gone = Handles<Array>::all().take(handle))
    Device::get().memory().deallocate(pointer(gone->texels.at));
}

// Where `bytes` of an array of one row begin, or of rows one after the other; 0: they are not all of it.
uint64_t range(void* handle, size_t offset, size_t bytes) {
  const Array* array = alive<Array>(handle);
  if (!array || offset > array->texels.bytes || bytes > array->texels.bytes - offset) return 0;
  return array->texels.at + offset;
}

ArrayDescriptor of_level(ArrayDescriptor of, unsigned level) {
  auto halved = [=](size_t size) { return size ? std::max<size_t>(size >> level, 1) : 0; };
  of.width = halved(of.width), of.height = halved(of.height);
  if (!(of.flags & kLayeredArray)) of.depth = halved(of.depth);
  return of;
}
unsigned most_levels(const ArrayDescriptor& of) {
  const size_t depth = of.flags & kLayeredArray ? 0 : of.depth;
  unsigned levels = 1;
  for (size_t left = std::max({of.width, of.height, depth}); left > 1; left /= 2) levels++;
  return levels;
}

}  // namespace

API int cuArray3DCreate_v2(Array** to, const ArrayDescriptor* of) { return create(to, of); }
API int cuArrayCreate_v2(Array** to, const FlatDescriptor* of) {
  if (!of) return kInvalidValue;
  const ArrayDescriptor whole{of->width, of->height, 0, of->format, of->channels, 0};
  return create(to, &whole);
}
API int cuArrayDestroy(void* handle) {
  const Array* array = alive<Array>(handle);
  if (!array) return kInvalidHandle;
  if (array->level) return kInvalidValue;  // it goes with the array that it is a level of
  if (CudaResult broken = wait_for_all()) return broken;
  return free_array(handle), kSuccess;
}
API int cuArray3DGetDescriptor_v2(ArrayDescriptor* to, void* handle) {
  const Array* array = alive<Array>(handle);
  return array ? give(to, array->described) : kInvalidHandle;
}
API int cuArrayGetDescriptor_v2(FlatDescriptor* to, void* handle) {
  const Array* array = alive<Array>(handle);
  if (!array) return kInvalidHandle;
  const ArrayDescriptor& of = array->described;
  return give(to, FlatDescriptor{of.width, of.height, of.format, of.channels});
}
API int cuArrayGetPlane(void**, void*, unsigned) { return note_unsupported("cuArrayGetPlane"), kNotSupported; }
API int cuArrayGetSparseProperties(void*, void*) { return note_unsupported("cuArrayGetSparseProperties"), kNotSupported; }
// CUDA_ARRAY_MEMORY_REQUIREMENTS: bytes, alignment, and what is reserved.
API int cuArrayGetMemoryRequirements(size_t* to, void* handle, int device) {
  const Array* array = alive<Array>(handle);
  if (!array) return kInvalidHandle;
  if (!to || device) return to ? kInvalidDevice : kInvalidValue;
  return to[0] = array->texels.bytes, to[1] = 512, to[2] = to[3] = 0, kSuccess;
}

API int cuMipmappedArrayCreate(MipmappedArray** to, const ArrayDescriptor* of, unsigned levels) {
  if (!to || !levels) return kInvalidValue;
  if (CudaResult wrong = check(of)) return wrong;
  auto made = std::make_unique<MipmappedArray>();
  for (unsigned k = 0; k < std::min(levels, most_levels(*of)); k++) {
    const ArrayDescriptor one = of_level(*of, k);
    Array* level = nullptr;
    if (int error = create(&level, &one)) {
      for (Array* before : made->levels) free_array(before);
      return error;
    }
    level->level = true;
    made->levels.push_back(level);
  }
  return give(to, Handles<MipmappedArray>::all().add(std::move(made)));
}
API int cuMipmappedArrayGetLevel(Array** to, void* handle, unsigned level) {
  const MipmappedArray* array = alive<MipmappedArray>(handle);
  if (!array) return kInvalidHandle;
  return level < array->levels.size() ? give(to, array->levels[level]) : kInvalidValue;
}
API int cuMipmappedArrayDestroy(void* handle) {
  if (!alive<MipmappedArray>(handle)) return kInvalidHandle;
  if (CudaResult broken = wait_for_all()) return broken;
  const std::unique_ptr<MipmappedArray> gone = Handles<MipmappedArray>::all().take(handle);
  for (Array* level : gone ? gone->levels : std::vector<Array*>()) free_array(level);
  return gone ? kSuccess : kInvalidHandle;
}

namespace {

// A copy between an array, as bytes of its rows, and other memory.
int copy_to(void* stream, bool now, void* array, size_t offset, Copy what) {
  if (!alive<Array>(array)) return kInvalidHandle;
  what.to = range(array, offset, what.bytes), what.to_device = true;
  return !what.to ? kInvalidValue : now ? copy_now(what) : copy_on(stream, what);
}
int copy_from(void* stream, bool now, void* array, size_t offset, Copy what) {
  if (!alive<Array>(array)) return kInvalidHandle;
  what.from = range(array, offset, what.bytes), what.from_device = true;
  return !what.from ? kInvalidValue : now ? copy_now(what) : copy_on(stream, what);
}

}  // namespace

API int cuMemcpyHtoA_v2(void* to, size_t offset, const void* from, size_t n) {
  return copy_to(nullptr, true, to, offset, {0, address(from), n});
}
API int cuMemcpyHtoAAsync_v2(void* to, size_t offset, const void* from, size_t n, void* stream) {
  return copy_to(stream, false, to, offset, {0, address(from), n});
}
API int cuMemcpyDtoA_v2(void* to, size_t offset, uint64_t from, size_t n) {
  return copy_to(nullptr, true, to, offset, {0, from, n, false, true});
}
API int cuMemcpyAtoH_v2(void* to, void* from, size_t offset, size_t n) {
  return copy_from(nullptr, true, from, offset, {address(to), 0, n});
}
API int cuMemcpyAtoHAsync_v2(void* to, void* from, size_t offset, size_t n, void* stream) {
  return copy_from(stream, false, from, offset, {address(to), 0, n});
}
API int cuMemcpyAtoD_v2(uint64_t to, void* from, size_t offset, size_t n) {
  return copy_from(nullptr, true, from, offset, {to, 0, n, true});
}
API int cuMemcpyAtoA_v2(void* to, size_t to_offset, void* from, size_t from_offset, size_t n) {
  if (!alive<Array>(from)) return kInvalidHandle;
  const uint64_t at = range(from, from_offset, n);
  return at ? copy_to(nullptr, true, to, to_offset, {0, at, n, false, true}) : kInvalidValue;
}
