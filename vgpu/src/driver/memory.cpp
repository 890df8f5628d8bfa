// Allocations, copies and fills.
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

#include "api.h"
#include "capture.h"
#include "streams.h"

using namespace vgpu;

namespace {

DeviceMemory& memory() { return Device::get().memory(); }

// What was allocated, by where it begins, and in which context: it goes with that.  Managed memory is the device's and the
// host's; pinned memory is the host's, that the device made and alone frees.
enum class MemoryKind { device, managed, pinned };
struct Owner {
  const void* context;
  MemoryKind kind;
};
struct Owners {
  std::mutex lock;
  std::map<uint64_t, Owner> of;
  static Owners& get() {
    static Owners* one = new Owners;
    return *one;
  }
  void add(uint64_t at, MemoryKind kind) {
    const void* context = owning_context();
    std::lock_guard<std::mutex> hold(lock);
    of[at] = {context, kind};
  }
  bool is(uint64_t at, MemoryKind kind) {
    std::lock_guard<std::mutex> hold(lock);
    auto found = of.find(at);
    return found != of.end() && found->second.kind == kind;
  }
  bool remove(uint64_t at, bool pinned) {
    std::lock_guard<std::mutex> hold(lock);
    auto found = of.find(at);
    if (found == of.end() || (found->second.kind == MemoryKind::pinned) != pinned) return false;
    return of.erase(found), true;
  }
};

constexpr uint64_t kAllocationAlignment = 256;  // that CUDA guarantees (CUDA C++ Programming Guide, device memory accesses)

// Managed memory is the host's, too, which writes it without a call.
int allocate(uint64_t* to, size_t bytes, bool managed = false) {
  if (!to || !bytes) return kInvalidValue;
  return translate_exceptions([=] {
    if (CudaResult broken = Device::get().sticky_error()) return broken;
    void* at = memory().allocate_aligned(bytes, kAllocationAlignment, managed);
    if (at) Owners::get().add(address(at), managed ? MemoryKind::managed : MemoryKind::device);
    return *to = address(at), at ? kSuccess : kOutOfMemory;
  });
}
CudaResult release_now(uint64_t at) {
  if (!memory().deallocate(pointer(at))) return kInvalidValue;
  return Owners::get().remove(at, false), kSuccess;
}
int release(uint64_t at) {
  if (!at) return kSuccess;
  if (CudaResult refused = refuse_while_capturing()) return refused;
  if (CudaResult broken = wait_for_all()) return broken;
  return release_now(at);
}
bool begins_allocation(uint64_t at) {
  const Allocation found = memory().find(at);
  return found.device && found.origin == at;
}

int allocate_host(void** to, size_t bytes) {
  if (in_host_function()) return kNotPermitted;
  if (!to || !bytes) return kInvalidValue;
  if (CudaResult refused = refuse_while_capturing()) return refused;
  void* at = bytes <= PTRDIFF_MAX ? std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096) : nullptr;
  if (!(*to = at)) return kOutOfMemory;
  Owners::get().add(address(at), MemoryKind::pinned);
  return memory().register_host(at, bytes), kSuccess;
}
int free_host(void* at) {
  if (in_host_function()) return kNotPermitted;
  if (CudaResult refused = refuse_while_capturing()) return refused;
  wait_for_all();
  if (!Owners::get().remove(address(at), true)) return kInvalidValue;
  return memory().unregister_host(at), std::free(at), kSuccess;
}

bool known(uint64_t at, size_t bytes, bool device) {
  if (!at) return false;
  // Of memory that may be the host's nothing is known, but what begins in an allocation must end there.
  return !device && !memory().find(at).end ? true : memory().covers(at, bytes);
}
CudaResult check(const Copy& what) {
  const bool fine =
      !what.bytes || (known(what.to, what.bytes, what.to_device) && known(what.from, what.bytes, what.from_device));
  return fine ? kSuccess : kInvalidValue;
}
size_t bytes_of_rows(const Fill& what) { return (what.rows - 1) * what.pitch + what.count * what.size; }
CudaResult check(const Fill& what) {
  if (!what.rows || !what.count) return kSuccess;
  const bool large = what.count > SIZE_MAX / what.size / 2 || (what.rows > 1 && what.pitch > SIZE_MAX / what.rows / 2);
  const bool odd = what.at % what.size || (what.rows > 1 && (what.pitch % what.size || what.pitch < what.count * what.size));
  return large || odd || !known(what.at, bytes_of_rows(what), true) ? kInvalidValue : kSuccess;
}
CudaResult fill(const Fill& what, uint32_t operation) {
  if (CudaResult wrong = check(what)) return wrong;
  if (!what.count) return kSuccess;  // then its address may be null
  for (size_t row = 0; row < what.rows; row++) {
    char* at = static_cast<char*>(pointer(what.at + row * what.pitch));
    Device::get().on_transfer(operation, {address(at), 0, what.count * what.size, what.value, uint32_t(what.size)});
    if (what.size == 1) std::memset(at, static_cast<int>(what.value), what.count);
    else
      for (size_t k = 0; k < what.count; k++) std::memcpy(at + k * what.size, &what.value, what.size);
    memory().mark_written(address(at), what.count * what.size);
  }
  return kSuccess;
}

template <class T> int set(uint64_t at, T value, size_t count) { return fill_now({at, 0, value, sizeof value, count, 1}); }
template <class T> int set_on(void* stream, uint64_t at, T value, size_t count) {
  return fill_on(stream, {at, 0, value, sizeof value, count, 1});
}
}  // namespace

namespace vgpu {

bool managed(uint64_t at, size_t bytes) {
  const Allocation found = memory().find(at);
  return found.end && found.device && bytes <= found.end - at && Owners::get().is(found.origin, MemoryKind::managed);
}

void free_memory_of(const void* context) {
  std::vector<std::pair<uint64_t, MemoryKind>> gone;
  {
    Owners& owners = Owners::get();
    std::lock_guard<std::mutex> hold(owners.lock);
    for (const auto& [at, owner] : owners.of)
      if (owner.context == context) gone.emplace_back(at, owner.kind);
  }
  for (const auto& [at, kind] : gone) {
    if (kind == MemoryKind::pinned) free_host(pointer(at));
    else release_now(at);
  }
}

CudaResult copy_at_once(const Copy& what, uint32_t operation) {
  if (CudaResult wrong = check(what)) return wrong;
  Device::get().on_transfer(operation, {what.to, what.from, what.bytes});
  if (what.bytes) std::memmove(pointer(what.to), pointer(what.from), what.bytes);
  return memory().propagate_written(what.to, what.from, what.bytes), kSuccess;
}

bool pinned(const void* at) {
  const Allocation found = memory().find(address(at));
  return found.end && !found.device;
}
bool is_pageable(uint64_t at) { return !memory().find(at).end; }
bool is_awaited(uint64_t from, uint64_t to) { return !memory().find(to).device || pinned(pointer(from)); }
// What is done at once is in the order of the legacy default stream.
int copy_now(const Copy& what) {
  if (CudaResult refused = refuse_legacy()) return refused;
  const Stream& legacy = *stream_of(nullptr);
  if (CudaResult broken = is_pageable(what.from) ? wait_for(legacy) : come_after(legacy)) return broken;
  if (CudaResult wrong = copy_at_once(what, add_operation(legacy))) return wrong;
  return is_awaited(what.from, what.to) ? wait_for(legacy) : kSuccess;
}
int copy_in_order(void* handle, const Copy& what) {
  Stream* stream = stream_of(handle);
  if (!stream) return kInvalidHandle;
  return in_order(handle, [what, operation = add_operation(*stream)] { return copy_at_once(what, operation); });
}
int copy_on(void* handle, const Copy& what) {
  Stream* stream = stream_of(handle);
  if (!stream) return kInvalidHandle;
  if (CudaResult broken = Device::get().sticky_error()) return broken;
  if (CudaResult wrong = check(what)) return wrong;
  if (auto taken = capture(*stream, [=](void* later) { return copy_in_order(later, what); })) return *taken;
  if (!is_pageable(what.to) && !is_pageable(what.from)) return copy_in_order(handle, what);
  const uint32_t operation = add_operation(*stream);
  if (CudaResult broken = come_after(*stream)) return broken;
  if (CudaResult wrong = copy_at_once(what, operation)) return wrong;
  return is_pageable(what.to) ? wait_for(*stream) : kSuccess;
}
int fill_now(const Fill& what) {
  if (CudaResult refused = refuse_if_captured(*stream_of(nullptr))) return refused;
  const Stream& legacy = *stream_of(nullptr);
  if (CudaResult broken = come_after(legacy)) return broken;
  return fill(what, add_operation(legacy));
}
int fill_on(void* handle, const Fill& what) {
  Stream* stream = stream_of(handle);
  if (!stream) return kInvalidHandle;
  if (CudaResult broken = Device::get().sticky_error()) return broken;
  if (CudaResult wrong = check(what)) return wrong;
  if (auto taken = capture(*stream, [=](void* later) { return fill_on(later, what); })) return *taken;
  return in_order(handle, [what, operation = add_operation(*stream)] { return fill(what, operation); });
}

}  // namespace vgpu

API int cuMemGetInfo_v2(size_t* free, size_t* total) {
  if (free) *free = memory().total() - memory().used();
  if (total) *total = memory().total();
  return free && total ? kSuccess : kInvalidValue;
}
API int cuMemAlloc_v2(uint64_t* to, size_t bytes) {
  if (CudaResult refused = refuse_while_capturing()) return refused;
  return allocate(to, bytes);
}
API int cuMemAllocAsync(uint64_t* to, size_t bytes, void* stream) {
  return stream_of(stream) ? allocate(to, bytes) : kInvalidHandle;
}
API int cuMemAllocManaged(uint64_t* to, size_t bytes, unsigned flags) {
  if (CudaResult refused = refuse_while_capturing()) return refused;
  return flags == 1 || flags == 2 ? allocate(to, bytes, true) : kInvalidValue;
}
API int cuMemFree_v2(uint64_t at) { return release(at); }
// What a capture frees stays: its graph may be launched again.
API int cuMemFreeAsync(uint64_t at, void* stream) {
  if (!stream_of(stream)) return kInvalidHandle;
  if (!begins_allocation(at)) return kInvalidValue;
  if (auto taken = capture(*stream_of(stream), [](void*) { return int(kSuccess); })) return *taken;
  return in_order(stream, [=] { return release_now(at); });
}
API int cuMemHostAlloc(void** to, size_t bytes, unsigned) { return allocate_host(to, bytes); }
API int cuMemAllocHost_v2(void** to, size_t bytes) { return allocate_host(to, bytes); }
API int cuMemFreeHost(void* at) { return free_host(at); }
API int cuMemHostRegister_v2(void* at, size_t bytes, unsigned) {
  if (!at || !bytes || bytes > UINT64_MAX - address(at)) return kInvalidValue;
  return memory().register_host(at, bytes) ? kSuccess : kAlreadyRegistered;
}
API int cuMemHostUnregister(void* at) {
  if (!at) return kInvalidValue;
  return wait_for_all(), memory().unregister_host(at) ? kSuccess : kNotRegistered;
}
API int cuMemHostGetDevicePointer_v2(uint64_t* to, void* at, unsigned) {
  return pinned(at) ? give(to, address(at)) : kInvalidValue;
}
API int cuMemHostGetFlags(unsigned* flags, void* at) { return pinned(at) ? give(flags, 0) : kInvalidValue; }
API int cuPointerSetAttribute(const void* value, int, uint64_t at) {
  return value && memory().find(at).end ? kSuccess : kInvalidValue;
}
// Another process has no way to this one's memory.
API int cuIpcGetMemHandle(void*, uint64_t) { return kNotSupported; }
API int cuIpcOpenMemHandle_v2(uint64_t*, const void*, unsigned) { return kNotSupported; }
API int cuIpcCloseMemHandle(uint64_t) { return kNotSupported; }
API int cuMemGetAddressRange_v2(uint64_t* base, size_t* bytes, uint64_t at) {
  Allocation found = memory().find(at);
  if (!found.end) return kNotFound;
  if (base) *base = found.begin;
  if (bytes) *bytes = found.end - found.begin;
  return kSuccess;
}

API int cuMemcpy(uint64_t to, uint64_t from, size_t n) { return copy_now({to, from, n}); }
API int cuMemcpyAsync(uint64_t to, uint64_t from, size_t n, void* stream) { return copy_on(stream, {to, from, n}); }
API int cuMemcpyHtoD_v2(uint64_t to, const void* from, size_t n) { return copy_now({to, address(from), n, true}); }
API int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t n, void* stream) {
  return copy_on(stream, {to, address(from), n, true});
}
API int cuMemcpyDtoH_v2(void* to, uint64_t from, size_t n) { return copy_now({address(to), from, n, false, true}); }
API int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t n, void* stream) {
  return copy_on(stream, {address(to), from, n, false, true});
}
API int cuMemcpyDtoD_v2(uint64_t to, uint64_t from, size_t n) { return copy_now({to, from, n, true, true}); }
API int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t n, void* stream) {
  return copy_on(stream, {to, from, n, true, true});
}

API int cuMemsetD8_v2(uint64_t at, uint8_t value, size_t n) { return set(at, value, n); }
API int cuMemsetD8Async(uint64_t at, uint8_t value, size_t n, void* stream) { return set_on(stream, at, value, n); }
API int cuMemsetD16_v2(uint64_t at, uint16_t value, size_t n) { return set(at, value, n); }
API int cuMemsetD16Async(uint64_t at, uint16_t value, size_t n, void* stream) { return set_on(stream, at, value, n); }
API int cuMemsetD32_v2(uint64_t at, uint32_t value, size_t n) { return set(at, value, n); }
API int cuMemsetD32Async(uint64_t at, uint32_t value, size_t n, void* stream) { return set_on(stream, at, value, n); }

PER_THREAD(cuMemcpy, _ptds);
PER_THREAD(cuMemcpyAsync, _ptsz);
PER_THREAD(cuMemcpyHtoD_v2, _ptds);
PER_THREAD(cuMemcpyHtoDAsync_v2, _ptsz);
PER_THREAD(cuMemcpyDtoH_v2, _ptds);
PER_THREAD(cuMemcpyDtoHAsync_v2, _ptsz);
PER_THREAD(cuMemcpyDtoD_v2, _ptds);
PER_THREAD(cuMemcpyDtoDAsync_v2, _ptsz);
PER_THREAD(cuMemsetD8_v2, _ptds);
PER_THREAD(cuMemsetD8Async, _ptsz);
PER_THREAD(cuMemsetD32_v2, _ptds);
PER_THREAD(cuMemsetD32Async, _ptsz);

namespace {

// CUpointer_attribute.  What an address may lie in the midst of is told of the whole allocation.
enum : int {
  kContextOf = 1,
  kKind = 2,
  kOnDevice = 3,
  kOnHost = 4,
  kNumber = 7,
  kManaged = 8,
  kRangeBegin = 11,
  kRangeBytes = 12,
  kMapped = 13
};

template <class T> CudaResult put(void* out, T value) { return std::memcpy(out, &value, sizeof value), kSuccess; }

CudaResult tell(void* out, int which, uint64_t at, const Allocation& of) {
  if (!out || which < 1 || which > 21) return kInvalidValue;
  switch (which) {
    case kContextOf: return put(out, of.device ? context() : nullptr);
    case kKind: return put(out, of.device ? 2u : of.end ? 1u : 0u);
    case kOnDevice: return put(out, of.end ? at : 0);
    case kOnHost: return put(out, of.end && !of.device ? at : 0);
    case kNumber: return put(out, of.end ? of.number + 1 : 0);
    case kManaged: return put(out, of.device && managed(at, 1) ? 1 : 0);
    case kRangeBegin: return put(out, of.begin);
    case kRangeBytes: return put(out, of.end - of.begin);
    case kMapped: return put(out, of.end ? 1 : 0);
    case 14:
    case 17:
    case 20:
    case 21: return put(out, uint64_t(0));
    default: return put(out, 0);
  }
}

}  // namespace

API int cuPointerGetAttribute(void* out, int which, uint64_t at) {
  const Allocation found = memory().find(at);
  return found.end ? tell(out, which, at, found) : kInvalidValue;
}
API int cuPointerGetAttributes(unsigned count, const int* which, void** out, uint64_t at) {
  if (!which || !out) return kInvalidValue;
  const Allocation found = memory().find(at);
  for (unsigned k = 0; k < count; k++)
    if (CudaResult wrong = tell(out[k], which[k], at, found)) return wrong;
  return kSuccess;
}
