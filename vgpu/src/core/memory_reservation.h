// The share of one block or call in this process's memory; the sum of all shares is limited, as on a real device.
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
