// VGPU_MEMORY_TRACE=LAUNCH:FILE: writes the atomics and stores of one launch in order of execution. Each gets a line of text with
// the line of PTX, a (atomic) or s (store), the space and allocation, the offset, and the thread.
#pragma once
#include <cstdio>

#include "core/observer.h"

namespace vgpu {

class MemoryTrace : public Observer {
 public:
  MemoryTrace(uint64_t launch, std::FILE* file) : launch_(launch), file_(file) {}
  ~MemoryTrace() override { std::fclose(file_); }
  void on_launch_begin(const Launch&) override;
  void on_access(const WarpContext&, const Instruction&, const MemoryAccess&) override;
  void on_launch_end(const Launch&, const LaunchResult&) override { std::fflush(file_); }

 private:
  uint64_t launch_, written_ = 0;
  bool is_enabled_ = false;
  std::FILE* file_;
};

}  // namespace vgpu
