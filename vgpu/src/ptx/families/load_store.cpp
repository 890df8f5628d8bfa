// Loads and stores.
#include <algorithm>
#include <cstring>

#include "address.h"
#include "core/instruction_set.h"
#include "families.h"
#include "types.h"

namespace vgpu {
namespace {

// Performs late atomics (whose lanes have continued before them) at these addresses, and notifies the observer.
template <AccessSpace kSpace, class W> void prepare_access(WarpContext& warp, const Instruction& i, AccessKind kind,
                                                           uint32_t bytes, uint8_t* const addresses[kWarpSize],
                                                           bool contiguous) {
  constexpr bool kIsVisible = kSpace == AccessSpace::Generic || kSpace == AccessSpace::Shared;
  if (kIsVisible && warp.deferred) warp.deferred->settle_at(warp, addresses, bytes);
  if constexpr (kIsVisible || kSpace == AccessSpace::Local) {
    if (!warp.observer) return;
    RegisterValues values = {{}, i.count, sizeof(W)};
    for (uint32_t k = 0; k < i.count; k++) values.parts[k] = lane_values<uint8_t>(warp, i.vector_registers[k]);
    if (!kIsVisible) return notify_local_access(warp, i, kind, bytes, addresses, values);
    MemoryAccess access = {kind, i.variant, OrderSensitivity::Nothing, bytes, addresses, nullptr, 0, values};
    access.contiguous = contiguous;
    notify_access(warp, i, access);
  }
}

// Whether the registers have the layout of memory.
template <class T, class W> bool is_row(const Instruction& i) { return sizeof(T) == sizeof(W) && i.count == 1; }

// Whether the access is contiguous, if a row is copied or an observer wants to know.
template <class T, class W> bool is_contiguous_access(const WarpContext& warp, const Instruction& i,
                                                      uint8_t* const* addresses) {
  return (is_row<T, W>(i) || warp.observer) && is_contiguous(warp.active_mask, addresses, sizeof(T) * i.count);
}

// T: the type in memory; W: that of the registers.  result_changed: a loop around the load does more than wait.
template <class T, class W, AccessSpace kSpace> void load(WarpContext& warp, const Instruction& i) {
  uint8_t* addresses[kWarpSize];
  if (!resolve_addresses(warp, i, kSpace, sizeof(T) * i.count, addresses)) return;
  const bool contiguous = is_contiguous_access<T, W>(warp, i, addresses);
  prepare_access<kSpace, W>(warp, i, AccessKind::Read, sizeof(T) * i.count, addresses, contiguous);
  const bool is_contiguous_row = contiguous && is_row<T, W>(i);
  for (uint32_t k = 0; k < i.count; k++) {
    W* d = lane_values<W>(warp, i.vector_registers[k]);
    W old_values[kWarpSize];
    if (i.kind != InstructionKind::Plain) std::memcpy(old_values, d, sizeof old_values);
    if (is_contiguous_row) std::memcpy(d, addresses[0], kWarpSize * sizeof(T));
    else
      for_each_lane(warp.active_mask, [=, &addresses](uint32_t l) {
        T x;
        std::memcpy(&x, addresses[l] + k * sizeof(T), sizeof x);
        d[l] = static_cast<W>(x);
      });
    if (i.kind != InstructionKind::Plain) warp.result_changed |= std::memcmp(old_values, d, sizeof old_values) != 0;
  }
}

template <class T, class W, AccessSpace kSpace> void store(WarpContext& warp, const Instruction& i) {
  uint8_t* addresses[kWarpSize];
  if (!resolve_addresses(warp, i, kSpace, sizeof(T) * i.count, addresses, true)) return;
  const bool contiguous = is_contiguous_access<T, W>(warp, i, addresses);
  prepare_access<kSpace, W>(warp, i, AccessKind::Write, sizeof(T) * i.count, addresses, contiguous);
  if (kSpace == AccessSpace::Generic || kSpace == AccessSpace::Shared) ++*warp.visible_writes;
  const bool is_contiguous_row = contiguous && is_row<T, W>(i);
  for (uint32_t k = 0; k < i.count; k++) {
    const W* a = lane_values<W>(warp, i.vector_registers[k]);
    if (is_contiguous_row) std::memcpy(addresses[0], a, kWarpSize * sizeof(T));
    else
      for_each_lane(warp.active_mask, [=, &addresses](uint32_t l) {
        T x = static_cast<T>(a[l]);
        std::memcpy(addresses[l] + k * sizeof(T), &x, sizeof x);
      });
  }
}

template <bool kLoads, class T, class W> Execute in_space(AccessSpace space) {
  if constexpr (sizeof(W) < sizeof(T)) return nullptr;
  else switch (space) {
      case AccessSpace::Generic: return kLoads ? load<T, W, AccessSpace::Generic> : store<T, W, AccessSpace::Generic>;
      case AccessSpace::Shared: return kLoads ? load<T, W, AccessSpace::Shared> : store<T, W, AccessSpace::Shared>;
      case AccessSpace::Local: return kLoads ? load<T, W, AccessSpace::Local> : store<T, W, AccessSpace::Local>;
      case AccessSpace::Param: return kLoads ? load<T, W, AccessSpace::Param> : store<T, W, AccessSpace::Param>;
      case AccessSpace::Scratch: return kLoads ? load<T, W, AccessSpace::Scratch> : store<T, W, AccessSpace::Scratch>;
    }
  return nullptr;
}
// Signed types are sign-extended to wider registers.
template <bool kLoads, class T> Execute select_register_width(uint32_t width, AccessSpace space) {
  if (width == 2) return in_space<kLoads, T, uint16_t>(space);
  if (width == 4) return in_space<kLoads, T, uint32_t>(space);
  return width == 8 ? in_space<kLoads, T, uint64_t>(space) : nullptr;
}
template <bool kLoads> Execute load_store_for_type(std::string_view t, uint32_t width, AccessSpace space) {
  if (t == "s8") return select_register_width<kLoads, int8_t>(width, space);
  if (t == "s16") return select_register_width<kLoads, int16_t>(width, space);
  if (t == "s32") return select_register_width<kLoads, int32_t>(width, space);
  return for_size(ptx::size_of(t), [=](auto tag) -> Execute {
    return select_register_width<kLoads, typename decltype(tag)::type>(width, space);
  });
}

// Returns whether a part of a vector that is loaded is left out.
bool is_sink(const Operand& registers, const Operand& part, bool loads) {
  return loads && registers.kind == Operand::Vector && part.text == "_";
}

// Returns the first register among the operands; of width 0: there is none.
RegisterSlot first_register(Decoder& d, const Operand& o, const std::vector<Operand>& operands, std::string_view t,
                            bool loads) {
  for (const Operand& part : operands)
    if (part.kind != Operand::Literal && !is_sink(o, part, loads))
      return loads ? d.result_slot(part, t) : d.source_slot(part, t);
  return {0, 0};
}

// Decodes the registers of a load or store, or constants to store; returns the bytes of each register, 0 if they differ.
uint32_t decode_values(Decoder& d, const Operand& o, std::string_view t, bool loads, Instruction& i) {
  if (t == "b128") {
    const Decoder::Halves halves = loads ? d.result_halves(o) : d.source_halves(o);
    i.vector_registers[0] = halves.lower, i.vector_registers[1] = halves.upper, i.count = 2;
    return 8;
  }
  std::vector<Operand> single;
  if (o.kind != Operand::Vector) single = {o};
  const std::vector<Operand>& operands = o.kind == Operand::Vector ? o.parts : single;
  if (operands.size() > 4) return 0;
  const RegisterSlot first = first_register(d, o, operands, t, loads);
  if (!first.width && loads) return 0;
  const uint32_t width = first.width ? first.width : std::max(ptx::size_of(t), 2u);
  for (size_t k = 0; k < operands.size(); k++) {
    RegisterSlot slot = {0, width, Sort::Bits, first.is_byte};
    if (is_sink(o, operands[k], loads)) slot.offset = d.scratch_register(width);
    else if (!loads && operands[k].kind == Operand::Literal) slot.offset = d.constant(d.bits(operands[k], t), width);
    else slot = loads ? d.result_slot(operands[k], t) : d.source_slot(operands[k], t);
    if (slot.width != width || slot.is_byte != first.is_byte || slot.sort == Sort::Special) return 0;
    i.vector_registers[k] = slot.offset;
  }
  i.count = static_cast<uint8_t>(operands.size());
  return width;
}

bool has_known_qualifiers(const Statement& s) {
  return s.allows_only({"weak|volatile|relaxed|acquire|release|mmio", "cta|cluster|gpu|sys", kAccessSpaceQualifiers, "v2|v4",
                        "ca|cg|cs|lu|cv|wb|wt", "nc", "unified",
                        "L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate", "L2::cache_hint",
                        "L2::64B|L2::128B|L2::256B"});
}

// Checks a prefetch or similar hint, which has no effect.
bool decode_hint(Decoder& d, const Statement& s, Instruction& i) {
  AccessSpace space = access_space_of(s);
  decode_address(d, s, s.operands.at(0), space, i);
  return s.operands.size() == 1 || d.bits(s.operands[1], "u32") == 128;
}

void decode_order(const Statement& s, bool loads, AccessSpace space, Instruction& i) {
  const bool is_visible = space == AccessSpace::Generic || space == AccessSpace::Shared;
  const bool bypasses_l1 = s.has("cg") || s.has("cv");
  i.variant = memory_order_of(s);
  const bool is_ordered = i.variant != kWeak;
  if (bypasses_l1) i.variant |= kStrong;
  if (s.has("nc")) i.schedule_source = ScheduleSource::StaleRead;
  if (is_visible && (is_ordered || (!loads && space == AccessSpace::Generic))) i.kind = InstructionKind::SchedulingPoint;
  else if (is_visible && loads && bypasses_l1) i.kind = InstructionKind::Load;
}

size_t elements(const Statement& s) { return s.has("v4") ? 4 : s.has("v2") ? 2 : 1; }

}  // namespace

bool decode_memory(Decoder& d, const Statement& s, Instruction& i) {
  bool loads = s.op == "ld" || s.op == "ldu";
  if (!loads && s.op != "st") return decode_hint(d, s, i);
  size_t expected_operands = s.has("L2::cache_hint") ? 3 : 2;  // cache hints are ignored
  if (!has_known_qualifiers(s) || s.operands.size() != expected_operands || (!loads && s.has("const"))) return false;
  const Operand& registers = s.operands[loads ? 0 : 1];
  if (elements(s) != (registers.kind == Operand::Vector ? registers.parts.size() : 1)) return false;
  std::string_view t = s.type();
  if (elements(s) * ptx::size_of(t) > 16) return false;
  AccessSpace space = access_space_of(s);
  uint32_t width = decode_values(d, registers, t, loads, i);
  if (t == "b128") t = "b64";
  const Operand& address = s.operands[loads ? 1 : 0];
  decode_address(d, s, address, space, i);
  const Symbol* symbol = d.symbol(std::string(address.text));
  if (symbol && symbol->formal == (loads ? Symbol::Result : Symbol::Input))
    d.reject(s, loads ? "a load of a returned parameter" : "a store to an input parameter");
  i.execute = loads ? load_store_for_type<true>(t, width, space) : load_store_for_type<false>(t, width, space);
  if (!i.execute) return false;
  decode_order(s, loads, space, i);
  d.emit(i);
  return true;
}

}  // namespace vgpu
