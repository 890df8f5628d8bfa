// Executes branches, calls and returns: moves lanes to their next instructions.
#pragma once
#include "block_memory.h"
#include "launch.h"
#include "warp.h"

namespace vgpu {

// Whether a group continues its slice with the next instruction.
enum class Step : uint8_t { Next, Stop };

class ControlFlow {
 public:
  ControlFlow(const Launch& launch, BlockMemory& memory, WarpContext& context)
      : launch_(launch), memory_(memory), context_(context) {}

  // Executed by the lanes of `mask`; the group's other lanes continue behind the instruction.  A fault ends the slice.
  Step branch(Warp& warp, uint32_t group, uint32_t mask, uint32_t target);
  Step branch_indexed(Warp& warp, uint32_t group, const Instruction& i, uint32_t mask);
  Step branch_computed(Warp& warp, uint32_t group, const Instruction& i, uint32_t mask);
  Step branch_on_divergence(Warp& warp, uint32_t group, const Instruction& i, uint32_t guarded);
  Step call(Warp& warp, uint32_t group, const Instruction& i, uint32_t mask);
  Step return_from_call(Warp& warp, uint32_t group, uint32_t mask);

  KernelFault fault() const { return fault_; }  // of the last step

 private:
  template <class F> Step branch_each(Warp& warp, uint32_t group, uint32_t mask, F target_of);
  Step fail(KernelFault fault) { return fault_ = fault, Step::Stop; }
  const DecodedFunction* resolve_indirect_callee(Warp& warp, uint32_t group, const Instruction& i, uint32_t& mask);

  const Launch& launch_;
  BlockMemory& memory_;
  WarpContext& context_;
  KernelFault fault_ = KernelFault::None;
};

}  // namespace vgpu
