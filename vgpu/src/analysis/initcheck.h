// VGPU_CHECK=initialised: reads of memory that nobody wrote since it was allocated, or, of shared memory, since its block began.
#pragma once
#include <map>
#include <vector>

#include "core/observer.h"

namespace vgpu {

class Initialised : public Observer {
 public:
  void begin(const Launch&) override;
  void touch(const Lanes&, const Instruction&, const Touch&) override;
  void end(const Launch&, const Outcome&) override;

 private:
  struct Shared {
    uint32_t block;
    std::vector<uint8_t> written;
  };  // the memory is one block's after the other
  struct Known {
    uint64_t begin = 0, end = 0;
    uint8_t* written = nullptr;
  };
  struct Read {
    uint64_t thread;
    Location at;
    uint64_t times;
  };

  uint8_t* written(const Lanes& w, const uint8_t* at, uint32_t bytes);
  Shared& shared(const Lanes& w);

  std::map<const uint8_t*, Shared> shared_;
  Known recent_;
  std::map<uint32_t, Read> reads_;  // the first of each line
};

}  // namespace vgpu
