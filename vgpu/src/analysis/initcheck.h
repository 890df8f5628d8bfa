// VGPU_CHECK=initcheck: reads of memory that nobody wrote since it was allocated, or, of shared memory, since its block began.
#pragma once
#include <map>
#include <vector>

#include "core/observer.h"

namespace vgpu {

class UninitializedReads : public Observer {
 public:
  void on_launch_begin(const Launch&) override;
  void on_access(const WarpContext&, const Instruction&, const MemoryAccess&) override;
  void on_launch_end(const Launch&, const LaunchResult&) override;

 private:
  struct SharedShadow {
    uint32_t block;
    std::vector<uint8_t> written;
  };  // the memory is one block's after the other
  struct CachedRange {
    uint64_t begin = 0, end = 0;
    uint8_t* written = nullptr;
  };
  struct UninitializedRead {
    uint64_t thread;
    Location at;
    uint64_t times;
  };

  uint8_t* written(const WarpContext& warp, const uint8_t* at, uint32_t bytes);
  SharedShadow& shared(const WarpContext& warp);

  std::map<const uint8_t*, SharedShadow> shared_;
  CachedRange recent_;
  std::map<uint32_t, UninitializedRead> reads_;  // the first of each line
};

}  // namespace vgpu
