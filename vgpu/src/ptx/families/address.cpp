// Decodes the state space, the memory order and the address of accesses.
#include "address.h"

namespace vgpu {

AccessSpace access_space_of(const Statement& s) {
  if (s.has("shared") || s.has("shared::cta")) return AccessSpace::Shared;
  if (s.has("local")) return AccessSpace::Local;
  // Addresses of global memory and constants are generic ones.
  return s.has("param") || s.has("param::entry") || s.has("param::func") ? AccessSpace::Param : AccessSpace::Generic;
}

namespace {

// Returns whether the statement may name a variable of this state space.  Generic addresses exclude constants and parameters.
bool may_name(const Statement& s, ptx::StateSpace space) {
  std::string_view qualifier = s.qualifier_of(kAccessSpaceQualifiers);
  switch (space) {
    case ptx::StateSpace::Global: return qualifier == "global" || qualifier.empty();
    case ptx::StateSpace::Shared: return qualifier.substr(0, 6) == "shared" || qualifier.empty();
    case ptx::StateSpace::Local: return qualifier == "local" || qualifier.empty();
    case ptx::StateSpace::Const: return qualifier == "const";
    default: return qualifier.substr(0, 5) == "param";
  }
}

}  // namespace

uint8_t memory_order_of(const Statement& s) {
  if (s.has("acq_rel")) return kStrong | kAcquire | kRelease;
  if (s.has("acquire")) return kStrong | kAcquire;
  if (s.has("release")) return kStrong | kRelease;
  return s.has("volatile") || s.has("relaxed") || s.has("mmio") ? kStrong : kWeak;
}

// i.a: the base register, which is i.e bytes wide (0: none); i.imm: the offset.  in_scratch: a .param variable that the body
// declares for its calls; the Scratch space holds the arguments and results of calls.
void decode_address(Decoder& d, const Statement& s, const Operand& o, AccessSpace& space, Instruction& i) {
  i.imm = o.offset;
  if (o.kind != Operand::Address || !o.parts.empty() || ptx::begins_constant(o.text)) d.reject(s, "an address that is none");
  const Symbol* symbol = d.symbol(std::string(o.text));
  if (!symbol) {
    RegisterSlot slot = d.source_slot(
        [&] {
          Operand base = o;
          base.kind = Operand::Register, base.offset = 0;
          return base;
        }(),
        "u64");
    i.a = slot.offset, i.e = slot.width;
    if (space == AccessSpace::Local)
      space = AccessSpace::Generic;  // a register holds a local address as a generic one, see move.cpp
    if (space == AccessSpace::Generic && i.e != 8) throw Unsupported("line " + std::to_string(i.line) + ": a 32-bit address");
    return;
  }
  if (!may_name(s, symbol->space)) d.reject(s, "a variable of another state space");
  if (space == AccessSpace::Generic && symbol->space == ptx::StateSpace::Shared) space = AccessSpace::Shared;
  if (space == AccessSpace::Generic && symbol->space == ptx::StateSpace::Local) space = AccessSpace::Local;
  if (symbol->space == ptx::StateSpace::Shared && symbol->dynamic) {
    i.a = special_offset(kDynamicShared), i.e = 4;
    return;
  }
  if (symbol->space == ptx::StateSpace::Param) space = symbol->in_scratch ? AccessSpace::Scratch : AccessSpace::Param;
  if (symbol->space == ptx::StateSpace::Global || symbol->space == ptx::StateSpace::Const) {
    i.a = d.constant(symbol->address, 8), i.e = 8;
  } else {
    i.e = 0, i.imm += static_cast<int64_t>(symbol->address);
  }
}

}  // namespace vgpu
