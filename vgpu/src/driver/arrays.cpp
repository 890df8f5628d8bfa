// CUDA arrays: allocation, and copies from and to them.
#include "arrays.h"

#include <algorithm>

#include "handles.h"
#include "streams.h"
#include "unsupported_log.h"

using namespace vgpu;

namespace {

constexpr unsigned kKnownFlags = kLayeredArray | kSurfaceArray | kGatherArray;
constexpr unsigned kUnsupportedFlags = 0x1f4;  // cubemaps, depth, color attachments, sparse and deferred arrays, video

// The device attributes that limit the size of an array (CUdevice_attribute); 0: the dimension must be at most 1.
struct Limits { int width, height, depth, layers; };

Limits limits(const ArrayDescriptor& descriptor) {
  const bool layered = descriptor.flags & kLayeredArray, surface = descriptor.flags & kSurfaceArray;
  if (layered && !descriptor.height) return surface ? Limits{61, 0, 0, 62} : Limits{42, 0, 0, 43};
  if (layered) return surface ? Limits{63, 64, 0, 65} : Limits{27, 28, 0, 29};
  if (descriptor.depth) return surface ? Limits{58, 59, 60, 0} : Limits{24, 25, 26, 0};
  if (!descriptor.height) return surface ? Limits{55, 0, 0, 0} : Limits{21, 0, 0, 0};
  if (descriptor.flags & kGatherArray) return {45, 46, 0, 0};
  return surface ? Limits{56, 57, 0, 0} : Limits{22, 23, 0, 0};
}

bool is_within_limit(size_t size, int limit) { return size <= (limit ? static_cast<size_t>(attribute(limit)) : 1); }

Texels texels_of(const ArrayDescriptor& descriptor) {
  Texels texels;
  texels.array = true, texels.format = descriptor.format, texels.channels = descriptor.channels;
  texels.width = descriptor.width, texels.height = std::max<size_t>(descriptor.height, 1);
  (descriptor.flags & kLayeredArray ? texels.layers : texels.depth) = std::max<size_t>(descriptor.depth, 1);
  texels.pitch = texels.width * texels.texel_bytes(), texels.slice = texels.pitch * texels.height;
  texels.bytes = texels.slice * texels.depth * texels.layers;
  return texels;
}

// kNotSupported: hardware has such arrays, this device does not.
CudaResult check(const ArrayDescriptor* descriptor) {
  if (!descriptor || !descriptor->width || (descriptor->depth && !descriptor->height && !(descriptor->flags & kLayeredArray)))
    return kInvalidValue;
  if (descriptor->flags & ~(kKnownFlags | kUnsupportedFlags)) return kInvalidValue;
  // Formats (CUarray_format) from 0x50 on are those for graphics and video.
  if (descriptor->flags & kUnsupportedFlags || static_cast<unsigned>(descriptor->format) >= 0x50) {
    note_unsupported("cuArray3DCreate: a cubemap, or an array for graphics or video");
    return kNotSupported;
  }
  if (!bytes_of(descriptor->format) || (descriptor->channels != 1 && descriptor->channels != 2 && descriptor->channels != 4))
    return kInvalidValue;
  if (descriptor->flags & kLayeredArray && !descriptor->depth) return kInvalidValue;
  const Limits max_sizes = limits(*descriptor);
  const size_t layers = descriptor->flags & kLayeredArray ? descriptor->depth : 1,
               depth = descriptor->flags & kLayeredArray ? 1 : descriptor->depth;
  auto fits = [&](const Limits& sizes) {
    return is_within_limit(descriptor->width, sizes.width) && is_within_limit(descriptor->height, sizes.height) &&
           is_within_limit(depth, sizes.depth);
  };
  const bool fits_alternate_3d = max_sizes.depth == 26 && fits({47, 48, 49, 0});
  return (fits(max_sizes) || fits_alternate_3d) && is_within_limit(layers, max_sizes.layers) ? kSuccess : kInvalidValue;
}

Array* make(const ArrayDescriptor& descriptor) {
  Array array{descriptor, texels_of(descriptor)};
  DeviceMemory& memory = Device::get().memory();
  array.texels.at = address(memory.allocate(array.texels.bytes));
  array.texels.allocation = memory.find(array.texels.at).number;
  return array.texels.at ? Handles<Array>::all().add(std::make_unique<Array>(array)) : nullptr;
}
int create(Array** array, const ArrayDescriptor* descriptor) {
  if (!array) return kInvalidValue;
  if (CudaResult error = check(descriptor)) return error;
  return translate_exceptions([=] {
    if (CudaResult error = Device::get().sticky_error()) return error;
    return (*array = make(*descriptor)) ? kSuccess : kOutOfMemory;
  });
}
void free_array(const void* handle) {
  if (std::unique_ptr<Array> array = Handles<Array>::all().remove(handle))
    Device::get().memory().deallocate(pointer(array->texels.at));
}

// Returns the address of bytes [offset, offset + bytes) of an array; 0: they are not all within it.
uint64_t array_address(void* handle, size_t offset, size_t bytes) {
  const Array* array = find_alive<Array>(handle);
  if (!array || offset > array->texels.bytes || bytes > array->texels.bytes - offset) return 0;
  return array->texels.at + offset;
}

ArrayDescriptor level_descriptor(ArrayDescriptor descriptor, unsigned level) {
  auto level_size = [=](size_t size) { return size ? std::max<size_t>(size >> level, 1) : 0; };
  descriptor.width = level_size(descriptor.width), descriptor.height = level_size(descriptor.height);
  if (!(descriptor.flags & kLayeredArray)) descriptor.depth = level_size(descriptor.depth);
  return descriptor;
}
unsigned max_levels(const ArrayDescriptor& descriptor) {
  const size_t depth = descriptor.flags & kLayeredArray ? 0 : descriptor.depth;
  unsigned levels = 1;
  for (size_t size = std::max({descriptor.width, descriptor.height, depth}); size > 1; size /= 2) levels++;
  return levels;
}

}  // namespace

API int cuArray3DCreate_v2(Array** array, const ArrayDescriptor* descriptor) { return create(array, descriptor); }
API int cuArrayCreate_v2(Array** array, const FlatDescriptor* descriptor) {
  if (!descriptor) return kInvalidValue;
  const ArrayDescriptor descriptor3d{descriptor->width, descriptor->height, 0, descriptor->format, descriptor->channels, 0};
  return create(array, &descriptor3d);
}
API int cuArrayDestroy(void* handle) {
  const Array* array = find_alive<Array>(handle);
  if (!array) return kInvalidHandle;
  if (array->level) return kInvalidValue;  // it is freed with its mipmapped array
  if (CudaResult error = wait_for_all()) return error;
  return free_array(handle), kSuccess;
}
API int cuArray3DGetDescriptor_v2(ArrayDescriptor* descriptor, void* handle) {
  const Array* array = find_alive<Array>(handle);
  return array ? write_output(descriptor, array->descriptor) : kInvalidHandle;
}
API int cuArrayGetDescriptor_v2(FlatDescriptor* descriptor, void* handle) {
  const Array* array = find_alive<Array>(handle);
  if (!array) return kInvalidHandle;
  const ArrayDescriptor& described = array->descriptor;
  return write_output(descriptor, FlatDescriptor{described.width, described.height, described.format, described.channels});
}
API int cuArrayGetSparseProperties(void*, void*) { return note_unsupported("cuArrayGetSparseProperties"), kNotSupported; }
// CUDA_ARRAY_MEMORY_REQUIREMENTS: size, alignment, and reserved words.
API int cuArrayGetMemoryRequirements(size_t* requirements, void* handle, int device) {
  const Array* array = find_alive<Array>(handle);
  if (!array) return kInvalidHandle;
  if (!requirements || device) return requirements ? kInvalidDevice : kInvalidValue;
  return requirements[0] = array->texels.bytes, requirements[1] = 512, requirements[2] = requirements[3] = 0, kSuccess;
}

API int cuMipmappedArrayCreate(MipmappedArray** array, const ArrayDescriptor* descriptor, unsigned levels) {
  if (!array || !levels) return kInvalidValue;
  if (CudaResult error = check(descriptor)) return error;
  auto mipmapped = std::make_unique<MipmappedArray>();
  for (unsigned k = 0; k < std::min(levels, max_levels(*descriptor)); k++) {
    const ArrayDescriptor level_size = level_descriptor(*descriptor, k);
    Array* level = nullptr;
    if (int error = create(&level, &level_size)) {
      for (Array* created : mipmapped->levels) free_array(created);
      return error;
    }
    level->level = true;
    mipmapped->levels.push_back(level);
  }
  return write_output(array, Handles<MipmappedArray>::all().add(std::move(mipmapped)));
}
API int cuMipmappedArrayGetLevel(Array** level_array, void* handle, unsigned level) {
  const MipmappedArray* array = find_alive<MipmappedArray>(handle);
  if (!array) return kInvalidHandle;
  return level < array->levels.size() ? write_output(level_array, array->levels[level]) : kInvalidValue;
}
API int cuMipmappedArrayDestroy(void* handle) {
  if (!find_alive<MipmappedArray>(handle)) return kInvalidHandle;
  if (CudaResult error = wait_for_all()) return error;
  const std::unique_ptr<MipmappedArray> array = Handles<MipmappedArray>::all().remove(handle);
  for (Array* level : array ? array->levels : std::vector<Array*>()) free_array(level);
  return array ? kSuccess : kInvalidHandle;
}

namespace {

// Copies between an array, at an offset in bytes, and other memory.
int copy_to(void* stream, bool is_synchronous, void* array, size_t offset, Copy copy) {
  if (!find_alive<Array>(array)) return kInvalidHandle;
  copy.to = array_address(array, offset, copy.bytes), copy.to_device = true;
  return !copy.to ? kInvalidValue : is_synchronous ? copy_now(copy) : copy_on(stream, copy);
}
int copy_from(void* stream, bool is_synchronous, void* array, size_t offset, Copy copy) {
  if (!find_alive<Array>(array)) return kInvalidHandle;
  copy.from = array_address(array, offset, copy.bytes), copy.from_device = true;
  return !copy.from ? kInvalidValue : is_synchronous ? copy_now(copy) : copy_on(stream, copy);
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
  if (!find_alive<Array>(from)) return kInvalidHandle;
  const uint64_t source = array_address(from, from_offset, n);
  return source ? copy_to(nullptr, true, to, to_offset, {0, source, n, false, true}) : kInvalidValue;
}

PER_THREAD(cuMemcpyAtoA_v2, _ptds);
PER_THREAD(cuMemcpyAtoD_v2, _ptds);
PER_THREAD(cuMemcpyAtoHAsync_v2, _ptsz);
PER_THREAD(cuMemcpyAtoH_v2, _ptds);
PER_THREAD(cuMemcpyDtoA_v2, _ptds);
PER_THREAD(cuMemcpyHtoAAsync_v2, _ptsz);
PER_THREAD(cuMemcpyHtoA_v2, _ptds);
