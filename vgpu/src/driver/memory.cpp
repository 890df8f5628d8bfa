// Allocations, copies and fills.  DeviceMemory::find() returns an Allocation whose end is 0 if none contains the address.
// VGPU_CHECK=order numbers each copy and fill (number_operation()), and counts wait_without_ordering() as no wait of the host.
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

// The context and kind of each allocation, which is freed with its context.  Pinned memory is host memory that the driver
// allocated.
enum class MemoryKind { Device, Managed, Pinned };
struct Owner {
  const void* context;
  MemoryKind kind;
};
struct Owners {
  std::mutex lock;
  std::map<uint64_t, Owner> by_address;
  static Owners& get() {
    static Owners* owners = new Owners;
    return *owners;
  }
  void add(uint64_t address, MemoryKind kind) {
    const void* context = owning_context();
    std::lock_guard<std::mutex> guard(lock);
    by_address[address] = {context, kind};
  }
  bool is(uint64_t address, MemoryKind kind) {
    std::lock_guard<std::mutex> guard(lock);
    auto entry = by_address.find(address);
    return entry != by_address.end() && entry->second.kind == kind;
  }
  bool remove(uint64_t address, bool is_host) {
    std::lock_guard<std::mutex> guard(lock);
    auto entry = by_address.find(address);
    if (entry == by_address.end() || (entry->second.kind == MemoryKind::Pinned) != is_host) return false;
    return by_address.erase(entry), true;
  }
};

constexpr uint64_t kAllocationAlignment = 256;  // that CUDA guarantees (CUDA C++ Programming Guide, device memory accesses)

// as_managed: the host may write it without a call, so it counts as initialized.
int allocate(uint64_t* to, size_t bytes, bool as_managed = false) {
  if (!to || !bytes) return kInvalidValue;
  return translate_exceptions([=] {
    if (CudaResult error = Device::get().sticky_error()) return error;
    void* at = memory().allocate_aligned(bytes, kAllocationAlignment, as_managed);
    if (at) Owners::get().add(address(at), as_managed ? MemoryKind::Managed : MemoryKind::Device);
    return *to = address(at), at ? kSuccess : kOutOfMemory;
  });
}
CudaResult release_now(uint64_t at) {
  if (!memory().deallocate(pointer(at))) return kInvalidValue;
  return Owners::get().remove(at, false), kSuccess;
}
int release(uint64_t at) {
  if (!at) return kSuccess;
  if (CudaResult error = refuse_while_capturing()) return error;
  if (CudaResult error = wait_for_all()) return error;
  return release_now(at);
}
bool begins_allocation(uint64_t at) {
  const Allocation allocation = memory().find(at);
  return allocation.device && allocation.whole_begin == at;
}

int allocate_host(void** to, size_t bytes) {
  if (in_host_function()) return kNotPermitted;
  if (!to || !bytes) return kInvalidValue;
  if (CudaResult error = refuse_while_capturing()) return error;
  void* at = bytes <= PTRDIFF_MAX ? std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096) : nullptr;
  if (!(*to = at)) return kOutOfMemory;
  Owners::get().add(address(at), MemoryKind::Pinned);
  return memory().register_host(at, bytes), kSuccess;
}
int free_host(void* at) {
  if (in_host_function()) return kNotPermitted;
  if (CudaResult error = refuse_while_capturing()) return error;
  wait_for_all();
  if (!Owners::get().remove(address(at), true)) return kInvalidValue;
  return memory().unregister_host(at), std::free(at), kSuccess;
}

bool is_accessible_range(uint64_t at, size_t bytes, bool device) {
  if (!at) return false;
  // Pageable host memory cannot be checked, but a range that begins in an allocation must end in it.
  return !device && !memory().find(at).end ? true : memory().covers(at, bytes);
}
CudaResult check(const Copy& copy) {
  const bool is_valid = !copy.bytes || (is_accessible_range(copy.to, copy.bytes, copy.to_device) &&
                                        is_accessible_range(copy.from, copy.bytes, copy.from_device));
  return is_valid ? kSuccess : kInvalidValue;
}
size_t bytes_of_rows(const Fill& request) { return (request.rows - 1) * request.pitch + request.count * request.size; }
CudaResult check(const Fill& request) {
  if (!request.rows || !request.count) return kSuccess;
  const bool is_too_large =
      request.count > SIZE_MAX / request.size / 2 || (request.rows > 1 && request.pitch > SIZE_MAX / request.rows / 2);
  const bool is_misaligned =
      request.at % request.size ||
      (request.rows > 1 && (request.pitch % request.size || request.pitch < request.count * request.size));
  return is_too_large || is_misaligned || !is_accessible_range(request.at, bytes_of_rows(request), true) ? kInvalidValue
                                                                                                         : kSuccess;
}
CudaResult fill_immediately(const Fill& request, uint32_t operation) {
  if (CudaResult error = check(request)) return error;
  if (!request.count) return kSuccess;  // the address may be null
  for (size_t row = 0; row < request.rows; row++) {
    char* row_begin = static_cast<char*>(pointer(request.at + row * request.pitch));
    Device::get().on_transfer(operation,
                              {address(row_begin), 0, request.count * request.size, request.value, uint32_t(request.size)});
    if (request.size == 1) std::memset(row_begin, static_cast<int>(request.value), request.count);
    else
      for (size_t k = 0; k < request.count; k++) std::memcpy(row_begin + k * request.size, &request.value, request.size);
    memory().mark_written(address(row_begin), request.count * request.size);
  }
  return kSuccess;
}

template <class T> int set(uint64_t at, T value, size_t count) { return fill_now({at, 0, value, sizeof value, count, 1}); }
template <class T> int set_on(void* stream, uint64_t at, T value, size_t count) {
  return fill_on(stream, {at, 0, value, sizeof value, count, 1});
}
}  // namespace

namespace vgpu {

bool is_managed(uint64_t at, size_t bytes) {
  const Allocation allocation = memory().find(at);
  return allocation.end && allocation.device && bytes <= allocation.end - at &&
         Owners::get().is(allocation.whole_begin, MemoryKind::Managed);
}

void free_memory_of(const void* context) {
  std::vector<std::pair<uint64_t, MemoryKind>> allocations;
  {
    Owners& owners = Owners::get();
    std::lock_guard<std::mutex> guard(owners.lock);
    for (const auto& [at, owner] : owners.by_address)
      if (owner.context == context) allocations.emplace_back(at, owner.kind);
  }
  for (const auto& [at, kind] : allocations) {
    if (kind == MemoryKind::Pinned) free_host(pointer(at));
    else release_now(at);
  }
}

CudaResult copy_immediately(const Copy& copy, uint32_t operation) {
  if (CudaResult error = check(copy)) return error;
  Device::get().on_transfer(operation, {copy.to, copy.from, copy.bytes});
  if (copy.bytes) std::memmove(pointer(copy.to), pointer(copy.from), copy.bytes);
  return memory().propagate_written(copy.to, copy.from, copy.bytes), kSuccess;
}

bool is_pinned(const void* at) {
  const Allocation allocation = memory().find(address(at));
  return allocation.end && !allocation.device;
}
bool is_pageable(uint64_t at) { return !memory().find(at).end; }
bool is_awaited(uint64_t from, uint64_t to) { return !memory().find(to).device || is_pinned(pointer(from)); }
int copy_now(const Copy& copy) {
  if (CudaResult error = refuse_synchronous()) return error;
  const Stream& stream = default_stream();
  if (CudaResult error = is_pageable(copy.from) ? wait_for(stream) : wait_without_ordering(stream)) return error;
  if (CudaResult error = copy_immediately(copy, number_operation(stream))) return error;
  return is_awaited(copy.from, copy.to) ? wait_for(stream) : kSuccess;
}
int copy_in_order(void* handle, const Copy& copy) {
  Stream* stream = stream_of(handle);
  if (!stream) return kInvalidHandle;
  return in_order(handle, [copy, operation = number_operation(*stream)] { return copy_immediately(copy, operation); });
}
int copy_on(void* handle, const Copy& copy) {
  Stream* stream = stream_of(handle);
  if (!stream) return kInvalidHandle;
  if (CudaResult error = Device::get().sticky_error()) return error;
  if (CudaResult error = check(copy)) return error;
  if (auto capture_result = capture(*stream, [=](void* graph_stream) { return copy_in_order(graph_stream, copy); }))
    return *capture_result;
  if (!is_pageable(copy.to) && !is_pageable(copy.from)) return copy_in_order(handle, copy);
  const uint32_t operation = number_operation(*stream);
  if (CudaResult error = wait_without_ordering(*stream)) return error;
  if (CudaResult error = copy_immediately(copy, operation)) return error;
  return is_pageable(copy.to) ? wait_for(*stream) : kSuccess;
}
int fill_now(const Fill& request) {
  const Stream& stream = default_stream();
  if (CudaResult error = refuse_if_captured(stream)) return error;
  if (CudaResult error = wait_without_ordering(stream)) return error;
  return fill_immediately(request, number_operation(stream));
}
int fill_on(void* handle, const Fill& request) {
  Stream* stream = stream_of(handle);
  if (!stream) return kInvalidHandle;
  if (CudaResult error = Device::get().sticky_error()) return error;
  if (CudaResult error = check(request)) return error;
  if (auto capture_result = capture(*stream, [=](void* graph_stream) { return fill_on(graph_stream, request); }))
    return *capture_result;
  return in_order(handle, [request, operation = number_operation(*stream)] { return fill_immediately(request, operation); });
}

}  // namespace vgpu

API int cuMemGetInfo_v2(size_t* free, size_t* total) {
  if (free) *free = memory().total() - memory().used();
  if (total) *total = memory().total();
  return free && total ? kSuccess : kInvalidValue;
}
API int cuMemAlloc_v2(uint64_t* to, size_t bytes) {
  if (CudaResult error = refuse_while_capturing()) return error;
  return allocate(to, bytes);
}
API int cuMemAllocAsync(uint64_t* to, size_t bytes, void* stream) {
  Stream* target = stream_of(stream);
  if (!target) return kInvalidHandle;
  const int result = allocate(to, bytes);
  if (result == kSuccess) Device::get().on_allocation(number_operation(*target), *to);  // for VGPU_CHECK=order
  return result;
}
API int cuMemAllocManaged(uint64_t* to, size_t bytes, unsigned flags) {
  if (CudaResult error = refuse_while_capturing()) return error;
  return flags == 1 || flags == 2 ? allocate(to, bytes, true) : kInvalidValue;
}
API int cuMemFree_v2(uint64_t at) { return release(at); }
// Memory that is freed in a capture is kept, since its graph may be launched repeatedly.
API int cuMemFreeAsync(uint64_t at, void* stream) {
  Stream* target = stream_of(stream);
  if (!target) return kInvalidHandle;
  if (!begins_allocation(at)) return kInvalidValue;
  if (auto capture_result = capture(*target, [](void*) { return int(kSuccess); })) return *capture_result;
  return in_order(stream, [at, operation = number_operation(*target)] {
    Device::get().on_free(operation, memory().find(at));
    return release_now(at);
  });
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
  return is_pinned(at) ? write_output(to, address(at)) : kInvalidValue;
}
API int cuMemHostGetFlags(unsigned* flags, void* at) { return is_pinned(at) ? write_output(flags, 0) : kInvalidValue; }
API int cuPointerSetAttribute(const void* value, int, uint64_t at) {
  return value && memory().find(at).end ? kSuccess : kInvalidValue;
}
// Sharing memory between processes is not supported.
API int cuIpcGetMemHandle(void*, uint64_t) { return kNotSupported; }
API int cuIpcOpenMemHandle_v2(uint64_t*, const void*, unsigned) { return kNotSupported; }
API int cuIpcCloseMemHandle(uint64_t) { return kNotSupported; }
API int cuMemGetAddressRange_v2(uint64_t* base, size_t* bytes, uint64_t at) {
  Allocation allocation = memory().find(at);
  if (!allocation.end) return kNotFound;
  if (base) *base = allocation.begin;
  if (bytes) *bytes = allocation.end - allocation.begin;
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

// CUpointer_attribute.  Attributes are those of the whole allocation that contains the address.
enum : int {
  kContextOf = 1,
  kKind = 2,
  kOnDevice = 3,
  kOnHost = 4,
  kNumber = 7,
  kManaged = 8,
  kRangeBegin = 11,
  kRangeBytes = 12,
  kMapped = 13,
  kHandleTypes = 14,
  kAccessFlags = 16,
  kPool = 17,
  kMappingBytes = 18,
  kMappingBegin = 19,
  kMemoryBlock = 20
};
constexpr uint32_t kReadWrite = 3;  // an access flag

template <class T> CudaResult put(void* out, T value) { return std::memcpy(out, &value, sizeof value), kSuccess; }

CudaResult write_attribute(void* out, int attribute, uint64_t at, const Allocation& allocation) {
  if (!out || attribute < 1 || attribute > 21) return kInvalidValue;
  switch (attribute) {
    case kContextOf: return put(out, allocation.device ? context() : nullptr);
    case kKind: return put(out, allocation.device ? 2u : allocation.end ? 1u : 0u);
    case kOnDevice: return put(out, allocation.end ? at : 0);
    case kOnHost: return put(out, allocation.end && !allocation.device ? at : 0);
    case kNumber:
    case kMemoryBlock: return put(out, allocation.end ? allocation.number + 1 : 0);
    case kManaged: return put(out, allocation.device && is_managed(at, 1) ? 1 : 0);
    case kRangeBegin:
    case kMappingBegin: return put(out, allocation.begin);
    case kRangeBytes:
    case kMappingBytes: return put(out, allocation.end - allocation.begin);
    case kMapped: return put(out, allocation.end ? 1 : 0);
    case kAccessFlags: return put(out, allocation.end ? kReadWrite : 0u);
    case kHandleTypes:
    case kPool: return put(out, uint64_t(0));  // written with 64 bits
    default: return put(out, 0);
  }
}

}  // namespace

API int cuPointerGetAttribute(void* out, int attribute, uint64_t at) {
  const Allocation allocation = memory().find(at);
  return allocation.end ? write_attribute(out, attribute, at, allocation) : kInvalidValue;
}
API int cuPointerGetAttributes(unsigned count, const int* attributes, void** out, uint64_t at) {
  if (!attributes || !out) return kInvalidValue;
  const Allocation allocation = memory().find(at);
  for (unsigned k = 0; k < count; k++)
    if (CudaResult error = write_attribute(out[k], attributes[k], at, allocation)) return error;
  return kSuccess;
}

PER_THREAD(cuMemAllocAsync, _ptsz);
PER_THREAD(cuMemFreeAsync, _ptsz);
PER_THREAD(cuMemsetD16Async, _ptsz);
PER_THREAD(cuMemsetD16_v2, _ptds);
