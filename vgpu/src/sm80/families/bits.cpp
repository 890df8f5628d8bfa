// Logic of registers and predicates, shifts, and bit operations.
#include "arithmetic/truth_table.h"
#include "operands.h"
#include "select.h"

namespace vgpu::sm80 {
namespace {

template <uint32_t kTable> void logic(WarpContext& warp, const Instruction& i) {
  const uint32_t *a = lane_words(warp, i.a), *b = lane_words(warp, i.b), *c = lane_words(warp, i.c);
  write_lane_words(warp, i.d, [=](uint32_t l) { return apply_truth_table(kTable, a[l], b[l], c[l]); });
}

// imm: the table; count: whether a predicate is written: that the result is not zero, or the predicate that is read is true.
void logic_of_table(WarpContext& warp, const Instruction& i) {
  const uint32_t *a = lane_words(warp, i.a), *b = lane_words(warp, i.b), *c = lane_words(warp, i.c);
  const uint32_t table = static_cast<uint32_t>(i.imm);
  alignas(64) uint32_t results[kWarpSize];
  VGPU_INDEPENDENT
  for (uint32_t l = 0; l < kWarpSize; l++) results[l] = apply_truth_table(table, a[l], b[l], c[l]);
  write_lane_words(warp, i.d, [&](uint32_t l) { return results[l]; });
  if (i.count)
    write_predicate(warp, i.vector_registers[kFirstWritten],
                    lanes_where([&](uint32_t l) { return results[l] != 0; }) | read_predicate(warp, i.e));
}

Execute logic_function(uint32_t table) {
  switch (table) {  // the tables that are most common
    case 0xc0: return logic<0xc0>;
    case 0xfc: return logic<0xfc>;
    case 0x3c: return logic<0x3c>;
    case 0x30: return logic<0x30>;
    case 0x0c: return logic<0x0c>;
    case 0x33: return logic<0x33>;
    case 0xf8: return logic<0xf8>;
    case 0xea: return logic<0xea>;
    case 0xe2: return logic<0xe2>;
    case 0xb8: return logic<0xb8>;
    case 0xca: return logic<0xca>;
    case 0x96: return logic<0x96>;
    case 0xe8: return logic<0xe8>;
    case 0x80: return logic<0x80>;
    case 0xfe: return logic<0xfe>;
    case 0x78: return logic<0x78>;
    default: return logic_of_table;
  }
}

// Two tables of three predicates: vector_registers[kFlags] has the first, imm the second.  c: the third predicate.
void predicate_logic(WarpContext& warp, const Instruction& i) {
  const uint32_t a = read_predicate(warp, i.e), b = read_predicate(warp, i.a), c = read_predicate(warp, i.b);
  write_predicate(warp, i.vector_registers[kFirstWritten], apply_truth_table(i.vector_registers[kFlags], a, b, c));
  write_predicate(warp, i.vector_registers[kSecondWritten], apply_truth_table(static_cast<uint32_t>(i.imm), a, b, c));
}

constexpr uint32_t kRight = 1, kWraps = 2, kUpperHalf = 4, kWide = 8, kSigned = 16;  // of i.variant

uint32_t funnel(uint32_t mode, uint32_t low, uint32_t distance, uint32_t high) {
  const uint32_t width = mode & kWide ? 64 : 32, n = mode & kWraps ? distance & (width - 1) : std::min(distance, width);
  uint64_t pair = low | uint64_t(high) << 32;
  if (!(mode & kRight)) pair = n >= 64 ? 0 : pair << n;
  else if (mode & kSigned) pair = static_cast<uint64_t>(static_cast<int64_t>(pair) >> std::min(n, 63u));
  else pair = n >= 64 ? 0 : pair >> n;
  return static_cast<uint32_t>(mode & kUpperHalf ? pair >> 32 : pair);
}

void shift(WarpContext& warp, const Instruction& i) {
  const uint32_t *a = lane_words(warp, i.a), *b = lane_words(warp, i.b), *c = lane_words(warp, i.c), mode = i.variant;
  write_lane_words(warp, i.d, [=](uint32_t l) { return funnel(mode, a[l], b[l], c[l]); });
}
void shift_left(WarpContext& warp, const Instruction& i) {
  const uint32_t *a = lane_words(warp, i.a), *b = lane_words(warp, i.b);
  write_lane_words(warp, i.d, [=](uint32_t l) { return b[l] < 32 ? a[l] << (b[l] & 31) : 0; });
}
void shift_right_upper(WarpContext& warp, const Instruction& i) {
  const uint32_t *b = lane_words(warp, i.b), *c = lane_words(warp, i.c);
  write_lane_words(warp, i.d, [=](uint32_t l) { return b[l] < 32 ? c[l] >> (b[l] & 31) : 0; });
}
void shift_right_upper_signed(WarpContext& warp, const Instruction& i) {
  const uint32_t *b = lane_words(warp, i.b), *c = lane_words(warp, i.c);
  write_lane_words(warp, i.d,
                   [=](uint32_t l) { return static_cast<uint32_t>(static_cast<int32_t>(c[l]) >> std::min(b[l], 31u)); });
}

uint32_t reverse_bits(uint32_t v) {
  v = (v >> 1 & 0x55555555) | (v & 0x55555555) << 1;
  v = (v >> 2 & 0x33333333) | (v & 0x33333333) << 2;
  v = (v >> 4 & 0x0f0f0f0f) | (v & 0x0f0f0f0f) << 4;
  return __builtin_bswap32(v);
}

// Computes f of each lane's b, which vector_registers[kFlags] may invert.
template <class F> void apply_to_bits(WarpContext& warp, const Instruction& i, F f) {
  const uint32_t *b = lane_words(warp, i.b), flip = i.vector_registers[kFlags] & kNegateB ? kFullMask : 0;
  write_lane_words(warp, i.d, [=](uint32_t l) { return f(b[l] ^ flip); });
}
void reverse(WarpContext& warp, const Instruction& i) { apply_to_bits(warp, i, reverse_bits); }
void count(WarpContext& warp, const Instruction& i) {
  apply_to_bits(warp, i, [](uint32_t v) { return static_cast<uint32_t>(__builtin_popcount(v)); });
}
// Finds the highest bit that differs from the sign, or the shift that moves it to the top.
template <bool kIsSigned, bool kShift> void find_leading(WarpContext& warp, const Instruction& i) {
  apply_to_bits(warp, i, [](uint32_t v) -> uint32_t {
    if (kIsSigned && v >> 31) v = ~v;
    if (!v) return kFullMask;
    const uint32_t zeros = static_cast<uint32_t>(__builtin_clz(v));
    return kShift ? zeros : 31 - zeros;
  });
}

}  // namespace

bool select_logic(FunctionDecoder&, const Decoded& c, Instruction& i) {
  i.imm = c.bits(72, 8), i.count = c.bits(81, 3) != kPT;
  i.execute = i.count ? logic_of_table : logic_function(c.bits(72, 8));
  return c.has("LUT");
}

bool select_predicate_logic(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  const bool uniform = c.row->uniform_guard;
  i.a = d.read_predicate(c.bits(77, 4), uniform);
  i.b = d.read_predicate(c.bits(68, 4), uniform || c.bit(67));
  i.vector_registers[kFlags] = c.bits(64, 3) | c.bits(72, 5) << 3, i.imm = c.bits(16, 8);
  i.execute = predicate_logic;
  return true;
}

bool select_shift(FunctionDecoder&, const Decoded& c, Instruction& i) {
  const std::string_view type = c.modifier(73);
  const bool wide = type == "S64" || type == "U64", is_signed = type == "S32" || type == "S64";
  const bool right = c.has("R"), upper = c.has("HI"), wraps = c.has("W");
  i.variant = static_cast<uint8_t>((right ? kRight : 0) | (wraps ? kWraps : 0) | (upper ? kUpperHalf : 0) | (wide ? kWide : 0) |
                                   (is_signed ? kSigned : 0));
  i.execute = shift;
  if (wraps || wide) return true;
  if (!right && !upper) i.execute = shift_left;
  else if (right && upper) i.execute = is_signed ? shift_right_upper_signed : shift_right_upper;
  return true;
}

bool select_reverse(FunctionDecoder&, const Decoded& c, Instruction& i) {
  return i.vector_registers[kFlags] = sign_flags(c), i.execute = reverse, true;
}
bool select_count(FunctionDecoder&, const Decoded& c, Instruction& i) {
  return i.vector_registers[kFlags] = sign_flags(c), i.execute = count, true;
}
bool select_find_leading(FunctionDecoder&, const Decoded& c, Instruction& i) {
  i.vector_registers[kFlags] = sign_flags(c);
  const bool is_signed = !c.has("U32");
  if (c.has("SH")) i.execute = is_signed ? find_leading<true, true> : find_leading<false, true>;
  else i.execute = is_signed ? find_leading<true, false> : find_leading<false, false>;
  return true;
}

}  // namespace vgpu::sm80
