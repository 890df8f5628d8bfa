// The share of one block or call in the memory of a launch.  A launch runs in one thread, so the sum of a thread's shares is
// limited, as memory is on a real device.
#pragma once
#include <cstdint>

#include "error.h"

namespace vgpu {

class MemoryReservation {
 public:
  MemoryReservation() = default;
  MemoryReservation(const MemoryReservation&) = delete;
  ~MemoryReservation() { total_reserved() -= bytes_; }

  // Replaces the size of this share.  Throws OutOfResources if the sum exceeds the limit.
  void set(uint64_t bytes) {
    total_reserved() += bytes - bytes_;
    bytes_ = bytes;
    if (total_reserved() > kQuota) throw OutOfResources("more memory for threads in flight than this device has");
  }

 private:
  static constexpr uint64_t kQuota = 1ull << 30;
  static uint64_t& total_reserved() {
    thread_local uint64_t bytes = 0;
    return bytes;
  }
  uint64_t bytes_ = 0;
};

}  // namespace vgpu
