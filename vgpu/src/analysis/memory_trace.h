// VGPU_TRACE=LAUNCH:FILE: the atomics and stores of one launch in the order in which they came, a line each:
// line of PTX, a (atomic) or s (store), space and allocation, offset, thread.
#pragma once
#include <cstdio>

#include "core/observer.h"

namespace vgpu {

class Trace : public Observer {
 public:
  Trace(uint64_t launch, std::FILE* to) : launch_(launch), to_(to) {}
  ~Trace() override { std::fclose(to_); }
  void begin(const Launch&) override;
  void touch(const Lanes&, const Instruction&, const Touch&) override;
  void end(const Launch&, const Outcome&) override { std::fflush(to_); }

 private:
  uint64_t launch_, written_ = 0;
  bool on_ = false;
  std::FILE* to_;
};

}  // namespace vgpu
