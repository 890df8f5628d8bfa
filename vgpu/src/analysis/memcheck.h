// VGPU_CHECK=memcheck: reports accesses to shared memory outside of the kernel's variables.  On hardware variables are adjacent,
// so that an access beyond one is not detected; here guard gaps separate them.
#pragma once
#include <map>

#include "core/observer.h"

namespace vgpu {

class Memcheck : public Observer {
 public:
  void on_launch_begin(const Launch& launch) override { launch_ = &launch, accesses_.clear(); }
  void on_access(const WarpContext&, const Instruction&, const MemoryAccess&) override;
  void on_launch_end(const Launch&, const LaunchResult&) override;

 private:
  struct Access {
    uint64_t thread;
    uint32_t offset;
    AccessKind kind;
    uint64_t times;
  };

  bool is_within_variable(uint32_t offset, uint32_t bytes) const;

  const Launch* launch_ = nullptr;
  std::map<uint32_t, Access> accesses_;  // the first access of each line
};

}  // namespace vgpu
