// Asynchronous copies from global to shared memory (cp.async), and waits for them.
#include <algorithm>

#include "address.h"
#include "core/instruction_set.h"
#include "families.h"

namespace vgpu {
namespace {

// How many bytes are read: all; the number in register b; none if predicate b holds.
enum SourceSize : uint8_t { kAll, kCounted, kUnlessIgnored };

// vector_registers: of the destination, the width of its base register and its offset (c is the register).
constexpr size_t kBaseWidth = 1, kOffset = 2;

template <uint32_t kBytes> void copy(WarpContext& warp, const Instruction& i) {
  Instruction destination;
  destination.a = i.c, destination.e = i.vector_registers[kBaseWidth];
  destination.imm = static_cast<int32_t>(i.vector_registers[kOffset]);
  uint8_t* destinations[kWarpSize];
  if (!resolve_addresses(warp, destination, AccessSpace::Shared, kBytes, destinations, true)) return;
  const uint64_t *base = lane_values<uint64_t>(warp, i.a), offset = static_cast<uint64_t>(i.imm);
  const uint32_t ignored = i.variant == kUnlessIgnored ? predicate(warp, i.b) : 0;
  uint64_t sources[kWarpSize];
  uint32_t source_bytes[kWarpSize];
  for (uint32_t l = 0; l < kWarpSize; l++) {
    sources[l] = base[l] + offset;
    source_bytes[l] =
        i.variant == kCounted ? std::min(lane_values<uint32_t>(warp, i.b)[l], kBytes) : (ignored >> l & 1 ? 0 : kBytes);
  }
  copy_asynchronously(warp, i, kBytes, sources, source_bytes, destinations);
}

void do_nothing(WarpContext&, const Instruction&) {}

Statement without(Statement s, std::string_view group) {
  auto end = std::remove_if(s.qualifiers.begin(), s.qualifiers.end(),
                            [group](std::string_view qualifier) { return is_in_group(group, qualifier); });
  s.qualifiers.erase(end, s.qualifiers.end());
  return s;
}

// Copies are complete at once, so that groups of them need no account.
bool decode_wait(Decoder& d, const Statement& s, Instruction& i) {
  const bool has_number = s.has("wait_group");
  if (s.qualifiers.size() != 2 || s.operands.size() != has_number) return false;
  if (has_number) d.bits(s.operands[0], "u32");  // rejects what is no integer
  i.execute = do_nothing;
  d.emit(i);
  return true;
}

// Decodes `src-size` or `ignore-src`.
void decode_source_size(Decoder& d, const Operand& o, Instruction& i) {
  const bool is_ignore = d.is_predicate(o);
  i.variant = is_ignore ? kUnlessIgnored : kCounted;
  i.b = is_ignore ? d.predicate(o) : d.source(o, "u32");
}

}  // namespace

bool decode_asynchronous_copy(Decoder& d, const Statement& s, Instruction& i) {
  if (s.qualifiers.empty() || s.qualifiers[0] != "async") return false;
  if (!s.qualifier_of("commit_group|wait_group|wait_all").empty()) return decode_wait(d, s, i);
  const std::string_view cache = s.qualifier_of("ca|cg");
  const size_t operands = s.operands.size() - s.has("L2::cache_hint");  // the hint is ignored
  if (!s.allows_only({"async", "ca|cg", "shared|shared::cta", "global", "L2::cache_hint", "L2::64B|L2::128B|L2::256B"}, 0) ||
      cache.empty() || !s.has("global") || (operands != 3 && operands != 4) || s.operands[2].kind != Operand::Literal)
    return false;
  if (s.qualifier_of(kAccessSpaceQualifiers) == "global") return false;  // shared comes first
  const uint64_t bytes = d.bits(s.operands[2], "u32");
  i.execute = bytes == 16 ? copy<16> : cache == "cg" ? nullptr : bytes == 8 ? copy<8> : bytes == 4 ? copy<4> : nullptr;
  if (!i.execute) return false;
  if (operands == 4) {
    if (s.operands[3].kind == Operand::Literal && d.bits(s.operands[3], "u32") > bytes) return false;
    decode_source_size(d, s.operands[3], i);
  }
  Instruction destination;
  AccessSpace shared = AccessSpace::Shared, global = AccessSpace::Generic;
  decode_address(d, without(s, "global"), s.operands[0], shared, destination);
  i.c = destination.a;
  i.vector_registers[kBaseWidth] = destination.e, i.vector_registers[kOffset] = static_cast<uint32_t>(destination.imm);
  decode_address(d, without(s, "shared|shared::cta"), s.operands[1], global, i);
  i.schedule_source = ScheduleSource::AsynchronousCopy;
  i.kind = InstructionKind::SchedulingPoint;
  d.emit(i);
  return true;
}

}  // namespace vgpu
