// The runtime's CUDA arrays and copies of them, and what it has beside the driver's of memory with a pitch.
#include <cstring>

#include "channels.h"

using namespace vgpu;

namespace {

constexpr int kInvalidDirection = 21;

struct Extents { size_t width, height, depth; };                // cudaExtent
struct Pitched {
  void* at;
  size_t pitch, width, height;
};      // cudaPitchedPtr
struct Position { size_t x, y, z; };                            // cudaPos
struct Parameters {                                             // cudaMemcpy3DParms
  void* from_array;
  Position from;
  Pitched from_memory;
  void* to_array;
  Position to;
  Pitched to_memory;
  Extents size;
  int kind;
};
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

int described(void* array, ArrayDescriptor& of) { return cuArray3DGetDescriptor_v2(&of, array); }
size_t texel_bytes(const ArrayDescriptor& of) { return bytes_of(of.format) * of.channels; }

Memcpy3DSide side(void* array, const Position& at) { return {at.x, at.y, at.z, 0, kArray, nullptr, 0, array, nullptr, 0, 0}; }
Memcpy3DSide side(const Pitched& of, const Position& at = {0, 0, 0}) {
  return {at.x, at.y, at.z, 0, kUnified, nullptr, address(of.at), nullptr, nullptr, of.pitch, of.height};
}
Pitched memory(const void* at, size_t pitch) { return {const_cast<void*>(at), pitch, pitch, 0}; }

int copy(const Memcpy3DParams& what, int kind, bool now, void* stream) {
  if (kind < 0 || kind > 4) return set_last_error(kInvalidDirection);
  return set_last_error(now ? copy_box_now(what) : copy_box_on(stream, what));
}

// Either side is an array or memory; where one is an array its elements count, for the size, too.
int copy(const Parameters* p, bool now, void* stream) {
  if (!p || !p->from_array == !p->from_memory.at || !p->to_array == !p->to_memory.at) return set_last_error(kInvalidValue);
  Position from = p->from, to = p->to;
  size_t width = p->size.width, scale = 1;
  for (auto [array, at] : {std::make_pair(p->from_array, &from), std::make_pair(p->to_array, &to)}) {
    ArrayDescriptor of;
    if (!array) continue;
    if (int error = described(array, of)) return set_last_error(error);
    scale = texel_bytes(of), at->x *= scale;
  }
  const Memcpy3DParams what{p->from_array ? side(p->from_array, from) : side(p->from_memory, from),
                            p->to_array ? side(p->to_array, to) : side(p->to_memory, to), width * scale, p->size.height,
                            p->size.depth};
  return copy(what, p->kind, now, stream);
}

// Bytes of an array's rows, one row after the other.
size_t offset_in(void* array, size_t x, size_t y) {
  ArrayDescriptor of;
  return described(array, of) ? 0 : y * of.width * texel_bytes(of) + x;
}
// What both kinds of array are made of.
int describe(const Channels* of, const Extents& size, unsigned flags, ArrayDescriptor& made) {
  made = {size.width, size.height, size.depth, Format(0), 0, flags};
  return of ? format_of(*of, made.format, made.channels) : static_cast<int>(kInvalidValue);
}
int copy_kind(int kind, int error) { return set_last_error(kind < 0 || kind > 4 ? kInvalidDirection : error); }

}  // namespace

namespace vgpu {

int format_of(const Channels& of, Format& format, unsigned& channels) {
  channels = 0;
  while (channels < 4 && of.bits[channels]) channels++;
  for (unsigned k = 1; k < 4; k++)
    if (of.bits[k] && of.bits[k] != of.bits[0]) return kInvalidChannels;
  for (unsigned k = channels; k < 4; k++)
    if (of.bits[k]) return kInvalidChannels;
  const Format formats[3][3] = {
      {Format::S8, Format::S16, Format::S32}, {Format::U8, Format::U16, Format::U32}, {Format(0), Format::Half, Format::Float}};
  const int size = of.bits[0] == 8 ? 0 : of.bits[0] == 16 ? 1 : of.bits[0] == 32 ? 2 : -1;
  if (of.kind > kRealChannels && of.kind < 32) return format = Format(0xc0), kSuccess;  // the driver refuses it
  if (size < 0 || of.kind < 0 || of.kind >= 32 || channels == 3) return kInvalidChannels;
  format = formats[of.kind][size];
  return bytes_of(format) ? static_cast<int>(kSuccess) : kInvalidChannels;
}

Channels channels_of(Format format, unsigned channels) {
  const bool is_signed = format == Format::S8 || format == Format::S16 || format == Format::S32;
  Channels made = {{0, 0, 0, 0}, is_float(format) ? kRealChannels : is_signed ? kSignedChannels : kUnsignedChannels};
  for (unsigned k = 0; k < channels && k < 4; k++) made.bits[k] = static_cast<int>(8 * bytes_of(format));
  return made;
}

}  // namespace vgpu

// It returns a structure: whose place is the first argument, and the result.
API Channels* cudaCreateChannelDesc(Channels* made, int x, int y, int z, int w, int kind) {
  if (made) *made = {{x, y, z, w}, kind};
  return made;
}
API int cudaGetChannelDesc(Channels* to, void* array) {
  ArrayDescriptor of;
  if (int error = described(array, of)) return set_last_error(error);
  return set_last_error(give(to, channels_of(of.format, of.channels)));
}

API int cudaMalloc3DArray(Array** to, const Channels* of, Extents size, unsigned flags) {
  ArrayDescriptor made;
  if (int wrong = describe(of, size, flags, made)) return set_last_error(wrong);
  return set_last_error(cuArray3DCreate_v2(to, &made));
}
API int cudaMallocArray(Array** to, const Channels* of, size_t width, size_t height, unsigned flags) {
  return cudaMalloc3DArray(to, of, {width, height, 0}, flags);
}
API int cudaFreeArray(void* array) { return set_last_error(array ? cuArrayDestroy(array) : kSuccess); }
API int cudaMallocMipmappedArray(MipmappedArray** to, const Channels* of, Extents size, unsigned levels, unsigned flags) {
  ArrayDescriptor made;
  if (int wrong = describe(of, size, flags, made)) return set_last_error(wrong);
  return set_last_error(cuMipmappedArrayCreate(to, &made, levels));
}
API int cudaGetMipmappedArrayLevel(Array** to, void* array, unsigned level) {
  return set_last_error(cuMipmappedArrayGetLevel(to, array, level));
}
API int cudaFreeMipmappedArray(void* array) { return set_last_error(array ? cuMipmappedArrayDestroy(array) : kSuccess); }
API int cudaArrayGetInfo(Channels* channels, Extents* size, unsigned* flags, void* array) {
  ArrayDescriptor of;
  if (int error = described(array, of)) return set_last_error(error);
  if (channels) *channels = channels_of(of.format, of.channels);
  if (size) *size = {of.width, of.height, of.depth};
  if (flags) *flags = of.flags;
  return kSuccess;
}

API int cudaMallocPitch(void** to, size_t* pitch, size_t width, size_t height) {
  return set_last_error(cuMemAllocPitch_v2(reinterpret_cast<uint64_t*>(to), pitch, width, height, 4));
}
API int cudaMalloc3D(Pitched* to, Extents size) {
  if (!to || (size.height && size.depth > SIZE_MAX / size.height)) return set_last_error(kInvalidValue);
  const int error = cudaMallocPitch(&to->at, &to->pitch, size.width, size.height * size.depth);
  if (!error) to->width = size.width, to->height = size.height;
  return error;
}
namespace {

// Slices lie `height` rows apart, of which fewer may be filled.
int fill_box(const Pitched& of, int value, const Extents& size, int (*fill_rows)(const Fill&, void*), void* stream) {
  for (size_t z = 0; z < size.depth; z++)
    if (int error = fill_rows(
            {address(of.at) + z * of.height * of.pitch, of.pitch, static_cast<uint8_t>(value), 1, size.width, size.height},
            stream))
      return set_last_error(error);
  return kSuccess;
}

}  // namespace
API int cudaMemset3D(Pitched of, int value, Extents size) {
  return fill_box(of, value, size, [](const Fill& what, void*) { return fill_now(what); }, nullptr);
}
API int cudaMemset3DAsync(Pitched of, int value, Extents size, void* stream) {
  return fill_box(of, value, size, [](const Fill& what, void* in) { return fill_on(in, what); }, stream);
}

API int cudaMemcpy3D(const Parameters* p) { return copy(p, true, nullptr); }
API int cudaMemcpy3DAsync(const Parameters* p, void* stream) { return copy(p, false, stream); }
API int cudaMemcpy3DPeer(const PeerParameters* p) {
  if (!p) return set_last_error(kInvalidValue);
  const Parameters plain{p->from_array, p->from, p->from_memory, p->to_array, p->to, p->to_memory, p->size, 4};
  return copy(&plain, true, nullptr);
}

API int cudaMemcpy2DToArray(void* to, size_t x, size_t y, const void* from, size_t pitch, size_t width, size_t height,
                            int kind) {
  return copy({side(memory(from, pitch)), side(to, {x, y, 0}), width, height, 1}, kind, true, nullptr);
}
API int cudaMemcpy2DToArrayAsync(void* to, size_t x, size_t y, const void* from, size_t pitch, size_t width, size_t height,
                                 int kind, void* stream) {
  return copy({side(memory(from, pitch)), side(to, {x, y, 0}), width, height, 1}, kind, false, stream);
}
API int cudaMemcpy2DFromArray(void* to, size_t pitch, void* from, size_t x, size_t y, size_t width, size_t height, int kind) {
  return copy({side(from, {x, y, 0}), side(memory(to, pitch)), width, height, 1}, kind, true, nullptr);
}
API int cudaMemcpy2DFromArrayAsync(void* to, size_t pitch, void* from, size_t x, size_t y, size_t width, size_t height,
                                   int kind, void* stream) {
  return copy({side(from, {x, y, 0}), side(memory(to, pitch)), width, height, 1}, kind, false, stream);
}
API int cudaMemcpy2DArrayToArray(void* to, size_t to_x, size_t to_y, void* from, size_t x, size_t y, size_t width,
                                 size_t height, int kind) {
  return copy({side(from, {x, y, 0}), side(to, {to_x, to_y, 0}), width, height, 1}, kind, true, nullptr);
}
API int cudaMemcpyToArray(void* to, size_t x, size_t y, const void* from, size_t n, int kind) {
  return copy_kind(kind, cuMemcpyHtoA_v2(to, offset_in(to, x, y), from, n));
}
API int cudaMemcpyToArrayAsync(void* to, size_t x, size_t y, const void* from, size_t n, int kind, void* stream) {
  return copy_kind(kind, cuMemcpyHtoAAsync_v2(to, offset_in(to, x, y), from, n, stream));
}
API int cudaMemcpyFromArray(void* to, void* from, size_t x, size_t y, size_t n, int kind) {
  return copy_kind(kind, cuMemcpyAtoH_v2(to, from, offset_in(from, x, y), n));
}
API int cudaMemcpyFromArrayAsync(void* to, void* from, size_t x, size_t y, size_t n, int kind, void* stream) {
  return copy_kind(kind, cuMemcpyAtoHAsync_v2(to, from, offset_in(from, x, y), n, stream));
}
API int cudaMemcpyArrayToArray(void* to, size_t to_x, size_t to_y, void* from, size_t x, size_t y, size_t n, int kind) {
  return copy_kind(kind, cuMemcpyAtoA_v2(to, offset_in(to, to_x, to_y), from, offset_in(from, x, y), n));
}
