// PTX of the device runtime functions that kernels call (grid barriers).
#include "cudadevrt.h"

#include "link.h"

namespace vgpu {
namespace {

// A grid barrier: the threads of a block synchronize, one of them records the block's arrival and waits until the last block has
// arrived and starts the next round, and the threads synchronize again.
const char* const kGridBarrier = R"(.version 7.0
.target sm_70
.address_size 64
.weak .global .align 4 .u32 vgpu_grid_arrived;
.weak .global .align 4 .u32 vgpu_grid_round;
.weak .func (.param .b64 result) cudaCGGetIntrinsicHandle(.param .b32 scope)
{ .reg .b64 %one; mov.u64 %one, 1; st.param.b64 [result], %one; ret; }
.weak .func (.param .b32 result) cudaCGSynchronize(.param .b64 handle, .param .b32 flags)
{
  .reg .pred %others, %last, %waits;
  .reg .b32 %x, %y, %z, %blocks, %come, %round, %now;
  bar.sync 0;
  mov.u32 %x, %tid.x; mov.u32 %y, %tid.y; mov.u32 %z, %tid.z;
  or.b32 %x, %x, %y; or.b32 %x, %x, %z; setp.ne.u32 %others, %x, 0; @%others bra together;
  mov.u32 %x, %nctaid.x; mov.u32 %y, %nctaid.y; mov.u32 %z, %nctaid.z;
  mul.lo.u32 %blocks, %x, %y; mul.lo.u32 %blocks, %blocks, %z; sub.u32 %blocks, %blocks, 1;
  membar.gl;
  ld.volatile.global.u32 %round, [vgpu_grid_round];
  atom.global.inc.u32 %come, [vgpu_grid_arrived], %blocks;
  setp.eq.u32 %last, %come, %blocks; @%last bra open;
wait:
  nanosleep.u32 100;
  ld.volatile.global.u32 %now, [vgpu_grid_round];
  setp.eq.u32 %waits, %now, %round; @%waits bra wait;
  bra together;
open:
  add.u32 %now, %round, 1;
  st.volatile.global.u32 [vgpu_grid_round], %now;
together:
  bar.sync 0;
  mov.u32 %x, 0; st.param.b32 [result], %x;
  ret;
}
)";

}  // namespace

std::string link_cudadevrt(std::string text) {
  if (text.find("cudaCG") == std::string::npos) return text;
  return ptx::link_modules({std::move(text), kGridBarrier});
}

}  // namespace vgpu
