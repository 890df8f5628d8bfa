// What instructions of textures and of surfaces share.
#pragma once
#include "core/instruction_set.h"
#include "ptx/decoder.h"

namespace vgpu {

// Sets a: the register of the handle.
void decode_object(Decoder& d, const Statement& s, const Operand& o, Instruction& i);

// Sets b, c and d to the coordinates' registers, of this type, and e to the layer's.  How many coordinates, and 4 where there
// is a layer.
uint8_t decode_place(Decoder& d, const Statement& s, const Operand& o, std::string_view type, Instruction& i);

// f(warp, i, lanes, object) for the lanes of each handle.  Those whose handle is none, or is of what is freed, are a fault.
template <class T, class F> void by_object(WarpContext& warp, const Instruction& i, F f) {
  const uint64_t* handles = lane_values<uint64_t>(warp, i.a);
  for (uint32_t left = warp.active_mask; left;) {
    const uint64_t handle = handles[__builtin_ctz(left)];
    uint32_t same = 0;
    for (uint32_t l = 0; l < kWarpSize; l++) same |= uint32_t(handles[l] == handle) << l;
    same &= left;
    T object;
    if (!warp.textures->find(handle, object) || !object.texels.alive(*warp.memory))
      return warp.set_fault(KernelFault::NoObject, handle);
    f(warp, i, same, object);
    left &= ~same;
  }
}

}  // namespace vgpu
