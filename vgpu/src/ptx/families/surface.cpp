// Loads, stores and reductions of surface objects, which access bytes of an array independent of its format (.b).
#include <algorithm>
#include <cstring>

#include "core/instruction_set.h"
#include "families.h"
#include "texture.h"
#include "types.h"

namespace vgpu {
namespace {

// Bits of Instruction::variant: the number of dimensions (a mask), whether there are layers, and an Outside.
constexpr uint8_t kDimensions = 3, kLayered = 4;
enum Outside : uint8_t { kTrap = 0, kClamp = 8, kZero = 16 };
constexpr uint8_t kOutsides = kClamp | kZero;

// Applies the mode for coordinates outside of the surface to an index; returns false if there is no access.  .trap is a fault.
bool apply_outside_mode(WarpContext& warp, const Instruction& i, int64_t& index, int64_t count) {
  if (index >= 0 && index < count) return true;
  if ((i.variant & kOutsides) == kClamp) return index = index < 0 ? 0 : count - 1, true;
  if ((i.variant & kOutsides) == kTrap) warp.set_fault(KernelFault::OutOfBounds, static_cast<uint64_t>(index));
  return false;
}

// Returns the address of a lane's access of `bytes`; nullptr: no access.  The first coordinate is in bytes.
uint8_t* texel_address(WarpContext& warp, const Instruction& i, const Texels& texels, uint32_t bytes, uint32_t lane) {
  const int dimensions = i.variant & kDimensions;
  auto coordinate = [&](uint32_t register_offset) { return int64_t(lane_values<int32_t>(warp, register_offset)[lane]); };
  int64_t x = coordinate(i.b), y = dimensions > 1 ? coordinate(i.c) : 0, z = dimensions > 2 ? coordinate(i.d) : 0, layer = 0;
  if (i.variant & kLayered) layer = lane_values<uint32_t>(warp, i.e)[lane];
  if (x & (bytes - 1)) return warp.set_fault(KernelFault::Misaligned, static_cast<uint64_t>(x)), nullptr;
  int64_t column = x / bytes;
  const int64_t columns = static_cast<int64_t>(texels.width * texels.texel_bytes() / bytes);
  const bool is_inside = apply_outside_mode(warp, i, column, columns) &&
                         apply_outside_mode(warp, i, y, static_cast<int64_t>(texels.height)) &&
                         apply_outside_mode(warp, i, z, static_cast<int64_t>(texels.depth)) &&
                         apply_outside_mode(warp, i, layer, static_cast<int64_t>(texels.layers));
  if (!is_inside) return nullptr;
  return reinterpret_cast<uint8_t*>(texels.at) + static_cast<uint64_t>(z + layer) * texels.slice +
         static_cast<uint64_t>(y) * texels.pitch + static_cast<uint64_t>(column) * bytes;
}

// Computes the addresses of lanes; returns the mask of lanes that access memory.
uint32_t texel_addresses(WarpContext& warp, const Instruction& i, uint32_t lanes, const Surface& s, uint32_t bytes,
                         uint8_t* addresses[kWarpSize]) {
  uint32_t inside = 0;
  for (uint32_t l = 0; l < kWarpSize; l++)
    if (lanes >> l & 1 && (addresses[l] = texel_address(warp, i, s.texels, bytes, l))) inside |= 1u << l;
  return inside;
}

void notify(WarpContext& warp, const Instruction& i, AccessKind kind, uint32_t bytes, uint32_t inside,
            uint8_t* const* addresses) {
  if (!warp.observer || !inside) return;
  const uint32_t active = warp.active_mask;
  warp.active_mask = inside;
  MemoryAccess access = {
      kind, kind == AccessKind::Atomic ? kStrong : kWeak, OrderSensitivity::Nothing, bytes, addresses, nullptr, 0};
  access.contiguous = is_contiguous(inside, addresses, bytes);
  notify_access(warp, i, access);
  warp.active_mask = active;
}

// Calls f(lanes, inside, addresses) for the lanes of each handle, after it has notified the observer; only the lanes of `inside`
// access memory.
template <class F> void for_each_address(WarpContext& warp, const Instruction& i, AccessKind kind, uint32_t bytes, F f) {
  for_each_object<Surface>(warp, i, [&](WarpContext&, const Instruction&, uint32_t lanes, const Surface& s) {
    uint8_t* addresses[kWarpSize];
    const uint32_t inside = texel_addresses(warp, i, lanes, s, bytes, addresses);
    if (warp.fault != KernelFault::None) return;
    notify(warp, i, kind, bytes, inside, addresses);
    if (kind != AccessKind::Read) ++*warp.visible_writes;
    f(lanes, inside, addresses);
  });
}

template <class T> using RegisterType = std::conditional_t<sizeof(T) == 1, uint16_t, T>;  // registers have at least 16 bits

template <class T> void load(WarpContext& warp, const Instruction& i) {
  for_each_address(warp, i, AccessKind::Read, sizeof(T) * i.count,
                   [&](uint32_t lanes, uint32_t inside, uint8_t* const* addresses) {
                     for (uint32_t k = 0; k < i.count; k++)
                       for_each_lane(lanes, [&](uint32_t l) {
                         T x = 0;
                         if (inside >> l & 1) std::memcpy(&x, addresses[l] + k * sizeof(T), sizeof x);
                         lane_values<RegisterType<T>>(warp, i.vector_registers[k])[l] = x;
                       });
                   });
}

template <class T> void store(WarpContext& warp, const Instruction& i) {
  for_each_address(warp, i, AccessKind::Write, sizeof(T) * i.count, [&](uint32_t, uint32_t inside, uint8_t* const* addresses) {
    for (uint32_t l = 0; l < kWarpSize; l++)
      for (uint32_t k = 0; inside >> l & 1 && k < i.count; k++) {
        const T x = static_cast<T>(lane_values<RegisterType<T>>(warp, i.vector_registers[k])[l]);
        std::memcpy(addresses[l] + k * sizeof(T), &x, sizeof x);
      }
  });
}

enum Operation : uint8_t { kAdd, kMin, kMax, kAnd, kOr };

template <class T> T reduce_value(uint8_t operation, T old, T operand) {
  switch (operation) {
    case kAdd: return static_cast<T>(static_cast<Unsigned<T>>(old) + static_cast<Unsigned<T>>(operand));
    case kMin: return std::min(old, operand);
    case kMax: return std::max(old, operand);
    case kAnd: return old & operand;
    default: return old | operand;
  }
}

// Executes integer atomics without a result, whose order is not visible.
template <class T> void reduce(WarpContext& warp, const Instruction& i) {
  for_each_address(warp, i, AccessKind::Atomic, sizeof(T), [&](uint32_t, uint32_t inside, uint8_t* const* addresses) {
    warp.atomics += static_cast<uint64_t>(__builtin_popcount(inside));
    for (uint32_t l = 0; l < kWarpSize; l++) {
      if (!(inside >> l & 1)) continue;
      T old;
      std::memcpy(&old, addresses[l], sizeof old);
      const T result = reduce_value(static_cast<uint8_t>(i.imm), old, lane_values<T>(warp, i.vector_registers[0])[l]);
      std::memcpy(addresses[l], &result, sizeof result);
    }
  });
}

uint8_t outside_of(const Statement& s) { return s.has("clamp") ? kClamp : s.has("zero") ? kZero : kTrap; }

}  // namespace

static bool decode_reduction(Decoder& d, const Statement& s, Instruction& i) {
  decode_object(d, s, s.operands[0], i);
  i.variant = decode_coordinates(d, s, s.operands[0], "s32", i) | outside_of(s);
  i.imm = s.has("add") ? kAdd : s.has("min") ? kMin : s.has("max") ? kMax : s.has("and") ? kAnd : kOr;
  i.vector_registers[0] = d.source(s.operands[1], s.type(1));
  i.kind = InstructionKind::SchedulingPoint;
  i.execute = for_integer(s.type(1), [](auto tag) -> Execute { return reduce<typename decltype(tag)::type>; });
  return d.emit(i), true;
}

bool decode_surface(Decoder& d, const Statement& s, Instruction& i) {
  if (s.op == "sured") return decode_reduction(d, s, i);
  const bool loads = s.op == "suld";
  const Operand &registers = s.operands[loads ? 0 : 1], &position = s.operands[loads ? 1 : 0];
  const std::vector<Operand> single = {registers};
  const std::vector<Operand>& operands = registers.kind == Operand::Vector ? registers.parts : single;
  const std::string_view type = s.type(1) == "b8" ? "b16" : s.type(1);
  if (operands.size() != (s.has("v4") ? 4 : s.has("v2") ? 2 : 1) || operands.size() * ptx::size_of(s.type(1)) > 16)
    return false;
  decode_object(d, s, position, i);
  i.variant = decode_coordinates(d, s, position, "s32", i) | outside_of(s);
  i.count = static_cast<uint8_t>(operands.size());
  for (size_t k = 0; k < operands.size(); k++)
    i.vector_registers[k] = loads ? d.result(operands[k], type, true) : d.source(operands[k], type);
  i.execute = for_size(ptx::size_of(s.type(1)), [=](auto tag) -> Execute {
    using T = typename decltype(tag)::type;
    return loads ? load<T> : store<T>;
  });
  if (!loads) i.kind = InstructionKind::SchedulingPoint;
  return d.emit(i), true;
}

}  // namespace vgpu
