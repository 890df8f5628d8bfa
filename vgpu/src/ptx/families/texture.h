// Decoding and execution that texture and surface instructions share.
#pragma once
#include "core/instruction_set.h"
#include "ptx/decoder.h"

namespace vgpu {

// Sets a to the register of the handle.
void decode_object(Decoder& d, const Statement& s, const Operand& o, Instruction& i);

// Sets b, c and d to the registers of the coordinates, which have this type, and e to that of the layer.  Returns the number of
// coordinates, plus 4 with a layer.
uint8_t decode_coordinates(Decoder& d, const Statement& s, const Operand& o, std::string_view type, Instruction& i);

// Calls f(warp, i, lanes, object) for the lanes of each handle.  An invalid handle, or an object on freed memory, is a fault.
template <class T, class F> void for_each_object(WarpContext& warp, const Instruction& i, F f) {
  const uint64_t* handles = lane_values<uint64_t>(warp, i.a);
  for (uint32_t remaining = warp.active_mask; remaining;) {
    const uint64_t handle = handles[__builtin_ctz(remaining)];
    uint32_t same = 0;
    for (uint32_t l = 0; l < kWarpSize; l++) same |= uint32_t(handles[l] == handle) << l;
    same &= remaining;
    T object;
    if (!warp.textures->find(handle, object) || !object.texels.is_alive(*warp.memory))
      return warp.set_fault(KernelFault::InvalidTextureObject, handle);
    f(warp, i, same, object);
    remaining &= ~same;
  }
}

}  // namespace vgpu
