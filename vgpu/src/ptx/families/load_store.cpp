// Loads and stores.
#include <algorithm>
#include <cstring>

#include "address.h"
#include "core/instruction_set.h"
#include "families.h"
#include "types.h"

namespace vgpu {
namespace {

// Who looks on is told, and atomics that come late come before it: this is out of the way of all other runs.
template <AccessSpace kWhere, class W> void tell(WarpContext& warp, const Instruction& i, AccessKind what, uint32_t bytes,
                                                 uint8_t* const at[kWarpSize]) {
  if constexpr (kWhere == AccessSpace::Generic || kWhere == AccessSpace::Shared) {
    if (warp.deferred) warp.deferred->settle_at(warp, at, bytes);
    if (!warp.observer) return;
    RegisterValues values = {{}, i.count, sizeof(W)};
    for (uint32_t k = 0; k < i.count; k++) values.parts[k] = lane_values<uint8_t>(warp, i.vector_registers[k]);
    notify_access(warp, i, {what, i.variant, OrderSensitivity::Nothing, bytes, at, nullptr, 0, values});
  }
}

template <class T, class W, AccessSpace kWhere> void load(WarpContext& warp, const Instruction& i) {
  uint8_t* at[kWarpSize];
  if (!resolve_addresses(warp, i, kWhere, sizeof(T) * i.count, at)) return;
  tell<kWhere, W>(warp, i, AccessKind::Read, sizeof(T) * i.count, at);
  const bool row = sizeof(T) == sizeof(W) && i.count == 1 && is_contiguous(warp.active_mask, at, sizeof(T));
  for (uint32_t k = 0; k < i.count; k++) {
    W* d = lane_values<W>(warp, i.vector_registers[k]);
    W before[kWarpSize];
    if (i.kind != InstructionKind::Plain) std::memcpy(before, d, sizeof before);
    if (row) std::memcpy(d, at[0], kWarpSize * sizeof(T));
    else
      for_each_lane(warp.active_mask, [=, &at](uint32_t l) {
        T x;
        std::memcpy(&x, at[l] + k * sizeof(T), sizeof x);
        d[l] = static_cast<W>(x);
      });
    if (i.kind != InstructionKind::Plain) warp.observed_change |= std::memcmp(before, d, sizeof before) != 0;
  }
}

template <class T, class W, AccessSpace kWhere> void store(WarpContext& warp, const Instruction& i) {
  uint8_t* at[kWarpSize];
  if (!resolve_addresses(warp, i, kWhere, sizeof(T) * i.count, at, true)) return;
  tell<kWhere, W>(warp, i, AccessKind::Write, sizeof(T) * i.count, at);
  if (kWhere == AccessSpace::Generic || kWhere == AccessSpace::Shared) ++*warp.visible_writes;
  const bool row = sizeof(T) == sizeof(W) && i.count == 1 && is_contiguous(warp.active_mask, at, sizeof(T));
  for (uint32_t k = 0; k < i.count; k++) {
    const W* a = lane_values<W>(warp, i.vector_registers[k]);
    if (row) std::memcpy(at[0], a, kWarpSize * sizeof(T));
    else
      for_each_lane(warp.active_mask, [=, &at](uint32_t l) {
        T x = static_cast<T>(a[l]);
        std::memcpy(at[l] + k * sizeof(T), &x, sizeof x);
      });
  }
}

template <bool kLoads, class T, class W> Execute in_space(AccessSpace where) {
  if constexpr (sizeof(W) < sizeof(T)) return nullptr;
  else switch (where) {
      case AccessSpace::Generic: return kLoads ? load<T, W, AccessSpace::Generic> : store<T, W, AccessSpace::Generic>;
      case AccessSpace::Shared: return kLoads ? load<T, W, AccessSpace::Shared> : store<T, W, AccessSpace::Shared>;
      case AccessSpace::Local: return kLoads ? load<T, W, AccessSpace::Local> : store<T, W, AccessSpace::Local>;
      case AccessSpace::Param: return kLoads ? load<T, W, AccessSpace::Param> : store<T, W, AccessSpace::Param>;
      case AccessSpace::Scratch: return kLoads ? load<T, W, AccessSpace::Scratch> : store<T, W, AccessSpace::Scratch>;
    }
  return nullptr;
}
// Into a wider register a signed type goes with its sign.
template <bool kLoads, class T> Execute select_register_width(uint32_t width, AccessSpace where) {
  if (width == 2) return in_space<kLoads, T, uint16_t>(where);
  if (width == 4) return in_space<kLoads, T, uint32_t>(where);
  return width == 8 ? in_space<kLoads, T, uint64_t>(where) : nullptr;
}
template <bool kLoads> Execute load_store_for_type(std::string_view t, uint32_t width, AccessSpace where) {
  if (t == "s8") return select_register_width<kLoads, int8_t>(width, where);
  if (t == "s16") return select_register_width<kLoads, int16_t>(width, where);
  if (t == "s32") return select_register_width<kLoads, int32_t>(width, where);
  return for_size(ptx::size_of(t), [=](auto tag) -> Execute {
    return select_register_width<kLoads, typename decltype(tag)::type>(width, where);
  });
}

// The bytes of each register that is loaded or stored; 0: they differ, or there are none.  What is stored may be a constant.
uint32_t values(Decoder& d, const Operand& o, std::string_view t, bool loads, Instruction& i) {
  std::vector<Operand> one = {o};
  const bool vector = o.kind == Operand::Vector;
  const std::vector<Operand>& all = vector ? o.parts : one;
  if (all.size() > 4) return 0;
  auto sinks = [&](const Operand& part) { return loads && vector && part.text == "_"; };
  uint32_t width = 0;
  for (const Operand& part : all)
    if (part.kind != Operand::Literal && !sinks(part) && !width) width = d.source_operand(part, t).width;
  if (!width && loads) return 0;
  if (!width) width = std::max(ptx::size_of(t), 2u);
  for (size_t k = 0; k < all.size(); k++) {
    RegisterSlot slot = {0, width};
    if (sinks(all[k])) slot.offset = d.scratch_register(width);
    else if (!loads && all[k].kind == Operand::Literal) slot.offset = d.constant(d.bits(all[k], t), width);
    else slot = loads ? d.written(all[k], t) : d.source_operand(all[k], t);
    if (slot.width != width || slot.sort == Sort::Special) return 0;
    i.vector_registers[k] = slot.offset;
  }
  i.count = static_cast<uint8_t>(all.size());
  return width;
}

bool has_known_qualifiers(const Statement& s) {
  return s.allows_only({"weak|volatile|relaxed|acquire|release|mmio", "cta|cluster|gpu|sys", kAccessSpaceQualifiers, "v2|v4",
                        "ca|cg|cs|lu|cv|wb|wt", "nc", "unified",
                        "L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate",
                        "L2::evict_normal|L2::evict_first|L2::evict_last", "L2::cache_hint", "L2::64B|L2::128B|L2::256B"});
}

// prefetch and the like: nothing to do.
bool decode_hint(Decoder& d, const Statement& s, Instruction& i) {
  AccessSpace where = access_space_of(s);
  decode_address(d, s, s.operands.at(0), where, i);
  return s.operands.size() == 1 || d.bits(s.operands[1], "u32") == 128;
}

size_t elements(const Statement& s) { return s.has("v4") ? 4 : s.has("v2") ? 2 : 1; }

}  // namespace

bool decode_memory(Decoder& d, const Statement& s, Instruction& i) {
  bool loads = s.op == "ld" || s.op == "ldu";
  if (!loads && s.op != "st") return decode_hint(d, s, i);
  size_t wanted = s.has("L2::cache_hint") ? 3 : 2;  // what a cache is told is nothing here
  if (!has_known_qualifiers(s) || s.operands.size() != wanted || (!loads && s.has("const"))) return false;
  const Operand& held = s.operands[loads ? 0 : 1];
  if (elements(s) != (held.kind == Operand::Vector ? held.parts.size() : 1)) return false;
  std::string_view t = s.type();
  if (elements(s) * ptx::size_of(t) > 16) return false;
  AccessSpace where = access_space_of(s);
  uint32_t width = values(d, held, t, loads, i);
  decode_address(d, s, s.operands[loads ? 1 : 0], where, i);
  i.execute = loads ? load_store_for_type<true>(t, width, where) : load_store_for_type<false>(t, width, where);
  if (!i.execute) return false;
  bool others = where == AccessSpace::Generic || where == AccessSpace::Shared;
  i.variant = memory_order_of(s);
  const bool ordered = i.variant != kWeak;
  if (s.has("cg") || s.has("cv")) i.variant |= kStrong;
  if (s.has("nc")) i.source = ScheduleSource::StaleRead;
  if (others && (ordered || (!loads && where == AccessSpace::Generic))) i.kind = InstructionKind::SchedulingPoint;
  else if (others && loads && (s.has("cg") || s.has("cv"))) i.kind = InstructionKind::Load;
  d.emit(i);
  return true;
}

}  // namespace vgpu
