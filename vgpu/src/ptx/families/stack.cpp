// alloca, stacksave and stackrestore: memory that a call allocates while it runs.  It lies behind the call's local variables and
// is freed with them.
#include "core/error.h"
#include "families.h"
#include "types.h"

namespace vgpu {
namespace {

// a: the number of bytes; b: how many bytes of the lane's stack are used; vector_registers[0]: the stack's offset among the
// lane's local variables; imm: the alignment.
void allocate(WarpContext& warp, const Instruction& i) {
  uint64_t *d = lane_values<uint64_t>(warp, i.d), *used_bytes = lane_values<uint64_t>(warp, i.b);
  const uint64_t *bytes = lane_values<uint64_t>(warp, i.a), align = static_cast<uint64_t>(i.imm);
  for (uint32_t remaining = warp.active_mask; remaining; remaining &= remaining - 1) {
    const uint32_t l = static_cast<uint32_t>(__builtin_ctz(remaining));
    const uint64_t begin = (used_bytes[l] + align - 1) / align * align;
    const uint8_t* stack = warp.local + uint64_t(l) * warp.local_bytes + i.vector_registers[0];
    if (begin > kStackBytes || kStackBytes - begin < bytes[l])
      return warp.set_fault(KernelFault::OutOfBounds, reinterpret_cast<uint64_t>(stack + begin));
    used_bytes[l] = begin + bytes[l];
    d[l] = reinterpret_cast<uint64_t>(stack + begin);
  }
}

void copy(WarpContext& warp, const Instruction& i) {
  uint64_t *d = lane_values<uint64_t>(warp, i.d), *a = lane_values<uint64_t>(warp, i.a);
  for_each_lane(warp.active_mask, [=](uint32_t l) { d[l] = a[l]; });
}

// Only a value that stacksave returned, which is never above the bytes in use, can be restored.
void restore(WarpContext& warp, const Instruction& i) {
  uint64_t *used_bytes = lane_values<uint64_t>(warp, i.d), *a = lane_values<uint64_t>(warp, i.a);
  for_each_lane(warp.active_mask, [&](uint32_t l) {
    if (a[l] > used_bytes[l]) warp.set_fault(KernelFault::OutOfBounds, a[l]);
    else used_bytes[l] = a[l];
  });
}

}  // namespace

bool decode_stack(Decoder& d, const Statement& s, Instruction& i) {
  if (!s.allows_only({}) || s.type() != "u64") return false;
  const bool allocates = s.op == "alloca";
  if (s.operands.size() != 1 && !(allocates && (s.operands.size() == 2 || s.operands.size() == 3))) return false;
  if (allocates && s.operands.size() < 2) return false;
  i.imm = 8;
  if (s.operands.size() == 3) i.imm = static_cast<int64_t>(d.bits(s.operands[2], "u64"));
  if (i.imm < 1 || i.imm > kMaxStackAlign || (i.imm & (i.imm - 1))) d.reject(s, "an alignment that is no power of two");
  const Decoder::Stack stack = d.stack(static_cast<uint32_t>(i.imm));
  if (s.op == "stackrestore") {
    i.execute = restore, i.a = d.source(s.operands[0], "u64"), i.d = stack.used_register;
  } else {
    i.d = d.result(s.operands[0], "u64");
    if (allocates)
      i.execute = allocate, i.a = d.source(s.operands[1], "u64"), i.b = stack.used_register,
      i.vector_registers[0] = stack.offset;
    else i.execute = copy, i.a = stack.used_register;
  }
  return d.emit(i), true;
}

}  // namespace vgpu
