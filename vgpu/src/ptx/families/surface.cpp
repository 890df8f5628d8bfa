// Loads, stores and reductions of surface objects: bytes at a place of an array, whatever its format (.b).
#include <algorithm>
#include <cstring>

#include "core/instruction_set.h"
#include "families.h"
#include "texture.h"
#include "types.h"

namespace vgpu {
namespace {

constexpr uint8_t kDimensions = 3, kLayered = 4;
enum Outside : uint8_t { kTrap = 0, kClamp = 8, kZero = 16 };
constexpr uint8_t kOutsides = kClamp | kZero;

// An index of `count` places; false: it is none of them.  A trap is a fault.
bool placed(WarpContext& warp, const Instruction& i, int64_t& index, int64_t count) {
  if (index >= 0 && index < count) return true;
  if ((i.variant & kOutsides) == kClamp) return index = index < 0 ? 0 : count - 1, true;
  if ((i.variant & kOutsides) == kTrap) warp.set_fault(KernelFault::OutOfBounds, static_cast<uint64_t>(index));
  return false;
}

// Where a lane's `bytes` lie; nullptr: nowhere.  The first coordinate counts bytes.
uint8_t* place(WarpContext& warp, const Instruction& i, const Texels& of, uint32_t bytes, uint32_t lane) {
  const int dimensions = i.variant & kDimensions;
  auto coordinate = [&](uint32_t from) { return int64_t(lane_values<int32_t>(warp, from)[lane]); };
  int64_t x = coordinate(i.b), y = dimensions > 1 ? coordinate(i.c) : 0, z = dimensions > 2 ? coordinate(i.d) : 0, layer = 0;
  if (i.variant & kLayered) layer = lane_values<uint32_t>(warp, i.e)[lane];
  if (x & (bytes - 1)) return warp.set_fault(KernelFault::Misaligned, static_cast<uint64_t>(x)), nullptr;
  int64_t column = x / bytes;
  const int64_t columns = static_cast<int64_t>(of.width * of.texel_bytes() / bytes);
  const bool inside = placed(warp, i, column, columns) && placed(warp, i, y, static_cast<int64_t>(of.height)) &&
                      placed(warp, i, z, static_cast<int64_t>(of.depth)) &&
                      placed(warp, i, layer, static_cast<int64_t>(of.layers));
  if (!inside) return nullptr;
  return reinterpret_cast<uint8_t*>(of.at) + static_cast<uint64_t>(z + layer) * of.slice + static_cast<uint64_t>(y) * of.pitch +
         static_cast<uint64_t>(column) * bytes;
}

// Those of `lanes` that have a place.
uint32_t places(WarpContext& warp, const Instruction& i, uint32_t lanes, const Surface& s, uint32_t bytes,
                uint8_t* at[kWarpSize]) {
  uint32_t inside = 0;
  for (uint32_t l = 0; l < kWarpSize; l++)
    if (lanes >> l & 1 && (at[l] = place(warp, i, s.texels, bytes, l))) inside |= 1u << l;
  return inside;
}

void tell(WarpContext& warp, const Instruction& i, AccessKind what, uint32_t bytes, uint32_t inside, uint8_t* const* at) {
  if (!warp.observer || !inside) return;
  const uint32_t before = warp.active_mask;
  warp.active_mask = inside;
  notify_access(warp, i,
                {what, what == AccessKind::Atomic ? kStrong : kWeak, OrderSensitivity::Nothing, bytes, at, nullptr, 0});
  warp.active_mask = before;
}

// f(lanes, inside, at) for the lanes of each handle: those of `lanes` that are `inside` have a place of `bytes`, which who looks
// on is told of.
template <class F> void by_place(WarpContext& warp, const Instruction& i, AccessKind what, uint32_t bytes, F f) {
  by_object<Surface>(warp, i, [&](WarpContext&, const Instruction&, uint32_t lanes, const Surface& s) {
    uint8_t* at[kWarpSize];
    const uint32_t inside = places(warp, i, lanes, s, bytes, at);
    if (warp.fault != KernelFault::None) return;
    tell(warp, i, what, bytes, inside, at);
    if (what != AccessKind::Read) ++*warp.visible_writes;
    f(lanes, inside, at);
  });
}

template <class T> using Held = std::conditional_t<sizeof(T) == 1, uint16_t, T>;  // no register is narrower

template <class T> void load(WarpContext& warp, const Instruction& i) {
  by_place(warp, i, AccessKind::Read, sizeof(T) * i.count, [&](uint32_t lanes, uint32_t inside, uint8_t* const* at) {
    for (uint32_t k = 0; k < i.count; k++)
      for_each_lane(lanes, [&](uint32_t l) {
        T x = 0;
        if (inside >> l & 1) std::memcpy(&x, at[l] + k * sizeof(T), sizeof x);
        lane_values<Held<T>>(warp, i.vector_registers[k])[l] = x;
      });
  });
}

template <class T> void store(WarpContext& warp, const Instruction& i) {
  by_place(warp, i, AccessKind::Write, sizeof(T) * i.count, [&](uint32_t, uint32_t inside, uint8_t* const* at) {
    for (uint32_t l = 0; l < kWarpSize; l++)
      for (uint32_t k = 0; inside >> l & 1 && k < i.count; k++) {
        const T x = static_cast<T>(lane_values<Held<T>>(warp, i.vector_registers[k])[l]);
        std::memcpy(at[l] + k * sizeof(T), &x, sizeof x);
      }
  });
}

enum Operation : uint8_t { kAdd, kMin, kMax, kAnd, kOr };

template <class T> T reduced(uint8_t operation, T old, T by) {
  switch (operation) {
    case kAdd: return static_cast<T>(static_cast<Unsigned<T>>(old) + static_cast<Unsigned<T>>(by));
    case kMin: return std::min(old, by);
    case kMax: return std::max(old, by);
    case kAnd: return old & by;
    default: return old | by;
  }
}

// Atomics without a result, whose order shows nowhere: of integers alone.
template <class T> void reduce(WarpContext& warp, const Instruction& i) {
  by_place(warp, i, AccessKind::Atomic, sizeof(T), [&](uint32_t, uint32_t inside, uint8_t* const* at) {
    warp.atomics += static_cast<uint64_t>(__builtin_popcount(inside));
    for (uint32_t l = 0; l < kWarpSize; l++) {
      if (!(inside >> l & 1)) continue;
      T old;
      std::memcpy(&old, at[l], sizeof old);
      const T made = reduced(static_cast<uint8_t>(i.imm), old, lane_values<T>(warp, i.vector_registers[0])[l]);
      std::memcpy(at[l], &made, sizeof made);
    }
  });
}

uint8_t outside_of(const Statement& s) { return s.has("clamp") ? kClamp : s.has("zero") ? kZero : kTrap; }

}  // namespace

static bool decode_reduction(Decoder& d, const Statement& s, Instruction& i) {
  decode_object(d, s, s.operands[0], i);
  i.variant = decode_place(d, s, s.operands[0], "s32", i) | outside_of(s);
  i.imm = s.has("add") ? kAdd : s.has("min") ? kMin : s.has("max") ? kMax : s.has("and") ? kAnd : kOr;
  i.vector_registers[0] = d.exact_operand(s.operands[1], s.type(1));
  i.kind = InstructionKind::SchedulingPoint;
  i.execute = for_integer(s.type(1), [](auto tag) -> Execute { return reduce<typename decltype(tag)::type>; });
  return d.emit(i), true;
}

bool decode_surface(Decoder& d, const Statement& s, Instruction& i) {
  if (s.op == "sured") return decode_reduction(d, s, i);
  const bool loads = s.op == "suld";
  const Operand &held = s.operands[loads ? 0 : 1], &place = s.operands[loads ? 1 : 0];
  const std::vector<Operand> one = {held};
  const std::vector<Operand>& all = held.kind == Operand::Vector ? held.parts : one;
  const std::string_view type = s.type(1) == "b8" ? "b16" : s.type(1);
  if (all.size() != (s.has("v4") ? 4 : s.has("v2") ? 2 : 1) || all.size() * ptx::size_of(s.type(1)) > 16) return false;
  decode_object(d, s, place, i);
  i.variant = decode_place(d, s, place, "s32", i) | outside_of(s);
  i.count = static_cast<uint8_t>(all.size());
  for (size_t k = 0; k < all.size(); k++)
    i.vector_registers[k] = loads ? d.result(all[k], type, true) : d.exact_operand(all[k], type);
  i.execute = for_size(ptx::size_of(s.type(1)), [=](auto tag) -> Execute {
    using T = typename decltype(tag)::type;
    return loads ? load<T> : store<T>;
  });
  if (!loads) i.kind = InstructionKind::SchedulingPoint;
  return d.emit(i), true;
}

}  // namespace vgpu
