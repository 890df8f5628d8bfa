// Copies of the registers of fragments.
#include "fragments.h"

namespace vgpu {
namespace {

void copy(WarpContext& warp, const Instruction& i) {
  uint32_t* d = lane_values<uint32_t>(warp, i.d);
  const uint32_t* a = lane_values<uint32_t>(warp, i.a);
  assign_lanes(warp.active_mask, d, [=](uint32_t l) { return a[l]; });
}

}  // namespace

uint32_t gather_fragment(Decoder& d, const Statement& s, const Operand& o, std::string_view type, size_t count, Instruction i) {
  if (o.kind != Operand::Vector || o.parts.size() != count) d.reject(s, "a fragment of another size");
  uint32_t first = 0;
  i.execute = copy;
  for (size_t k = 0; k < count; k++) {
    i.a = d.source(o.parts[k], type);
    i.d = d.scratch_register(4);
    if (!k) first = i.d;
    d.emit(i);
  }
  return first;
}

void scatter_fragment(Decoder& d, const Operand& o, std::string_view type, uint32_t first, Instruction i) {
  i.execute = copy;
  for (size_t k = 0; k < o.parts.size(); k++) {
    i.a = first + static_cast<uint32_t>(k) * kWarpSize * 4;
    i.d = d.result(o.parts[k], type);
    d.emit(i);
  }
}

}  // namespace vgpu
