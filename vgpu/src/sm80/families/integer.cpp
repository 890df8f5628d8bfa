// Sums, products and comparisons of integers, with carries between 32-bit words.
#include "operands.h"
#include "select.h"

namespace vgpu::sm80 {
namespace {

constexpr uint32_t kSigned = 1, kExtended = 2;  // flags of i.variant: signed operands; with a carry in

// Returns an addend in 33 bits.  A negated one is ~x + 1, so that -0 carries; with a carry in, that replaces the 1.
uint64_t addend(uint32_t value, bool negated, bool extended) { return negated ? uint64_t(~value) + !extended : value; }

void add3(WarpContext& warp, const Instruction& i) {
  const uint32_t *a = lane_words(warp, i.a), *b = lane_words(warp, i.b), *c = lane_words(warp, i.c);
  write_lane_words(warp, i.d, [=](uint32_t l) { return a[l] + b[l] + c[l]; });
}

void add3_signed(WarpContext& warp, const Instruction& i) {
  const uint32_t *a = lane_words(warp, i.a), *b = lane_words(warp, i.b), *c = lane_words(warp, i.c),
                 flags = i.vector_registers[kFlags];
  const uint32_t na = flags & 1, nb = flags >> 2 & 1, nc = flags >> 4 & 1, fa = 0 - na, fb = 0 - nb, fc = 0 - nc;
  const uint32_t ones = na + nb + nc;
  write_lane_words(warp, i.d, [=](uint32_t l) { return (a[l] ^ fa) + (b[l] ^ fb) + (c[l] ^ fc) + ones; });
}

// imm: whether the second carry is written separately; otherwise both are combined.
void add3_carry(WarpContext& warp, const Instruction& i) {
  const uint32_t *a = lane_words(warp, i.a), *b = lane_words(warp, i.b), *c = lane_words(warp, i.c),
                 flags = i.vector_registers[kFlags];
  const bool extended = i.variant & kExtended;
  const uint32_t carry_in = extended ? read_predicate(warp, i.e) : 0,
                 second_carry_in = extended ? read_predicate(warp, i.vector_registers[kSecondRead]) : 0;
  alignas(64) uint32_t sums[kWarpSize], first[kWarpSize], second[kWarpSize];  // the sums and their carries
  VGPU_INDEPENDENT
  for (uint32_t l = 0; l < kWarpSize; l++) {
    const uint64_t low = addend(a[l], flags & 1, extended) + addend(b[l], flags >> 2 & 1, extended);
    const uint64_t sum =
        (low & kFullMask) + addend(c[l], flags >> 4 & 1, extended) + (carry_in >> l & 1) + (second_carry_in >> l & 1);
    sums[l] = static_cast<uint32_t>(sum);
    first[l] = static_cast<uint32_t>(low >> 32), second[l] = static_cast<uint32_t>(sum >> 32);
  }
  write_lane_words(warp, i.d, [&](uint32_t l) { return sums[l]; });
  const uint32_t carries = lanes_where([&](uint32_t l) { return second[l] != 0; });
  write_predicate(warp, i.vector_registers[kFirstWritten],
                  lanes_where([&](uint32_t l) { return first[l] != 0; }) | (i.imm ? 0 : carries));
  write_predicate(warp, i.vector_registers[kSecondWritten], carries);
}

template <bool kNegated> void multiply_add(WarpContext& warp, const Instruction& i) {
  const uint32_t *a = lane_words(warp, i.a), *b = lane_words(warp, i.b), *c = lane_words(warp, i.c);
  write_lane_words(warp, i.d, [=](uint32_t l) { return a[l] * b[l] + (kNegated ? 0u - c[l] : c[l]); });
}
void multiply_add_extended(WarpContext& warp, const Instruction& i) {
  const uint32_t *a = lane_words(warp, i.a), *b = lane_words(warp, i.b), *c = lane_words(warp, i.c),
                 carry_in = read_predicate(warp, i.e);
  const uint32_t flip = i.vector_registers[kFlags] & kNegateC ? kFullMask : 0;
  write_lane_words(warp, i.d, [=](uint32_t l) { return a[l] * b[l] + (c[l] ^ flip) + (carry_in >> l & 1); });
}
void add2(WarpContext& warp, const Instruction& i) {
  const uint32_t *a = lane_words(warp, i.a), *c = lane_words(warp, i.c);
  write_lane_words(warp, i.d, [=](uint32_t l) { return a[l] + c[l]; });
}
void copy_third(WarpContext& warp, const Instruction& i) {
  const uint32_t* c = lane_words(warp, i.c);
  write_lane_words(warp, i.d, [=](uint32_t l) { return c[l]; });
}

uint64_t product(bool is_signed, uint32_t a, uint32_t b) {
  if (!is_signed) return uint64_t(a) * b;
  return static_cast<uint64_t>(int64_t(static_cast<int32_t>(a)) * int64_t(static_cast<int32_t>(b)));
}

template <bool kIsSigned> void multiply_add_wide(WarpContext& warp, const Instruction& i) {
  const uint32_t *a = lane_words(warp, i.a), *b = lane_words(warp, i.b), *c = lane_words(warp, i.c);
  write_pairs(warp, i.d, [=](uint32_t l) { return product(kIsSigned, a[l], b[l]) + pair_of(c, l); });
}

template <bool kIsSigned> void multiply_add_high(WarpContext& warp, const Instruction& i) {
  const uint32_t *a = lane_words(warp, i.a), *b = lane_words(warp, i.b), *c = lane_words(warp, i.c);
  write_lane_words(warp, i.d,
                   [=](uint32_t l) { return static_cast<uint32_t>((product(kIsSigned, a[l], b[l]) + pair_of(c, l)) >> 32); });
}

// Adds a product and a pair, and writes 64 bits (imm 64), or the upper half.
void multiply_add_carry(WarpContext& warp, const Instruction& i) {
  const uint32_t *a = lane_words(warp, i.a), *b = lane_words(warp, i.b), *c = lane_words(warp, i.c);
  const bool extended = i.variant & kExtended, negated = i.vector_registers[kFlags] & kNegateC;
  const uint32_t carry_in = extended ? read_predicate(warp, i.e) : 0;
  uint64_t sums[kWarpSize];
  uint32_t carries = 0;
  for (uint32_t l = 0; l < kWarpSize; l++) {
    const uint64_t pair = pair_of(c, l), added = negated ? extended ? ~pair : 0 - pair : pair;
    bool has_overflow = __builtin_add_overflow(product(i.variant & kSigned, a[l], b[l]), added, &sums[l]);
    has_overflow |= __builtin_add_overflow(sums[l], uint64_t(carry_in >> l & 1), &sums[l]);
    carries |= uint32_t(has_overflow) << l;
  }
  if (i.imm == 64) write_pairs(warp, i.d, [&](uint32_t l) { return sums[l]; });
  else write_lane_words(warp, i.d, [&](uint32_t l) { return static_cast<uint32_t>(sums[l] >> 32); });
  write_predicate(warp, i.vector_registers[kFirstWritten], carries);
}

// Flags of imm of load_address(), which shifts a, or the pair of a and c, by the low bits of imm, and adds b.
constexpr uint32_t kHigh = 32, kSignOfA = 64;

uint64_t shift_operand(const Instruction& i, uint32_t a, uint32_t c) {
  const bool high = i.imm & kHigh;
  uint64_t pair =
      i.imm & kSignOfA ? static_cast<uint64_t>(int64_t(static_cast<int32_t>(a))) : a | (high ? uint64_t(c) << 32 : 0);
  pair <<= i.imm & 31;
  if (i.vector_registers[kFlags] & kNegateA) {
    if (i.variant & kExtended) pair = ~pair;
    else if (high) pair = 0 - pair;
    else return (~pair & kFullMask) + 1;  // 2^32 for 0, which carries
  }
  return high ? pair >> 32 : pair & kFullMask;
}

// Adds b to shifted(lane), and writes the carry.
template <class F> void add_to_shifted(WarpContext& warp, const Instruction& i, F shifted) {
  const uint32_t* b = lane_words(warp, i.b);
  const bool extended = i.variant & kExtended, negated = i.vector_registers[kFlags] & kNegateB;
  const uint32_t carry_in = extended ? read_predicate(warp, i.e) : 0;
  alignas(64) uint32_t sums[kWarpSize], carries[kWarpSize];
  VGPU_INDEPENDENT
  for (uint32_t l = 0; l < kWarpSize; l++) {
    const uint64_t sum = shifted(l) + addend(b[l], negated, extended) + (carry_in >> l & 1);
    sums[l] = static_cast<uint32_t>(sum), carries[l] = static_cast<uint32_t>(sum >> 32);
  }
  write_lane_words(warp, i.d, [&](uint32_t l) { return sums[l]; });
  set_predicate(warp, i.vector_registers[kFirstWritten], [&](uint32_t l) { return carries[l] != 0; });
}

void load_address(WarpContext& warp, const Instruction& i) {
  const uint32_t *a = lane_words(warp, i.a), *c = lane_words(warp, i.c), distance = i.imm & 31;
  const bool high = i.imm & kHigh;
  if (i.imm & kSignOfA || i.vector_registers[kFlags] & kNegateA)
    return add_to_shifted(warp, i, [=, &i](uint32_t l) { return shift_operand(i, a[l], c[l]); });
  // The usual cases, which compilers vectorize.
  if (high) return add_to_shifted(warp, i, [=](uint32_t l) { return (a[l] | uint64_t(c[l]) << 32) << distance >> 32; });
  add_to_shifted(warp, i, [=](uint32_t l) -> uint64_t {
    const uint32_t low = a[l] << distance;
    return low;
  });
}
void load_address_simple(WarpContext& warp, const Instruction& i) {
  const uint32_t *a = lane_words(warp, i.a), *b = lane_words(warp, i.b), distance = static_cast<uint32_t>(i.imm);
  write_lane_words(warp, i.d, [=](uint32_t l) { return (a[l] << distance) + b[l]; });
}

// Bits of a comparison's test.
enum Test : uint8_t { kLess = 1, kEqual = 2, kGreater = 4 };

template <class T> uint32_t compare(uint32_t test, const uint32_t* a, const uint32_t* b) {
  const auto lanes_with = [=](auto holds) {
    return lanes_where([=](uint32_t l) { return holds(static_cast<T>(a[l]), static_cast<T>(b[l])); });
  };
  switch (test) {
    case 0: return 0;
    case kLess: return lanes_with([](T x, T y) { return x < y; });
    case kEqual: return lanes_with([](T x, T y) { return x == y; });
    case kLess | kEqual: return lanes_with([](T x, T y) { return x <= y; });
    case kGreater: return lanes_with([](T x, T y) { return x > y; });
    case kLess | kGreater: return lanes_with([](T x, T y) { return x != y; });
    case kGreater | kEqual: return lanes_with([](T x, T y) { return x >= y; });
    default: return kFullMask;
  }
}

// imm: the test, and from bit 3 on the operation that combines it with the predicate.  kUpper: compares upper halves; if they are
// equal, the result is that of the lower halves.
template <class T, bool kUpper> void compare_and_combine(WarpContext& warp, const Instruction& i) {
  const uint32_t *a = lane_words(warp, i.a), *b = lane_words(warp, i.b), test = i.imm & 7,
                 operation = static_cast<uint32_t>(i.imm >> 3);
  uint32_t result = compare<T>(kUpper ? test & ~kEqual : test, a, b);
  if (kUpper) {
    const uint32_t equal = compare<T>(kEqual, a, b);
    result = (result & ~equal) | (read_predicate(warp, i.vector_registers[kSecondRead]) & equal);
  }
  const uint32_t other = read_predicate(warp, i.e);
  write_predicate(warp, i.vector_registers[kFirstWritten], combine(operation, result, other));
  write_predicate(warp, i.vector_registers[kSecondWritten], combine(operation, ~result, other));
}

template <class T> void minimum(WarpContext& warp, const Instruction& i) {
  const uint32_t *a = lane_words(warp, i.a), *b = lane_words(warp, i.b), wants_minimum = read_predicate(warp, i.e);
  write_lane_words(warp, i.d, [=](uint32_t l) {
    const bool less = static_cast<T>(a[l]) < static_cast<T>(b[l]);
    return blend(less == bool(wants_minimum >> l & 1), a[l], b[l]);
  });
}

void absolute(WarpContext& warp, const Instruction& i) {
  const uint32_t* b = lane_words(warp, i.b);
  write_lane_words(warp, i.d, [=](uint32_t l) { return b[l] >> 31 ? 0u - b[l] : b[l]; });
}

template <class T> void absolute_difference(WarpContext& warp, const Instruction& i) {
  const uint32_t *a = lane_words(warp, i.a), *b = lane_words(warp, i.b), *c = lane_words(warp, i.c);
  write_lane_words(
      warp, i.d, [=](uint32_t l) { return (static_cast<T>(a[l]) < static_cast<T>(b[l]) ? b[l] - a[l] : a[l] - b[l]) + c[l]; });
}

template <bool kSignedA, bool kSignedB> void dot_product(WarpContext& warp, const Instruction& i) {
  const uint32_t *a = lane_words(warp, i.a), *b = lane_words(warp, i.b), *c = lane_words(warp, i.c);
  const auto byte = [](bool is_signed, uint32_t word, uint32_t k) {
    const uint8_t bits = static_cast<uint8_t>(word >> (8 * k));
    return is_signed ? int32_t(static_cast<int8_t>(bits)) : int32_t(bits);
  };
  write_lane_words(warp, i.d, [=](uint32_t l) {
    uint32_t sum = c[l];
    for (uint32_t k = 0; k < 4; k++) sum += static_cast<uint32_t>(byte(kSignedA, a[l], k) * byte(kSignedB, b[l], k));
    return sum;
  });
}

bool is_zero(const Source& source) {
  return (source.kind == SourceKind::Register && source.number == kRZ) ||
         (source.kind == SourceKind::UniformRegister && source.number == kURZ) ||
         (source.kind == SourceKind::Immediate && source.number == 0);
}

uint8_t mode_of(const Decoded& c) { return static_cast<uint8_t>((c.has("U32") ? 0 : kSigned) | (c.has("X") ? kExtended : 0)); }

// Whether a product and a pair are added with a carry in or out, or the pair is negated.
bool needs_carry(const Decoded& c) { return c.has("X") || c.c.negated || c.bits(81, 3) != kPT; }

bool writes_carry(const Decoded& c) { return c.bits(81, 3) != kPT || c.bits(84, 3) != kPT; }

}  // namespace

bool select_add3(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  i.variant = mode_of(c), i.vector_registers[kFlags] = sign_flags(c);
  i.imm = c.bits(84, 3) != kPT;
  if (c.has("X") || writes_carry(c)) {
    if (!c.has("X")) i.e = i.vector_registers[kSecondRead] = d.always() | kNegated;
    i.execute = add3_carry;
  } else {
    i.execute = i.vector_registers[kFlags] ? add3_signed : add3;
  }
  return true;
}

bool select_multiply_add(FunctionDecoder&, const Decoded& c, Instruction& i) {
  i.vector_registers[kFlags] = sign_flags(c), i.variant = mode_of(c);
  if (c.has("X")) i.execute = multiply_add_extended;
  else if (c.c.negated) i.execute = multiply_add<true>;
  else if (is_zero(c.a) || is_zero(c.b)) i.execute = copy_third;
  else if (c.b.kind == SourceKind::Immediate && c.b.number == 1) i.execute = add2;
  else i.execute = multiply_add<false>;
  return c.bits(81, 3) == kPT;  // a carry out is not supported
}

bool select_multiply_add_wide(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  i.variant = mode_of(c), i.vector_registers[kFlags] = sign_flags(c), i.imm = 64;
  i.c = d.read_pair(c.c, WideImmediate::SignExtended);
  if (needs_carry(c)) i.execute = multiply_add_carry;
  else i.execute = i.variant & kSigned ? multiply_add_wide<true> : multiply_add_wide<false>;
  return true;
}

bool select_multiply_add_high(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  i.variant = mode_of(c), i.vector_registers[kFlags] = sign_flags(c), i.imm = 32;
  i.c = d.read_pair(c.c, WideImmediate::SignExtended);
  if (needs_carry(c)) i.execute = multiply_add_carry;
  else i.execute = i.variant & kSigned ? multiply_add_high<true> : multiply_add_high<false>;
  return true;
}

bool select_load_address(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  i.variant = mode_of(c), i.vector_registers[kFlags] = sign_flags(c);
  i.imm = c.bits(75, 5) | (c.has("HI") ? kHigh : 0) | (c.has("SX32") ? kSignOfA : 0);
  if (!c.has("HI") || c.has("SX32")) i.c = d.constant(0);
  const bool simple = !c.has("X") && !c.has("HI") && !c.has("SX32") && !i.vector_registers[kFlags] && c.bits(81, 3) == kPT;
  i.execute = simple ? load_address_simple : load_address;
  return true;
}

bool select_compare(FunctionDecoder&, const Decoded& c, Instruction& i) {
  i.imm = c.bits(76, 3) | c.bits(74, 2) << 3;
  const bool is_signed = !c.has("U32");
  if (c.has("EX")) i.execute = is_signed ? compare_and_combine<int32_t, true> : compare_and_combine<uint32_t, true>;
  else i.execute = is_signed ? compare_and_combine<int32_t, false> : compare_and_combine<uint32_t, false>;
  return true;
}

bool select_minimum(FunctionDecoder&, const Decoded& c, Instruction& i) {
  i.execute = c.has("U32") ? minimum<uint32_t> : minimum<int32_t>;
  return true;
}

bool select_absolute(FunctionDecoder&, const Decoded&, Instruction& i) { return i.execute = absolute, true; }

bool select_absolute_difference(FunctionDecoder&, const Decoded& c, Instruction& i) {
  i.execute = c.has("U32") ? absolute_difference<uint32_t> : absolute_difference<int32_t>;
  return true;
}

bool select_dot_product(FunctionDecoder&, const Decoded& c, Instruction& i) {
  const bool a = c.modifier(73) == "S8", b = c.modifier(74) == "S8";
  if (a) i.execute = b ? dot_product<true, true> : dot_product<true, false>;
  else i.execute = b ? dot_product<false, true> : dot_product<false, false>;
  return true;
}

bool select_pack_integers(FunctionDecoder&, const Decoded&, Instruction&) { return false; }

}  // namespace vgpu::sm80
