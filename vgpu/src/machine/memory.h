// The device's memory: what was allocated, and whether an access lies within it.
//
// An address of the device is an address of this process: frameworks copy with pointers that they take apart nowhere.
#pragma once
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>

namespace vgpu {

struct Extent {
  uint64_t begin = 0, end = 0;
  bool device = false;  // or the host's, that kernels may use
  uint64_t number = 0;  // of the allocation, in the order in which they were made
  bool holds(uint64_t low, uint64_t behind) const { return low >= begin && behind <= end && low <= behind; }
};

class Memory {
 public:
  explicit Memory(uint64_t total) : total_(total) {}
  ~Memory();

  // nullptr where there is no room; zeroed, as a first run must not differ from a second.  written: that is what it begins with.
  void* allocate(uint64_t bytes, bool written = false);
  bool release(void* at);          // false: nothing begins there
  void add(const void* at, uint64_t bytes);  // somebody else's memory that kernels may use: pinned host memory
  void remove(const void* at);

  // The allocation that holds this address; an empty one where none does.
  Extent find(uint64_t address) const;
  uint64_t used() const { return used_; }
  uint64_t total() const { return total_; }
  uint64_t generation() const { return generation_; }  // changes whenever an extent goes

  // Which bytes of the device's own memory were written, for who asks: nothing is known of what was allocated before.
  void watch() { watching_ = true; }
  void wrote(uint64_t at, uint64_t bytes);
  void copied(uint64_t to, uint64_t from, uint64_t bytes);  // what was never written is handed on
  uint64_t unwritten(uint64_t at, uint64_t bytes) const;    // the first address; 0: all was
  uint8_t* written(const Extent& of) const;  // a byte for each of its own, not zero: it was; nullptr: nothing is known

 private:
  struct Block {
    uint64_t bytes;
    bool own;
    uint64_t number;
    uint8_t* written = nullptr;
  };
  uint8_t* written_at(uint64_t at, uint64_t bytes) const;
  mutable std::mutex lock_;
  std::map<uint64_t, Block> blocks_;
  std::atomic<bool> watching_{false};
  uint64_t total_, used_ = 0, generation_ = 1, made_ = 0;
};

}  // namespace vgpu
