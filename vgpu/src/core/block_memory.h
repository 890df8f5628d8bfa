// The memory of a block: its shared memory, and the kernel's parameters.
#pragma once
#include <vector>

#include "launch.h"
#include "memory_reservation.h"
#include "warp.h"

namespace vgpu {

class BlockMemory {
 public:
  explicit BlockMemory(const Launch& launch, size_t block_bytes);  // block_bytes: of all other state of the block

  void clear();
  uint8_t* shared() { return align_within(shared_, shared_align_); }
  uint32_t shared_bytes() const { return dynamic_offset_ + dynamic_bytes_; }
  uint32_t dynamic_offset() const { return dynamic_offset_; }  // of the launch's dynamic shared memory

  // Fills the launch constants in a kernel's frame, unless it has them: words of parameters or constant variables, in the
  // layout of registers, which machine code reads as operands.
  void write_launch_constants(CallFrame& frame);

  // Points the context's registers and memory to those of this call frame.
  void bind(WarpContext& context, CallFrame* frame);

 private:
  uint32_t dynamic_offset_, dynamic_bytes_, shared_align_, parameter_bytes_;
  std::vector<uint8_t> shared_, parameters_;
  MemoryReservation reservation_;
};

}  // namespace vgpu
