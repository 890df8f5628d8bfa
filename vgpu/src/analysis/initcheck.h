// VGPU_CHECK=initcheck: reports reads of memory that was not written since its allocation, or for shared memory since the start
// of its block.
#pragma once
#include <map>
#include <vector>

#include "core/observer.h"
#include "core/written_bytes.h"

namespace vgpu {

class UninitializedReads : public Observer {
 public:
  void on_launch_begin(const Launch&) override;
  void on_access(const WarpContext&, const Instruction&, const MemoryAccess&) override;
  void on_launch_end(const Launch&, const LaunchResult&) override;

 private:
  struct SharedShadow {
    uint32_t block;
    std::vector<uint8_t> written;  // a bit for each byte (core/written_bytes.h)
  };  // blocks use the same memory in turn
  struct CachedRange {  // an allocation
    uint64_t begin = 0, end = 0;
    WrittenBytes written;
  };
  struct UninitializedRead {
    uint64_t thread;
    Location at;
    uint64_t times;
  };

  WrittenBytes written_map(const WarpContext& warp, const uint8_t* address, uint32_t bytes);
  SharedShadow& shared_shadow(const WarpContext& warp);

  std::map<const uint8_t*, SharedShadow> shared_;  // by the address of a block's shared memory
  CachedRange recent_;  // of the latest global access
  std::map<uint32_t, UninitializedRead> reads_;  // the first read of each line
};

}  // namespace vgpu
