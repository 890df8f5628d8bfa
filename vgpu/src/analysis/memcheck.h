// VGPU_CHECK=memcheck: accesses to shared memory that lie in none of the kernel's variables.  On a card these lie side by side,
// and one that runs into another is not noticed; so here is room between them.
#pragma once
#include <map>

#include "core/observer.h"

namespace vgpu {

class Memcheck : public Observer {
 public:
  void on_launch_begin(const Launch& launch) override { launch_ = &launch, found_.clear(); }
  void on_access(const WarpContext&, const Instruction&, const MemoryAccess&) override;
  void on_launch_end(const Launch&, const LaunchResult&) override;

 private:
  struct Access {
    uint64_t thread;
    uint32_t offset;
    AccessKind what;
    uint64_t times;
  };

  bool declared(uint32_t offset, uint32_t bytes) const;

  const Launch* launch_ = nullptr;
  std::map<uint32_t, Access> found_;  // the first of each line
};

}  // namespace vgpu
