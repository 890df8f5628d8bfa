// CUDA's virtual memory management: reserving addresses, creating memory, mapping it and setting its access.
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "api.h"
#include "handles.h"
#include "streams.h"

using namespace vgpu;

namespace {

constexpr size_t kGranularity = 2 << 20;
constexpr int kPinned = 1, kDeviceLocation = 1;             // CUmemAllocationType, CUmemLocationType
enum Flags : int { kNoAccess = 0, kReads = 1, kWrites = 3 };  // CUmemAccess_flags

struct MemoryLocation { int kind, id; };                             // CUmemLocation
struct Properties {                                         // CUmemAllocationProp
  int type, handle_types;
  MemoryLocation location;
  void* metadata;
  unsigned char flags[8];
};
struct AccessDescriptor {
  MemoryLocation location;
  int flags;
};             // CUmemAccessDesc

// Physical memory: an anonymous file, which exists as long as a handle or a mapping refers to it.
struct Physical {
  Properties properties;
  size_t bytes;
  int file;
  Physical(const Properties& allocation_properties, size_t size, int descriptor)
      : properties(allocation_properties), bytes(size), file(descriptor) {}
  Physical(const Physical&) = delete;
  ~Physical() { close(file), Device::get().memory().count_freed(bytes); }
};
using PhysicalHandle = std::shared_ptr<Physical>;
struct Mapping {
  size_t bytes;
  PhysicalHandle memory;
  int flags = kNoAccess;
};

struct AddressSpace {
  std::mutex lock;
  std::map<uint64_t, size_t> reserved;
  std::map<uint64_t, Mapping> mapped;
  static AddressSpace& get() {
    static AddressSpace* space = new AddressSpace;
    return *space;
  }

  bool contains(uint64_t at, size_t bytes) const {  // whether one reservation contains the range
    auto next = reserved.upper_bound(at);
    if (next == reserved.begin()) return false;
    const auto& [begin, size] = *--next;
    return at - begin <= size && bytes <= size - (at - begin);
  }
  bool any_mapped(uint64_t at, size_t bytes) const {
    auto next = mapped.lower_bound(at + bytes);
    return next != mapped.begin() && std::prev(next)->first + std::prev(next)->second.bytes > at;
  }
  // Calls f(address, mapping) for all mappings of the range, which must consist of whole adjacent mappings.
  template <class F> CudaResult for_each_mapping(uint64_t at, size_t bytes, F f) {
    if (!bytes || bytes > UINT64_MAX - at) return kInvalidValue;
    uint64_t next = at;
    for (auto mapping = mapped.find(at); mapping != mapped.end() && mapping->first == next && next < at + bytes; ++mapping)
      next += mapping->second.bytes;
    if (next != at + bytes) return kInvalidValue;
    for (next = at; next < at + bytes;) {
      auto mapping = mapped.find(next);
      next += mapping->second.bytes;
      f(mapping->first, mapping->second);
    }
    return kSuccess;
  }
  Mapping* find(uint64_t at) {
    auto next = mapped.upper_bound(at);
    if (next == mapped.begin()) return nullptr;
    auto& [begin, mapping] = *--next;
    return at - begin < mapping.bytes ? &mapping : nullptr;
  }
};

bool is_whole_granules(uint64_t number) { return number && number % kGranularity == 0; }
bool is_supported(const Properties* p) {
  return p && p->type == kPinned && p->location.kind == kDeviceLocation && p->location.id == 0;
}
PhysicalHandle* find_physical(uint64_t handle) { return find_alive<PhysicalHandle>(pointer(handle)); }
int write_handle(uint64_t* handle, PhysicalHandle memory) {
  return write_output(handle, address(Handles<PhysicalHandle>::all().add(std::make_unique<PhysicalHandle>(std::move(memory)))));
}
Access access_of(int flags) { return flags == kWrites ? Access::ReadWrite : flags == kReads ? Access::ReadOnly : Access::None; }

}  // namespace

API int cuMemGetAllocationGranularity(size_t* bytes, const Properties* properties, int option) {
  return is_supported(properties) && (option == 0 || option == 1) ? write_output(bytes, kGranularity) : kInvalidValue;
}
API int cuMemAddressReserve(uint64_t* address, size_t bytes, size_t alignment, uint64_t, uint64_t flags) {
  if (!address || !is_whole_granules(bytes) || (alignment & (alignment - 1)) || flags) return kInvalidValue;
  const uint64_t reserved = Device::get().memory().reserve(bytes, std::max<uint64_t>(alignment, kGranularity));
  if (!reserved) return kOutOfMemory;
  AddressSpace& space = AddressSpace::get();
  std::lock_guard<std::mutex> guard(space.lock);
  return space.reserved[reserved] = bytes, *address = reserved, kSuccess;
}
API int cuMemAddressFree(uint64_t at, size_t bytes) {
  AddressSpace& space = AddressSpace::get();
  std::lock_guard<std::mutex> guard(space.lock);
  auto reservation = space.reserved.find(at);
  if (reservation == space.reserved.end() || reservation->second != bytes || space.any_mapped(at, bytes)) return kInvalidValue;
  space.reserved.erase(reservation);
  return Device::get().memory().unreserve(at), kSuccess;
}

API int cuMemCreate(uint64_t* handle, size_t bytes, const Properties* properties, uint64_t flags) {
  if (!handle || !is_whole_granules(bytes) || !is_supported(properties) || flags) return kInvalidValue;
  if (properties->handle_types) return kNotSupported;  // sharing between processes is not supported
  if (!Device::get().memory().count_used(bytes)) return kOutOfMemory;
  const int file = static_cast<int>(syscall(SYS_memfd_create, "vgpu", 1u));  // flag 1: close on exec
  auto memory = std::make_shared<Physical>(*properties, bytes, file);
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes))) return kOutOfMemory;
  return write_handle(handle, std::move(memory));
}
API int cuMemRelease(uint64_t handle) {
  return Handles<PhysicalHandle>::all().remove(pointer(handle)) ? kSuccess : kInvalidValue;
}
API int cuMemRetainAllocationHandle(uint64_t* handle, void* at) {
  AddressSpace& space = AddressSpace::get();
  std::lock_guard<std::mutex> guard(space.lock);
  const Mapping* mapping = space.find(address(at));
  return handle && mapping ? write_handle(handle, mapping->memory) : kInvalidValue;
}
API int cuMemGetAllocationPropertiesFromHandle(Properties* properties, uint64_t handle) {
  const PhysicalHandle* memory = find_physical(handle);
  return memory ? write_output(properties, (*memory)->properties) : kInvalidValue;
}
API int cuMemExportToShareableHandle(void*, uint64_t, int, uint64_t) { return kNotSupported; }
API int cuMemImportFromShareableHandle(uint64_t*, void*, int) { return kNotSupported; }

API int cuMemMap(uint64_t at, size_t bytes, size_t offset, uint64_t handle, uint64_t flags) {
  const PhysicalHandle* memory = find_physical(handle);
  if (!memory || !is_whole_granules(bytes) || at % kGranularity || offset % kGranularity || flags) return kInvalidValue;
  if (offset > (*memory)->bytes || bytes > (*memory)->bytes - offset) return kInvalidValue;
  AddressSpace& space = AddressSpace::get();
  std::lock_guard<std::mutex> guard(space.lock);
  if (!space.contains(at, bytes) || space.any_mapped(at, bytes)) return kInvalidValue;
  if (!Device::get().memory().map(at, bytes, (*memory)->file, offset)) return kOutOfMemory;
  return space.mapped[at] = {bytes, *memory}, kSuccess;
}
API int cuMemUnmap(uint64_t at, size_t bytes) {
  if (CudaResult error = wait_for_all()) return error;
  AddressSpace& space = AddressSpace::get();
  std::lock_guard<std::mutex> guard(space.lock);
  std::vector<uint64_t> unmapped;
  CudaResult result = space.for_each_mapping(at, bytes, [&](uint64_t begin, Mapping&) { unmapped.push_back(begin); });
  for (uint64_t begin : unmapped) Device::get().memory().unmap(begin), space.mapped.erase(begin);
  return result;
}
API int cuMemSetAccess(uint64_t at, size_t bytes, const AccessDescriptor* descriptors, size_t count) {
  if (!descriptors || !count) return kInvalidValue;
  int flags = -1;
  for (size_t k = 0; k < count; k++) {
    const AccessDescriptor& descriptor = descriptors[k];
    if (descriptor.location.kind != kDeviceLocation || descriptor.location.id ||
        (descriptor.flags != kNoAccess && descriptor.flags != kReads && descriptor.flags != kWrites))
      return kInvalidValue;
    flags = descriptor.flags;
  }
  AddressSpace& space = AddressSpace::get();
  std::lock_guard<std::mutex> guard(space.lock);
  return space.for_each_mapping(at, bytes, [=](uint64_t begin, Mapping& mapping) {
    mapping.flags = flags, Device::get().memory().set_access(begin, access_of(flags));
  });
}
API int cuMemGetAccess(unsigned long long* flags, const MemoryLocation* location, uint64_t at) {
  if (!flags || !location) return kInvalidValue;
  AddressSpace& space = AddressSpace::get();
  std::lock_guard<std::mutex> guard(space.lock);
  const Mapping* mapping = space.find(at);
  return mapping ? write_output(flags, mapping->flags) : kInvalidValue;
}
