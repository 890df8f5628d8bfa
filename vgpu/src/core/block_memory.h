// What a block has of memory: its shared memory, and the kernel's parameters.
#pragma once
#include <vector>

#include "launch.h"
#include "memory_reservation.h"
#include "warp.h"

namespace vgpu {

class BlockMemory {
 public:
  explicit BlockMemory(const Launch& launch, size_t block_bytes);  // block_bytes: what the block takes besides

  void clear();
  uint8_t* shared() { return align_within(shared_, shared_align_); }
  uint32_t shared_bytes() const { return dynamic_offset_ + dynamic_bytes_; }
  uint32_t dynamic_offset() const { return dynamic_offset_; }  // of the shared memory that the launch brings

  // The words of a kernel's frame that come with the launch; once is enough.
  void write_launch_constants(CallFrame& frame);

  // From now on the context's registers and memory are this call's.
  void bind(WarpContext& context, CallFrame* frame);

 private:
  uint32_t dynamic_offset_, dynamic_bytes_, shared_align_, parameter_bytes_;
  std::vector<uint8_t> shared_, parameters_;
  MemoryReservation charge_;
};

}  // namespace vgpu
