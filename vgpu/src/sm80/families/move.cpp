// Moves, selections, permutations, special registers.
#include "operands.h"
#include "select.h"

namespace vgpu::sm80 {
namespace {

void move(WarpContext& warp, const Instruction& i) {
  const uint32_t* b = lane_words(warp, i.b);
  write_lane_words(warp, i.d, [=](uint32_t l) { return b[l]; });
}

void sel(WarpContext& warp, const Instruction& i) {
  const uint32_t *a = lane_words(warp, i.a), *b = lane_words(warp, i.b), condition = read_predicate(warp, i.e);
  write_lane_words(warp, i.d, [=](uint32_t l) { return blend(condition >> l & 1, a[l], b[l]); });
}

enum class Permutation : uint8_t { Index, Forward4, Backward4, Replicate8, EdgeLeft, EdgeRight, Replicate16 };

// Selects each byte of the result by a nibble of the selector, whose highest bit asks for only the byte's sign.
uint32_t permute_by_index(uint64_t bytes, uint32_t selector) {
  uint32_t result = 0;
  for (uint32_t k = 0; k < 4; k++) {
    const uint32_t nibble = selector >> (4 * k) & 15;
    uint8_t byte = static_cast<uint8_t>(bytes >> (8 * (nibble & 7)));
    if (nibble & 8) byte = byte & 0x80 ? 0xff : 0;
    result |= uint32_t(byte) << (8 * k);
  }
  return result;
}

uint32_t permuted_byte_index(Permutation mode, uint32_t selector, uint32_t k) {
  const uint32_t s = selector & 3;
  switch (mode) {
    case Permutation::Forward4: return s + k;
    case Permutation::Backward4: return (s - k) & 7;
    case Permutation::Replicate8: return s;
    case Permutation::EdgeLeft: return std::max(s, k);
    case Permutation::EdgeRight: return std::min(s, k);
    default: return (s & 1) * 2 + (k & 1);
  }
}

void permute(WarpContext& warp, const Instruction& i) {
  const uint32_t *a = lane_words(warp, i.a), *b = lane_words(warp, i.b), *c = lane_words(warp, i.c);
  const Permutation mode = static_cast<Permutation>(i.variant);
  if (mode == Permutation::Index)
    return write_lane_words(warp, i.d, [=](uint32_t l) { return permute_by_index(a[l] | uint64_t(c[l]) << 32, b[l]); });
  write_lane_words(warp, i.d, [=](uint32_t l) {
    const uint64_t bytes = a[l] | uint64_t(c[l]) << 32;
    uint32_t result = 0;
    for (uint32_t k = 0; k < 4; k++)
      result |= uint32_t(static_cast<uint8_t>(bytes >> (8 * permuted_byte_index(mode, b[l], k)))) << (8 * k);
    return result;
  });
}

// A mask of b bits from bit a on.
template <bool kWraps> void bit_mask(WarpContext& warp, const Instruction& i) {
  const uint32_t *a = lane_words(warp, i.a), *b = lane_words(warp, i.b);
  write_lane_words(warp, i.d, [=](uint32_t l) -> uint32_t {
    const uint32_t begin = kWraps ? a[l] & 31 : a[l], width = kWraps ? b[l] & 31 : std::min(b[l], 32u);
    return begin >= 32 ? 0 : static_cast<uint32_t>(((uint64_t(1) << width) - 1) << begin);
  });
}

// The lowest b bits of a, extended by their highest bit if the operation is signed.
template <bool kWraps, bool kSigned> void sign_extend(WarpContext& warp, const Instruction& i) {
  const uint32_t *a = lane_words(warp, i.a), *b = lane_words(warp, i.b);
  write_lane_words(warp, i.d, [=](uint32_t l) -> uint32_t {
    const uint32_t width = kWraps ? b[l] & 31 : std::min(b[l], 32u);
    const uint32_t mask = static_cast<uint32_t>((uint64_t(1) << width) - 1), low = a[l] & mask;
    return kSigned && width && low >> (width - 1) & 1 ? low | ~mask : low;
  });
}

// imm: the bits that are taken from the predicates, which begin at b; the others come from a.
void predicates_to_register(WarpContext& warp, const Instruction& i) {
  const uint32_t *a = lane_words(warp, i.a), mask = static_cast<uint32_t>(i.imm);
  uint32_t predicates[7];
  for (uint32_t p = 0; p < 7; p++) predicates[p] = predicate(warp, i.b + 4 * p);
  write_lane_words(warp, i.d, [&](uint32_t l) {
    uint32_t bits = 0;
    for (uint32_t p = 0; p < 7; p++) bits |= (predicates[p] >> l & 1) << p;
    return (a[l] & ~mask) | (bits & mask);
  });
}

void register_to_predicates(WarpContext& warp, const Instruction& i) {
  const uint32_t *a = lane_words(warp, i.a), mask = static_cast<uint32_t>(i.imm);
  for (uint32_t p = 0; p < 7; p++)
    if (mask >> p & 1) set_predicate(warp, i.b + 4 * p, [=](uint32_t l) { return a[l] >> p & 1; });
}

bool do_lanes_differ(const WarpContext& warp, const uint32_t* values) {
  const uint32_t first = values[__builtin_ctz(warp.active_mask)];
  return (lanes_where([=](uint32_t l) { return values[l] != first; }) & warp.active_mask) != 0;
}

// To a uniform register: the first lane's value.  Which lane's value hardware takes where they differ is not documented.
void first_lane(WarpContext& warp, const Instruction& i) {
  const uint32_t *values = lane_words(warp, i.a), value = values[__builtin_ctz(warp.active_mask)];
  if (warp.observer && do_lanes_differ(warp, values)) notify_schedule_source(warp, i, ScheduleSource::ActiveLanes);
  write_lane_words(warp, i.d, [=](uint32_t) { return value; });
}

// The predicate result of R2UR is not documented.  Code branches by it to what serves lanes with different values, such as
// masks of __ballot_sync(); a BRA.CONV behind it makes sure that all lanes are there.
void write_whether_lanes_differ(WarpContext& warp, const Instruction& i) {
  const bool differ = do_lanes_differ(warp, lane_words(warp, i.a));
  write_predicate(warp, i.vector_registers[kFirstWritten], differ ? kFullMask : 0);
}

void clock_low(WarpContext& warp, const Instruction& i) {
  notify_schedule_source(warp, i, ScheduleSource::Clock);
  const uint32_t now = static_cast<uint32_t>(warp.clock += 8);
  write_lane_words(warp, i.d, [=](uint32_t) { return now; });
}
void clock_wide(WarpContext& warp, const Instruction& i) {
  notify_schedule_source(warp, i, ScheduleSource::Clock);
  const uint64_t now = warp.clock += 8;
  write_pairs(warp, i.d, [=](uint32_t) { return now; });
}
void clock_high(WarpContext& warp, const Instruction& i) {
  notify_schedule_source(warp, i, ScheduleSource::Clock);
  const uint32_t now = static_cast<uint32_t>(warp.clock >> 32);
  write_lane_words(warp, i.d, [=](uint32_t) { return now; });
}

// The low 7 bits of the warp's number, from bit 8 on, where ptxas reads %warpid.
void virtual_id(WarpContext& warp, const Instruction& i) {
  const uint32_t* number = lane_words(warp, special_offset(kWarpid));
  write_lane_words(warp, i.d, [=](uint32_t l) { return (number[l] & 127) << 8; });
}

void move_zeros(WarpContext& warp, const Instruction& i) {
  write_pairs(warp, i.d, [](uint32_t) { return uint64_t(0); });
}

enum : uint32_t {
  kVirtualId = 3,
  kVirtualSmid = 0x43,
  kClockLow = 0x50,
  kClockHigh = 0x51,
  kTimerLow = 0x52,
  kTimerHigh = 0x53,
  kSpecialZero = 0xff
};

// The core's register with the same meaning, or kSpecials if there is none.
uint32_t core_register(uint32_t number) {
  switch (number) {
    case 0x00: return kLaneid;
    case 0x21: return kTidX;
    case 0x22: return kTidY;
    case 0x23: return kTidZ;
    case 0x25: return kCtaidX;
    case 0x26: return kCtaidY;
    case 0x27: return kCtaidZ;
    case 0x32: return kTotalSharedBytes;
    case 0x38: return kMaskEq;
    case 0x39: return kMaskLt;
    case 0x3a: return kMaskLe;
    case 0x3b: return kMaskGt;
    case 0x3c: return kMaskGe;
    case kVirtualSmid: return kSmid;
    case kSpecialZero: return kZero;
    default: return kSpecials;
  }
}

// Reads one 32-bit register; where an instruction can read two (CS2R), the first.
bool select_special_word(uint32_t number, Instruction& i) {
  if (number == kClockLow || number == kTimerLow) i.execute = clock_low;
  else if (number == kClockHigh || number == kTimerHigh) i.execute = clock_high;
  else if (number == kVirtualId) i.execute = virtual_id;
  if (number == kVirtualId || number == kVirtualSmid) i.schedule_source = ScheduleSource::Processor;
  if (i.execute) return true;
  const uint32_t special_register = core_register(number);
  i.b = special_offset(special_register), i.execute = move;
  return special_register != kSpecials;
}

}  // namespace

bool select_move(FunctionDecoder&, const Decoded&, Instruction& i) { return i.execute = move, true; }
bool select_sel(FunctionDecoder&, const Decoded&, Instruction& i) { return i.execute = sel, true; }

bool select_permute(FunctionDecoder&, const Decoded& c, Instruction& i) {
  static const std::string_view names[] = {"", "F4E", "B4E", "RC8", "ECL", "ECR", "RC16"};
  const auto name = std::find(std::begin(names), std::end(names), c.modifier(72));
  i.variant = static_cast<uint8_t>(name - std::begin(names)), i.execute = permute;
  return name != std::end(names);
}

bool select_bit_mask(FunctionDecoder&, const Decoded& c, Instruction& i) {
  i.execute = c.has("W") ? bit_mask<true> : bit_mask<false>;
  return true;
}

bool select_sign_extend(FunctionDecoder&, const Decoded& c, Instruction& i) {
  const bool is_signed = !c.has("U32");
  if (c.has("W")) i.execute = is_signed ? sign_extend<true, true> : sign_extend<true, false>;
  else i.execute = is_signed ? sign_extend<false, true> : sign_extend<false, false>;
  return true;
}

bool select_predicates_to_register(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  const bool uniform = c.row->uniform_guard;
  i.a = uniform ? d.read_uniform(c.bits(24, 6)) : d.read_register(c.bits(24, 8));
  i.b = d.predicates(uniform), i.imm = c.bits(32, 32), i.execute = predicates_to_register;
  return i.imm < 128;
}

bool select_register_to_predicates(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  i.a = d.read_register(c.bits(24, 8)), i.b = d.predicates(false);
  i.imm = c.bits(32, 32), i.execute = register_to_predicates;
  return i.imm < 128;
}

bool select_special(FunctionDecoder&, const Decoded& c, Instruction& i) { return select_special_word(c.bits(72, 8), i); }

bool select_special_uniform(FunctionDecoder&, const Decoded& c, Instruction& i) {
  if (!select_special_word(c.bits(72, 8), i)) return false;
  if (i.execute == move) i.a = i.b, i.execute = first_lane;
  return true;
}

bool select_special_wide(FunctionDecoder&, const Decoded& c, Instruction& i) {
  const uint32_t number = c.bits(72, 8);
  if (c.has("32")) return select_special_word(number, i);
  if (number == kSpecialZero) i.execute = move_zeros;
  if (number == kClockLow || number == kTimerLow) i.execute = clock_wide;
  return i.execute != nullptr;
}

bool select_to_uniform(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  i.a = d.read_register(c.bits(24, 8)), i.execute = first_lane;
  if (c.bits(81, 3) == kPT) return true;
  i.execute = write_whether_lanes_differ;
  return c.bits(16, 6) == kURZ;
}

}  // namespace vgpu::sm80
