// The memory from which kernels themselves take some, by malloc: a piece of the device's, made when it is first used.
#pragma once
#include <cstdint>
#include <map>

#include "memory.h"

namespace vgpu {

class DeviceHeap {
 public:
  explicit DeviceHeap(DeviceMemory& memory) : memory_(memory) {}

  uint64_t bytes() const { return bytes_; }
  bool resize(uint64_t bytes);  // false: it is in use

  // 0 where there is no room; else the next place that fits, so that the same calls give the same addresses.
  uint64_t allocate(uint64_t bytes);
  bool deallocate(uint64_t at);  // false: nothing begins there

 private:
  DeviceMemory& memory_;
  uint64_t bytes_ = 8 << 20;  // as on a card where nobody says otherwise
  uint64_t at_ = 0;           // 0: not made yet
  uint64_t used_ = 0;
  std::unique_ptr<AddressRange> address_range_;
  std::map<uint64_t, uint64_t> allocated_;  // address: bytes
};

}  // namespace vgpu
