// The device's memory: its allocations, and whether an access lies within one.
//
// A device address is an address of this process, since frameworks treat device pointers as opaque.  All allocations lie in one
// range of addresses, which is much larger than the memory; the system backs only pages that are used.
#pragma once
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "address_range.h"
#include "split_mix.h"
#include "written_bytes.h"

namespace vgpu {

enum class Access : uint8_t { None, ReadOnly, ReadWrite };  // what kernels may do

struct Allocation {
  uint64_t begin = 0, end = 0;
  bool device = false;  // otherwise host memory that kernels may access
  uint64_t number = 0;  // in order of allocation
  uint64_t whole_begin = 0;  // of the allocation, of which [begin, end) may be a piece
  Access access = Access::ReadWrite;
  bool contains(uint64_t first, uint64_t last_end) const { return first >= begin && last_end <= end && first <= last_end; }
};

class DeviceMemory {
 public:
  // placement: a seed that moves allocations to other addresses, within CUDA's guarantees.
  explicit DeviceMemory(uint64_t total, std::optional<uint64_t> placement = {});
  ~DeviceMemory();

  // Returns nullptr if there is no room.  Memory is zeroed, so that runs do not differ.  written: the zeros count as initialized.
  // alignment: at most a page, which is the default.
  void* allocate(uint64_t bytes, bool written = false) { return allocate(bytes, bytes, written, kPage); }
  void* allocate_aligned(uint64_t bytes, uint64_t alignment, bool written) {
    return allocate(bytes, bytes, written, alignment);
  }
  bool deallocate(void* address);  // returns false if no allocation begins there
  // Lets kernels access host memory, which is pinned then; returns false if it already is.
  bool register_host(const void* address, uint64_t bytes);
  bool unregister_host(const void* address);
  void protect(const void* address);  // makes an allocation read-only for kernels

  // Allocates memory of which only the added pieces may be accessed; they lie in `span` bytes of addresses.
  void* allocate_in_pieces(uint64_t bytes, uint64_t span);
  void add_piece(uint64_t allocation, uint64_t address, uint64_t bytes);
  void remove_piece(uint64_t allocation, uint64_t address);

  // CUDA's virtual memory management: reserved addresses, to which parts of files are mapped (driver/virtual_memory.cpp).
  uint64_t reserve(uint64_t bytes, uint64_t alignment);
  void unreserve(uint64_t address);
  bool count_used(uint64_t bytes);  // counts bytes as used; returns false if there are not enough
  void count_freed(uint64_t bytes);
  bool map(uint64_t address, uint64_t bytes, int file, uint64_t offset);
  void unmap(uint64_t address);
  void set_access(uint64_t address, Access access);

  // Returns the allocation, or the piece of one, that contains the address; an empty one if there is none.
  Allocation find(uint64_t address) const;
  bool covers(uint64_t address, uint64_t bytes) const;  // whether adjacent allocations cover the whole range
  uint64_t used() const { return used_; }
  uint64_t total() const { return total_; }
  uint64_t generation() const { return generation_; }  // changes when memory is freed or its access changes

  // Tracks which bytes of device memory were written, in allocations made after track_writes().
  void track_writes() { tracks_writes_ = true; }
  void mark_written(uint64_t address, uint64_t bytes);
  void propagate_written(uint64_t to, uint64_t from, uint64_t bytes);  // for a copy: unwritten bytes stay unwritten
  uint64_t first_unwritten(uint64_t address, uint64_t bytes) const;  // 0: all bytes were written
  WrittenBytes written_map(const Allocation& allocation) const;

 private:
  enum class Kind : uint8_t { Own, Host, Mapped };  // made by an allocate function, by register_host(), by map()
  struct AllocationState {
    uint64_t bytes, span;
    Kind kind;
    uint64_t number;
    uint8_t* written = nullptr;  // a map (core/written_bytes.h); nullptr: not tracked
    Access access = Access::ReadWrite;
    std::unique_ptr<std::map<uint64_t, uint64_t>> pieces;  // address to bytes
  };

  static constexpr uint64_t kPage = 4096;

  void* allocate(uint64_t bytes, uint64_t span, bool written, uint64_t alignment);
  uint64_t choose_address(uint64_t span, uint64_t alignment);
  bool reserve_range();
  void erase(std::map<uint64_t, AllocationState>::iterator block);
  Allocation find_locked(uint64_t address) const;  // the caller holds the lock
  WrittenBytes written_at(uint64_t address, uint64_t bytes) const;

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
