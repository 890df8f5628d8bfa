// VGPU_MEMORY_TRACE=LAUNCH:FILE: the atomics and stores of one launch in the order in which they came, a line each:
// line of PTX, a (atomic) or s (store), space and allocation, offset, thread.
#pragma once
#include <cstdio>

#include "core/observer.h"

namespace vgpu {

class MemoryTrace : public Observer {
 public:
  MemoryTrace(uint64_t launch, std::FILE* to) : launch_(launch), to_(to) {}
  ~MemoryTrace() override { std::fclose(to_); }
  void on_launch_begin(const Launch&) override;
  void on_access(const WarpContext&, const Instruction&, const MemoryAccess&) override;
  void on_launch_end(const Launch&, const LaunchResult&) override { std::fflush(to_); }

 private:
  uint64_t launch_, written_ = 0;
  bool on_ = false;
  std::FILE* to_;
};

}  // namespace vgpu
