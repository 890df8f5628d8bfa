// The runtime's CUDA arrays, copies from and to them, and pitched allocations.
#include <cstring>

#include "box_copy.h"
#include "channels.h"

using namespace vgpu;

namespace {

constexpr int kInvalidDirection = 21;

struct PeerParameters {                                         // cudaMemcpy3DPeerParms
  void* from_array;
  Position from;
  Pitched from_memory;
  int from_device;
  void* to_array;
  Position to;
  Pitched to_memory;
  int to_device;
  Extents size;
};

enum Kind : unsigned { kArray = 3, kUnified = 4 };  // CUmemorytype

int get_descriptor(void* array, ArrayDescriptor& descriptor) { return cuArray3DGetDescriptor_v2(&descriptor, array); }
size_t texel_bytes(const ArrayDescriptor& descriptor) { return bytes_of(descriptor.format) * descriptor.channels; }

Memcpy3DSide side(void* array, const Position& position) {
  return {position.x, position.y, position.z, 0, kArray, nullptr, 0, array, nullptr, 0, 0};
}
Memcpy3DSide side(const Pitched& memory, const Position& position = {0, 0, 0}) {
  return {position.x, position.y,   position.z,   0, kUnified, nullptr, address(memory.at), nullptr,
          nullptr,    memory.pitch, memory.height};
}
Pitched unbounded_memory(const void* at, size_t pitch) { return {const_cast<void*>(at), pitch, pitch, 0}; }

int copy(const Memcpy3DParams& params, int kind, bool is_synchronous, void* stream) {
  if (kind < 0 || kind > 4) return set_last_error(kInvalidDirection);
  return set_last_error(is_synchronous ? copy_box_now(params) : copy_box_on(stream, params));
}

int copy(const BoxParameters* parameters, bool is_synchronous, void* stream) {
  Memcpy3DParams params;
  if (int error = to_driver(parameters, params)) return set_last_error(error);
  return copy(params, parameters->kind, is_synchronous, stream);
}

// Returns the offset in bytes of (x bytes, row y) in an array.
size_t offset_in(void* array, size_t x, size_t y) {
  ArrayDescriptor descriptor;
  return get_descriptor(array, descriptor) ? 0 : y * descriptor.width * texel_bytes(descriptor) + x;
}
// Converts the arguments of array allocations to the driver's descriptor.
int make_descriptor(const Channels* channel_format, const Extents& size, unsigned flags, ArrayDescriptor& descriptor) {
  descriptor = {size.width, size.height, size.depth, Format(0), 0, flags};
  return channel_format ? format_of(*channel_format, descriptor.format, descriptor.channels) : static_cast<int>(kInvalidValue);
}
int set_copy_error(int kind, int error) { return set_last_error(kind < 0 || kind > 4 ? kInvalidDirection : error); }

}  // namespace

namespace vgpu {

Memcpy3DParams make_box_copy(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height) {
  return {side(unbounded_memory(from, from_pitch)), side(unbounded_memory(to, to_pitch)), width, height, 1};
}

int to_driver(const BoxParameters* parameters, Memcpy3DParams& params) {
  if (!parameters || !parameters->from_array == !parameters->from_memory.at ||
      !parameters->to_array == !parameters->to_memory.at)
    return kInvalidValue;
  Position from = parameters->from, to = parameters->to;
  size_t width = parameters->size.width, scale = 1;
  for (auto [array, position] : {std::make_pair(parameters->from_array, &from), std::make_pair(parameters->to_array, &to)}) {
    ArrayDescriptor descriptor;
    if (!array) continue;
    if (int error = get_descriptor(array, descriptor)) return error;
    scale = texel_bytes(descriptor), position->x *= scale;
  }
  params = {parameters->from_array ? side(parameters->from_array, from) : side(parameters->from_memory, from),
            parameters->to_array ? side(parameters->to_array, to) : side(parameters->to_memory, to), width * scale,
            parameters->size.height, parameters->size.depth};
  return kSuccess;
}

int format_of(const Channels& channel_format, Format& format, unsigned& channels) {
  channels = 0;
  while (channels < 4 && channel_format.bits[channels]) channels++;
  for (unsigned k = 1; k < 4; k++)
    if (channel_format.bits[k] && channel_format.bits[k] != channel_format.bits[0]) return kInvalidChannels;
  for (unsigned k = channels; k < 4; k++)
    if (channel_format.bits[k]) return kInvalidChannels;
  const Format formats[3][3] = {
      {Format::S8, Format::S16, Format::S32}, {Format::U8, Format::U16, Format::U32}, {Format(0), Format::Half, Format::Float}};
  const int size = channel_format.bits[0] == 8 ? 0 : channel_format.bits[0] == 16 ? 1 : channel_format.bits[0] == 32 ? 2 : -1;
  if (channel_format.kind > kRealChannels && channel_format.kind < 32)
    return format = Format(0xc0), kSuccess;  // the driver reports it as unsupported
  if (size < 0 || channel_format.kind < 0 || channel_format.kind >= 32 || channels == 3) return kInvalidChannels;
  format = formats[channel_format.kind][size];
  return bytes_of(format) ? static_cast<int>(kSuccess) : kInvalidChannels;
}

Channels channels_of(Format format, unsigned channels) {
  const bool is_signed = format == Format::S8 || format == Format::S16 || format == Format::S32;
  Channels result = {{0, 0, 0, 0}, is_float(format) ? kRealChannels : is_signed ? kSignedChannels : kUnsignedChannels};
  for (unsigned k = 0; k < channels && k < 4; k++) result.bits[k] = static_cast<int>(8 * bytes_of(format));
  return result;
}

}  // namespace vgpu

// Returns a structure by value, so the ABI passes its address as the first argument and returns it.
API Channels* cudaCreateChannelDesc(Channels* result, int x, int y, int z, int w, int kind) {
  if (result) *result = {{x, y, z, w}, kind};
  return result;
}
API int cudaGetChannelDesc(Channels* channel_format, void* array) {
  ArrayDescriptor descriptor;
  if (int error = get_descriptor(array, descriptor)) return set_last_error(error);
  return set_last_error(write_output(channel_format, channels_of(descriptor.format, descriptor.channels)));
}

API int cudaMalloc3DArray(Array** array, const Channels* channel_format, Extents size, unsigned flags) {
  ArrayDescriptor descriptor;
  if (int error = make_descriptor(channel_format, size, flags, descriptor)) return set_last_error(error);
  return set_last_error(cuArray3DCreate_v2(array, &descriptor));
}
API int cudaMallocArray(Array** array, const Channels* channel_format, size_t width, size_t height, unsigned flags) {
  return cudaMalloc3DArray(array, channel_format, {width, height, 0}, flags);
}
API int cudaFreeArray(void* array) { return set_last_error(array ? cuArrayDestroy(array) : kSuccess); }
API int cudaMallocMipmappedArray(MipmappedArray** array, const Channels* channel_format, Extents size, unsigned levels,
                                 unsigned flags) {
  ArrayDescriptor descriptor;
  if (int error = make_descriptor(channel_format, size, flags, descriptor)) return set_last_error(error);
  return set_last_error(cuMipmappedArrayCreate(array, &descriptor, levels));
}
API int cudaGetMipmappedArrayLevel(Array** level_array, void* array, unsigned level) {
  return set_last_error(cuMipmappedArrayGetLevel(level_array, array, level));
}
API int cudaFreeMipmappedArray(void* array) { return set_last_error(array ? cuMipmappedArrayDestroy(array) : kSuccess); }
API int cudaArrayGetInfo(Channels* channels, Extents* size, unsigned* flags, void* array) {
  ArrayDescriptor descriptor;
  if (int error = get_descriptor(array, descriptor)) return set_last_error(error);
  if (channels) *channels = channels_of(descriptor.format, descriptor.channels);
  if (size) *size = {descriptor.width, descriptor.height, descriptor.depth};
  if (flags) *flags = descriptor.flags;
  return kSuccess;
}

API int cudaMallocPitch(void** address, size_t* pitch, size_t width, size_t height) {
  return set_last_error(cuMemAllocPitch_v2(reinterpret_cast<uint64_t*>(address), pitch, width, height, 4));
}
API int cudaMalloc3D(Pitched* memory, Extents size) {
  if (!memory || (size.height && size.depth > SIZE_MAX / size.height)) return set_last_error(kInvalidValue);
  const int error = cudaMallocPitch(&memory->at, &memory->pitch, size.width, size.height * size.depth);
  if (!error) memory->width = size.width, memory->height = size.height;
  return error;
}
namespace {

// Fills a box slice by slice; a slice may have more rows than are filled.
int fill_box(const Pitched& memory, int value, const Extents& size, int (*fill_rows)(const Fill&, void*), void* stream) {
  for (size_t z = 0; z < size.depth; z++)
    if (int error = fill_rows({address(memory.at) + z * memory.height * memory.pitch, memory.pitch, static_cast<uint8_t>(value),
                               /*size=*/1, /*count=*/size.width, /*rows=*/size.height},
                              stream))
      return set_last_error(error);
  return kSuccess;
}

}  // namespace
API int cudaMemset3D(Pitched memory, int value, Extents size) {
  return fill_box(memory, value, size, [](const Fill& fill, void*) { return fill_now(fill); }, nullptr);
}
API int cudaMemset3DAsync(Pitched memory, int value, Extents size, void* stream) {
  return fill_box(memory, value, size, [](const Fill& fill, void* fill_stream) { return fill_on(fill_stream, fill); }, stream);
}

API int cudaMemcpy3D(const BoxParameters* parameters) { return copy(parameters, true, nullptr); }
API int cudaMemcpy3DAsync(const BoxParameters* parameters, void* stream) { return copy(parameters, false, stream); }
API int cudaMemcpy3DPeer(const PeerParameters* parameters) {
  if (!parameters) return set_last_error(kInvalidValue);
  const BoxParameters plain{parameters->from_array, parameters->from,      parameters->from_memory, parameters->to_array,
                            parameters->to,         parameters->to_memory, parameters->size,        4};
  return copy(&plain, true, nullptr);
}

API int cudaMemcpy2DToArray(void* to, size_t x, size_t y, const void* from, size_t pitch, size_t width, size_t height,
                            int kind) {
  return copy({side(unbounded_memory(from, pitch)), side(to, {x, y, 0}), width, height, 1}, kind, true, nullptr);
}
API int cudaMemcpy2DToArrayAsync(void* to, size_t x, size_t y, const void* from, size_t pitch, size_t width, size_t height,
                                 int kind, void* stream) {
  return copy({side(unbounded_memory(from, pitch)), side(to, {x, y, 0}), width, height, 1}, kind, false, stream);
}
API int cudaMemcpy2DFromArray(void* to, size_t pitch, void* from, size_t x, size_t y, size_t width, size_t height, int kind) {
  return copy({side(from, {x, y, 0}), side(unbounded_memory(to, pitch)), width, height, 1}, kind, true, nullptr);
}
API int cudaMemcpy2DFromArrayAsync(void* to, size_t pitch, void* from, size_t x, size_t y, size_t width, size_t height,
                                   int kind, void* stream) {
  return copy({side(from, {x, y, 0}), side(unbounded_memory(to, pitch)), width, height, 1}, kind, false, stream);
}
API int cudaMemcpy2DArrayToArray(void* to, size_t to_x, size_t to_y, void* from, size_t x, size_t y, size_t width,
                                 size_t height, int kind) {
  return copy({side(from, {x, y, 0}), side(to, {to_x, to_y, 0}), width, height, 1}, kind, true, nullptr);
}
API int cudaMemcpyToArray(void* to, size_t x, size_t y, const void* from, size_t n, int kind) {
  return set_copy_error(kind, cuMemcpyHtoA_v2(to, offset_in(to, x, y), from, n));
}
API int cudaMemcpyToArrayAsync(void* to, size_t x, size_t y, const void* from, size_t n, int kind, void* stream) {
  return set_copy_error(kind, cuMemcpyHtoAAsync_v2(to, offset_in(to, x, y), from, n, stream));
}
API int cudaMemcpyFromArray(void* to, void* from, size_t x, size_t y, size_t n, int kind) {
  return set_copy_error(kind, cuMemcpyAtoH_v2(to, from, offset_in(from, x, y), n));
}
API int cudaMemcpyFromArrayAsync(void* to, void* from, size_t x, size_t y, size_t n, int kind, void* stream) {
  return set_copy_error(kind, cuMemcpyAtoHAsync_v2(to, from, offset_in(from, x, y), n, stream));
}
API int cudaMemcpyArrayToArray(void* to, size_t to_x, size_t to_y, void* from, size_t x, size_t y, size_t n, int kind) {
  return set_copy_error(kind, cuMemcpyAtoA_v2(to, offset_in(to, to_x, to_y), from, offset_in(from, x, y), n));
}

PER_THREAD(cudaMemcpy2DArrayToArray, _ptds);
PER_THREAD(cudaMemcpy2DFromArray, _ptds);
PER_THREAD(cudaMemcpy2DFromArrayAsync, _ptsz);
PER_THREAD(cudaMemcpy2DToArray, _ptds);
PER_THREAD(cudaMemcpy2DToArrayAsync, _ptsz);
PER_THREAD(cudaMemcpy3D, _ptds);
PER_THREAD(cudaMemcpy3DAsync, _ptsz);
PER_THREAD(cudaMemcpy3DPeer, _ptds);
PER_THREAD(cudaMemcpyArrayToArray, _ptds);
PER_THREAD(cudaMemcpyFromArray, _ptds);
PER_THREAD(cudaMemcpyFromArrayAsync, _ptsz);
PER_THREAD(cudaMemcpyToArray, _ptds);
PER_THREAD(cudaMemcpyToArrayAsync, _ptsz);
PER_THREAD(cudaMemset3D, _ptds);
PER_THREAD(cudaMemset3DAsync, _ptsz);
