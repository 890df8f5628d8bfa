// The heap from which kernels allocate by malloc().  It is allocated in device memory at its first use.
#pragma once
#include <cstdint>
#include <map>

#include "memory.h"

namespace vgpu {

class DeviceHeap {
 public:
  explicit DeviceHeap(DeviceMemory& memory) : memory_(memory) {}

  uint64_t bytes() const { return bytes_; }
  bool resize(uint64_t bytes);  // returns false if the heap is already in use

  // Returns 0 if there is no room.  The same sequence of calls gives the same addresses.
  uint64_t allocate(uint64_t bytes);
  bool deallocate(uint64_t address);  // returns false if no allocation begins there

 private:
  DeviceMemory& memory_;
  uint64_t bytes_ = 8 << 20;  // CUDA's default (cudaLimitMallocHeapSize)
  uint64_t begin_ = 0;        // 0: not allocated yet
  uint64_t used_ = 0;
  std::unique_ptr<AddressRange> address_range_;
  std::map<uint64_t, uint64_t> allocated_;  // address to bytes
};

}  // namespace vgpu
