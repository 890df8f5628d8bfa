// The device's memory: what was allocated, and whether an access lies within it.
//
// An address of the device is an address of this process: frameworks copy with pointers that they take apart nowhere.  Its
// memory lies in one range of addresses, many times as large as the memory, which the system backs where it is used.
#pragma once
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "address_range.h"
#include "split_mix.h"

namespace vgpu {

enum class Access : uint8_t { None, Reads, All };  // of kernels

struct Allocation {
  uint64_t begin = 0, end = 0;
  bool device = false;   // or the host's, that kernels may use
  uint64_t number = 0;   // of the allocation, in the order in which they were made
  uint64_t origin = 0;   // where that begins: an extent may be a piece of it
  Access access = Access::All;
  bool contains(uint64_t low, uint64_t behind) const { return low >= begin && behind <= end && low <= behind; }
};

class DeviceMemory {
 public:
  // placement: the seed by which allocations lie elsewhere, as far as CUDA's guarantees let them.
  explicit DeviceMemory(uint64_t total, std::optional<uint64_t> placement = {});
  ~DeviceMemory();

  // nullptr where there is no room; zeroed, as a first run must not differ from a second.  written: that is what it begins with.
  // alignment: at most a page; by default a page.
  void* allocate(uint64_t bytes, bool written = false) { return allocate(bytes, bytes, written, kPage); }
  void* allocate_aligned(uint64_t bytes, uint64_t alignment, bool written) {
    return allocate(bytes, bytes, written, alignment);
  }
  bool deallocate(void* at);          // false: nothing begins there
  bool register_host(const void* at,
                     uint64_t bytes);  // somebody else's memory that kernels may use: pinned host memory; false: it is
  bool unregister_host(const void* at);
  void protect(const void* at);    // an allocation that kernels only read from now on

  // An allocation of which only pieces may be used, which lie in `span` bytes of addresses.
  void* allocate_divided(uint64_t bytes, uint64_t span);
  void add_piece(uint64_t in, uint64_t at, uint64_t bytes);
  void remove_piece(uint64_t in, uint64_t at);

  // Addresses without memory, and memory without addresses (a file), of which parts are mapped: see driver/virtual_memory.cpp.
  uint64_t reserve(uint64_t bytes, uint64_t alignment);
  void unreserve(uint64_t at);
  bool charge(uint64_t bytes);     // counts as used; false: there is not so much
  void discharge(uint64_t bytes);
  bool map(uint64_t at, uint64_t bytes, int file, uint64_t offset);
  void unmap(uint64_t at);
  void set_access(uint64_t at, Access access);

  // The extent that holds this address; an empty one where none does.
  Allocation find(uint64_t address) const;
  bool covers(uint64_t at, uint64_t bytes) const;  // all of it, by one or several that lie side by side
  uint64_t used() const { return used_; }
  uint64_t total() const { return total_; }
  uint64_t generation() const { return generation_; }  // changes whenever an extent goes

  // Which bytes of the device's own memory were written, for who asks: nothing is known of what was allocated before.
  void track_writes() { tracks_writes_ = true; }
  void mark_written(uint64_t at, uint64_t bytes);
  void propagate_written(uint64_t to, uint64_t from, uint64_t bytes);  // what was never written is handed on
  uint64_t first_unwritten(uint64_t at, uint64_t bytes) const;    // the first address; 0: all was
  uint8_t* written_map(const Allocation& of) const;  // a byte for each of its own, not zero: it was; nullptr: nothing is known

 private:
  enum class Kind : uint8_t { Own, Host, Mapped };
  struct AllocationState {
    uint64_t bytes, span;
    Kind kind;
    uint64_t number;
    uint8_t* written = nullptr;
    Access access = Access::All;
    std::unique_ptr<std::map<uint64_t, uint64_t>> pieces;  // address: bytes
  };

  static constexpr uint64_t kPage = 4096;

  void* allocate(uint64_t bytes, uint64_t span, bool written, uint64_t alignment);
  uint64_t place(uint64_t span, uint64_t alignment);
  bool open();
  void erase(std::map<uint64_t, AllocationState>::iterator which);
  Allocation find_locked(uint64_t address) const;  // under the lock
  uint8_t* written_at(uint64_t at, uint64_t bytes) const;

  mutable std::mutex lock_;
  std::map<uint64_t, AllocationState> blocks_;
  std::unique_ptr<AddressRange> address_range_;
  std::optional<SplitMix64> placement_;
  uint64_t range_ = 0, range_bytes_ = 0;
  std::atomic<bool> tracks_writes_{false};
  uint64_t total_, used_ = 0, allocation_count_ = 0;
  std::atomic<uint64_t> generation_{1};
};

}  // namespace vgpu
