// Virtual memory: addresses are reserved, memory is made, mapped to them, and accessible once somebody says so.
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

struct Place { int kind, id; };                             // CUmemLocation
struct Properties {                                         // CUmemAllocationProp
  int type, handle_types;
  Place place;
  void* metadata;
  unsigned char flags[8];
};
struct Description {
  Place place;
  int flags;
};             // CUmemAccessDesc

// Memory without an address, for as long as a handle or a mapping is there: a file that lies nowhere but in memory.
struct Physical {
  Properties properties;
  size_t bytes;
  int file;
  Physical(const Properties& of, size_t size, int held) : properties(of), bytes(size), file(held) {}
  Physical(const Physical&) = delete;
  ~Physical() { close(file), Device::get().memory().discharge(bytes); }
};
using Shared = std::shared_ptr<Physical>;
struct Mapping {
  size_t bytes;
  Shared memory;
  int flags = kNoAccess;
};

struct Space {
  std::mutex lock;
  std::map<uint64_t, size_t> reserved;
  std::map<uint64_t, Mapping> mapped;
  static Space& get() {
    static Space* one = new Space;
    return *one;
  }

  bool contains(uint64_t at, size_t bytes) const {  // within one reservation
    auto next = reserved.upper_bound(at);
    if (next == reserved.begin()) return false;
    const auto& [begin, size] = *--next;
    return at - begin <= size && bytes <= size - (at - begin);
  }
  bool any_mapped(uint64_t at, size_t bytes) const {
    auto next = mapped.lower_bound(at + bytes);
    return next != mapped.begin() && std::prev(next)->first + std::prev(next)->second.bytes > at;
  }
  // f(address, mapping) of all that lie in the range, which must consist of nothing but whole ones.
  template <class F> CudaResult each(uint64_t at, size_t bytes, F f) {
    if (!bytes || bytes > UINT64_MAX - at) return kInvalidValue;
    uint64_t next = at;
    for (auto one = mapped.find(at); one != mapped.end() && one->first == next && next < at + bytes; ++one)
      next += one->second.bytes;
    if (next != at + bytes) return kInvalidValue;
    for (next = at; next < at + bytes;) {
      auto one = mapped.find(next);
      next += one->second.bytes;
      f(one->first, one->second);
    }
    return kSuccess;
  }
  Mapping* find(uint64_t at) {
    auto next = mapped.upper_bound(at);
    if (next == mapped.begin()) return nullptr;
    auto& [begin, one] = *--next;
    return at - begin < one.bytes ? &one : nullptr;
  }
};

bool whole(uint64_t number) { return number && number % kGranularity == 0; }
bool known(const Properties* p) { return p && p->type == kPinned && p->place.kind == kDeviceLocation && p->place.id == 0; }
Shared* physical(uint64_t handle) { return alive<Shared>(pointer(handle)); }
int hand_out(uint64_t* handle, Shared memory) {
  return give(handle, address(Handles<Shared>::all().add(std::make_unique<Shared>(std::move(memory)))));
}
Access access_of(int flags) { return flags == kWrites ? Access::All : flags == kReads ? Access::Reads : Access::None; }

}  // namespace

API int cuMemGetAllocationGranularity(size_t* bytes, const Properties* properties, int option) {
  return known(properties) && (option == 0 || option == 1) ? give(bytes, kGranularity) : kInvalidValue;
}
API int cuMemAddressReserve(uint64_t* to, size_t bytes, size_t alignment, uint64_t, uint64_t flags) {
  if (!to || !whole(bytes) || (alignment & (alignment - 1)) || flags) return kInvalidValue;
  const uint64_t at = Device::get().memory().reserve(bytes, std::max<uint64_t>(alignment, kGranularity));
  if (!at) return kOutOfMemory;
  Space& space = Space::get();
  std::lock_guard<std::mutex> hold(space.lock);
  return space.reserved[at] = bytes, *to = at, kSuccess;
}
API int cuMemAddressFree(uint64_t at, size_t bytes) {
  Space& space = Space::get();
  std::lock_guard<std::mutex> hold(space.lock);
  auto found = space.reserved.find(at);
  if (found == space.reserved.end() || found->second != bytes || space.any_mapped(at, bytes)) return kInvalidValue;
  space.reserved.erase(found);
  return Device::get().memory().unreserve(at), kSuccess;
}

API int cuMemCreate(uint64_t* handle, size_t bytes, const Properties* properties, uint64_t flags) {
  if (!handle || !whole(bytes) || !known(properties) || flags) return kInvalidValue;
  if (properties->handle_types) return kNotSupported;  // another process has no way to this one's memory
  if (!Device::get().memory().charge(bytes)) return kOutOfMemory;
  const int file = static_cast<int>(syscall(SYS_memfd_create, "vgpu", 1u));  // closed where a program is started
  auto made = std::make_shared<Physical>(*properties, bytes, file);
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes))) return kOutOfMemory;
  return hand_out(handle, std::move(made));
}
API int cuMemRelease(uint64_t handle) { return Handles<Shared>::all().take(pointer(handle)) ? kSuccess : kInvalidValue; }
API int cuMemRetainAllocationHandle(uint64_t* handle, void* at) {
  Space& space = Space::get();
  std::lock_guard<std::mutex> hold(space.lock);
  const Mapping* found = space.find(address(at));
  return handle && found ? hand_out(handle, found->memory) : kInvalidValue;
}
API int cuMemGetAllocationPropertiesFromHandle(Properties* properties, uint64_t handle) {
  const Shared* memory = physical(handle);
  return memory ? give(properties, (*memory)->properties) : kInvalidValue;
}
API int cuMemExportToShareableHandle(void*, uint64_t, int, uint64_t) { return kNotSupported; }
API int cuMemImportFromShareableHandle(uint64_t*, void*, int) { return kNotSupported; }

API int cuMemMap(uint64_t at, size_t bytes, size_t offset, uint64_t handle, uint64_t flags) {
  const Shared* memory = physical(handle);
  if (!memory || !whole(bytes) || at % kGranularity || offset % kGranularity || flags) return kInvalidValue;
  if (offset > (*memory)->bytes || bytes > (*memory)->bytes - offset) return kInvalidValue;
  Space& space = Space::get();
  std::lock_guard<std::mutex> hold(space.lock);
  if (!space.contains(at, bytes) || space.any_mapped(at, bytes)) return kInvalidValue;
  if (!Device::get().memory().map(at, bytes, (*memory)->file, offset)) return kOutOfMemory;
  return space.mapped[at] = {bytes, *memory}, kSuccess;
}
API int cuMemUnmap(uint64_t at, size_t bytes) {
  if (CudaResult broken = wait_for_all()) return broken;
  Space& space = Space::get();
  std::lock_guard<std::mutex> hold(space.lock);
  std::vector<uint64_t> gone;
  CudaResult result = space.each(at, bytes, [&](uint64_t begin, Mapping&) { gone.push_back(begin); });
  for (uint64_t begin : gone) Device::get().memory().unmap(begin), space.mapped.erase(begin);
  return result;
}
API int cuMemSetAccess(uint64_t at, size_t bytes, const Description* wanted, size_t count) {
  if (!wanted || !count) return kInvalidValue;
  int flags = -1;
  for (size_t k = 0; k < count; k++) {
    const Description& one = wanted[k];
    if (one.place.kind != kDeviceLocation || one.place.id ||
        (one.flags != kNoAccess && one.flags != kReads && one.flags != kWrites))
      return kInvalidValue;
    flags = one.flags;
  }
  Space& space = Space::get();
  std::lock_guard<std::mutex> hold(space.lock);
  return space.each(at, bytes, [=](uint64_t begin, Mapping& one) {
    one.flags = flags, Device::get().memory().set_access(begin, access_of(flags));
  });
}
API int cuMemGetAccess(unsigned long long* flags, const Place* place, uint64_t at) {
  if (!flags || !place) return kInvalidValue;
  Space& space = Space::get();
  std::lock_guard<std::mutex> hold(space.lock);
  const Mapping* found = space.find(at);
  return found ? give(flags, found->flags) : kInvalidValue;
}
