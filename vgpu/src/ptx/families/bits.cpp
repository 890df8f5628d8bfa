// Bit fields, bit counts, permutations, and arithmetic with carry.
#include <algorithm>

#include "arithmetic/truth_table.h"
#include "families.h"
#include "types.h"

namespace vgpu {
namespace {

struct Popc {
  template <class T> static uint32_t of(T a) { return uint32_t(__builtin_popcountll(Unsigned<T>(a))); }
};
struct Clz {
  template <class T> static uint32_t of(T a) {
    constexpr uint32_t bits = 8 * sizeof(T);
    return a ? uint32_t(__builtin_clzll(Unsigned<T>(a))) - (64 - bits) : bits;
  }
};
struct Brev {
  template <class T> static T of(T a) {
    T result = 0;
    for (unsigned k = 0; k < 8 * sizeof(T); k++) result |= ((a >> k) & T(1)) << (8 * sizeof(T) - 1 - k);
    return result;
  }
};
// The index of the highest bit that differs from the sign, or all ones if there is none.
struct Bfind {
  template <class T> static uint32_t of(T a) {
    Unsigned<T> bits = std::is_signed_v<T> && a < 0 ? Unsigned<T>(~a) : Unsigned<T>(a);
    return bits ? 63 - uint32_t(__builtin_clzll(bits)) : ~0u;
  }
};
// By how much to shift a left so that this bit becomes the highest.
struct BfindShift {
  template <class T> static uint32_t of(T a) {
    uint32_t index = Bfind::of(a);
    return index == ~0u ? index : uint32_t(8 * sizeof(T) - 1) - index;
  }
};
struct Bfe {
  template <class T> static T of(T a, uint32_t begin, uint32_t length) {
    constexpr uint32_t last = 8 * sizeof(T) - 1;
    begin &= 255, length &= 255;
    bool sign = std::is_signed_v<T> && length && (Unsigned<T>(a) >> std::min(begin + length - 1, last)) & 1;
    Unsigned<T> result = 0;
    for (uint32_t k = 0; k <= last; k++) {
      bool bit = k < length && begin + k <= last ? (Unsigned<T>(a) >> (begin + k)) & 1 : sign;
      result |= Unsigned<T>(bit) << k;
    }
    return static_cast<T>(result);
  }
};
template <class T> T insert(T a, T b, uint32_t begin, uint32_t length) {
  constexpr uint32_t bits = 8 * sizeof(T);
  begin &= 255, length &= 255;
  for (uint32_t k = 0; k < length && begin + k < bits; k++) {
    b &= static_cast<T>(~(T(1) << (begin + k)));
    b |= static_cast<T>(((a >> k) & T(1)) << (begin + k));
  }
  return b;
}

// szext and bmsk accept any number of bits: it is clamped to 32 or taken modulo 32.
template <bool kClamp> uint32_t limit_to_word(uint32_t b) { return kClamp ? std::min(b, 32u) : b & 31; }
// The low b bits of a, extended by their sign if T is signed.
template <bool kClamp> struct Szext {
  template <class T> static T of(T a, uint32_t b) {
    const uint32_t bits = limit_to_word<kClamp>(b), above = 32 - bits;
    return bits ? static_cast<T>(static_cast<T>(uint32_t(a) << above) >> above) : T(0);
  }
};
// A mask of b bits from bit a on.
template <bool kClamp> struct Bmsk {
  static uint32_t of(uint32_t a, uint32_t b) {
    return static_cast<uint32_t>(((1ull << limit_to_word<kClamp>(b)) - 1) << limit_to_word<kClamp>(a));
  }
};
// The index of the n-th set bit from `base` on, upwards if n > 0 and downwards if n < 0; with n = 0, `base` if that bit is set.
// All ones if there is none.
struct Fns {
  static uint32_t of(uint32_t mask, uint32_t base, uint32_t n) {
    const bool down = static_cast<int32_t>(n) < 0;
    uint32_t remaining = n == 0 ? 1 : down ? 0 - n : n;
    for (uint32_t index = base; index < 32; down ? index-- : index++) {
      remaining -= mask >> index & 1;
      if (!remaining) return index;
      if (n == 0) break;
    }
    return ~0u;
  }
};

template <class T> void bfe(WarpContext& warp, const Instruction& i) {
  T *d = lane_values<T>(warp, i.d), *a = lane_values<T>(warp, i.a);
  uint32_t *b = lane_values<uint32_t>(warp, i.b), *c = lane_values<uint32_t>(warp, i.c);
  for_each_lane(warp.active_mask, [=](uint32_t l) { d[l] = Bfe::of(a[l], b[l], c[l]); });
}
template <class T> void bfi(WarpContext& warp, const Instruction& i) {
  T *d = lane_values<T>(warp, i.d), *a = lane_values<T>(warp, i.a), *b = lane_values<T>(warp, i.b);
  uint32_t *c = lane_values<uint32_t>(warp, i.c), *e = lane_values<uint32_t>(warp, i.e);
  for_each_lane(warp.active_mask, [=](uint32_t l) { d[l] = insert(a[l], b[l], c[l], e[l]); });
}

// The four selectors of prmt, a nibble each.  mode: 0 is generic, then follow f4e, b4e, rc8, ecl, ecr and rc16.
uint32_t selectors_of(uint8_t mode, uint32_t c) {
  static const uint16_t table[6][4] = {{0x3210, 0x4321, 0x5432, 0x6543}, {0x5670, 0x6701, 0x7012, 0x0123},
                                       {0x0000, 0x1111, 0x2222, 0x3333}, {0x3210, 0x3211, 0x3222, 0x3333},
                                       {0x0000, 0x1110, 0x2210, 0x3210}, {0x1010, 0x3232, 0x1010, 0x3232}};
  return mode ? table[mode - 1][c & 3] : c;
}
void prmt(WarpContext& warp, const Instruction& i) {
  uint32_t *d = lane_values<uint32_t>(warp, i.d), *a = lane_values<uint32_t>(warp, i.a), *b = lane_values<uint32_t>(warp, i.b),
           *c = lane_values<uint32_t>(warp, i.c);
  for_each_lane(warp.active_mask, [=](uint32_t l) {
    uint64_t bytes = a[l] | uint64_t(b[l]) << 32;
    uint32_t selectors = selectors_of(i.variant, c[l]), result = 0;
    for (int k = 0; k < 4; k++) {
      uint32_t selector = selectors >> (4 * k) & 15, byte = bytes >> (8 * (selector & 7)) & 255;
      if (selector & 8) byte = byte & 128 ? 255 : 0;
      result |= byte << (8 * k);
    }
    d[l] = result;
  });
}
void lop3(WarpContext& warp, const Instruction& i) {
  uint32_t *d = lane_values<uint32_t>(warp, i.d), *a = lane_values<uint32_t>(warp, i.a), *b = lane_values<uint32_t>(warp, i.b),
           *c = lane_values<uint32_t>(warp, i.c);
  uint32_t table = static_cast<uint32_t>(i.imm);
  assign_lanes(warp.active_mask, d, [=](uint32_t l) { return apply_truth_table(table, a[l], b[l], c[l]); });
}
// lop3 that also combines "the result is not 0" with predicate e.  vector_registers[0]: the predicate result; count 2: and, else
// or.
void lop3_with_predicate(WarpContext& warp, const Instruction& i) {
  const uint32_t other = predicate(warp, i.e);
  lop3(warp, i);
  const uint32_t* d = lane_values<uint32_t>(warp, i.d);
  const uint32_t any = lanes_where([=](uint32_t l) { return d[l] != 0; });
  write_predicate(warp, i.vector_registers[0], i.count == 2 ? any & other : any | other);
}
template <bool kLeft, bool kWrap> void funnel(WarpContext& warp, const Instruction& i) {
  uint32_t *d = lane_values<uint32_t>(warp, i.d), *a = lane_values<uint32_t>(warp, i.a), *b = lane_values<uint32_t>(warp, i.b),
           *c = lane_values<uint32_t>(warp, i.c);
  for_each_lane(warp.active_mask, [=](uint32_t l) {
    uint64_t pair = a[l] | uint64_t(b[l]) << 32;
    uint32_t distance = kWrap ? c[l] & 31 : std::min(c[l], 32u);
    d[l] = kLeft ? uint32_t((pair << distance) >> 32) : uint32_t(pair >> distance);
  });
}

// The carry is kept in an unnamed predicate, one per function.  A subtraction leaves the carry of a + ~b + 1 there, which is the
// complement of the borrow, as hardware does; later instructions that read the carry see that value.
template <class T> T high(T a, T b) {
  using W = std::conditional_t<sizeof(T) == 8, std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>,
                               std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;
  return static_cast<T>((W(a) * b) >> (8 * sizeof(T)));
}
enum { kAddCarry, kSubCarry, kLowCarry, kHighCarry };
constexpr uint8_t kReads = 1, kWrites = 2;
template <class T, int kOperation> void carry(WarpContext& warp, const Instruction& i) {
  using U = Unsigned<T>;
  using W = unsigned __int128;
  T *d = lane_values<T>(warp, i.d), *a = lane_values<T>(warp, i.a), *b = lane_values<T>(warp, i.b),
    *c = lane_values<T>(warp, i.c);
  uint32_t& flags = predicate(warp, i.e);
  uint32_t out = 0;
  for (uint32_t remaining = warp.active_mask; remaining; remaining &= remaining - 1) {
    uint32_t l = uint32_t(__builtin_ctz(remaining));
    W in = i.variant & kReads ? flags >> l & 1 : 0, sum;
    if (kOperation == kAddCarry) sum = W(U(a[l])) + U(b[l]) + in;
    else if (kOperation == kSubCarry) sum = W(U(a[l])) + U(~b[l]) + (i.variant & kReads ? in : 1);
    else sum = W(U(kOperation == kHighCarry ? high(a[l], b[l]) : T(U(a[l]) * U(b[l])))) + U(c[l]) + in;
    d[l] = static_cast<T>(sum);
    out |= uint32_t(sum >> (8 * sizeof(T)) & 1) << l;
  }
  if (i.variant & kWrites) write_predicate(warp, i.e, out);
}
template <class T> Execute carry_of(const Statement& s) {
  if (s.op == "add" || s.op == "addc") return carry<T, kAddCarry>;
  if (s.op == "sub" || s.op == "subc") return carry<T, kSubCarry>;
  return s.has("hi") ? carry<T, kHighCarry> : carry<T, kLowCarry>;
}

Execute select_count(const Statement& s, std::string_view t) {
  bool wide = ptx::size_of(t) == 8;
  if (s.op == "popc") return wide ? unary<uint32_t, uint64_t, Popc> : unary<uint32_t, uint32_t, Popc>;
  if (s.op == "clz") return wide ? unary<uint32_t, uint64_t, Clz> : unary<uint32_t, uint32_t, Clz>;
  bool shift = s.has("shiftamt");
  return for_integer(t, [shift](auto tag) -> Execute {
    using T = typename decltype(tag)::type;
    return shift ? unary<uint32_t, T, BfindShift> : unary<uint32_t, T, Bfind>;
  });
}

bool decode_fields(Decoder& d, const Statement& s, Instruction& i, std::string_view t) {
  bool inserts = s.op == "bfi";
  if (!s.allows_only({})) return false;
  if (s.operands.size() != (inserts ? 5u : 4u)) return false;
  for (size_t k = s.operands.size() - 2; k < s.operands.size(); k++)  // the field's begin and length
    if (s.operands[k].kind == Operand::Literal && d.bits(s.operands[k], "u32") > 255) return false;
  i.execute = for_integer(t, [inserts](auto tag) -> Execute {
    using T = typename decltype(tag)::type;
    if constexpr (sizeof(T) == 2) return nullptr;
    else return inserts ? bfi<Unsigned<T>> : bfe<T>;
  });
  if (!i.execute) return false;
  i.d = d.result(s.operands[0], t);
  i.a = d.source(s.operands[1], t);
  i.b = d.source(s.operands[2], inserts ? t : "u32");
  i.c = d.source(s.operands[3], "u32");
  if (inserts) i.e = d.source(s.operands[4], "u32");
  d.emit(i);
  return true;
}

bool select_permutation(const Statement& s, Instruction& i) {
  if (!s.allows_only({"f4e|b4e|rc8|ecl|ecr|rc16"})) return false;
  static const std::string_view modes[] = {"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"};
  for (uint8_t k = 0; k < 6; k++)
    if (s.has(modes[k])) i.variant = k + 1;
  i.execute = prmt;
  return true;
}

bool select_funnel(const Statement& s, Instruction& i) {
  if (!s.allows_only({"l|r", "wrap|clamp"}) || s.qualifiers.size() != 3) return false;
  i.execute = s.has("l") ? (s.has("wrap") ? funnel<true, true> : funnel<true, false>)
                         : (s.has("wrap") ? funnel<false, true> : funnel<false, false>);
  return true;
}

// `lop3.and.b32 d|p, a, b, c, table, q`
bool select_lookup(Decoder& d, const Statement& s, Instruction& i) {
  const bool has_predicate = s.has("and") || s.has("or");
  if (!s.allows_only({"and|or"}) || s.operands.size() != (has_predicate ? 6u : 5u) || s.operands[4].kind != Operand::Literal)
    return false;
  if (has_predicate != (s.operands[0].kind == Operand::Vector)) return false;
  i.imm = static_cast<int64_t>(d.bits(s.operands[4], "u32"));
  i.execute = lop3;
  if (!has_predicate) return true;
  const Operand& p = s.operands[0].parts.at(1);
  if (p.text == "_") return false;
  i.execute = lop3_with_predicate;
  i.vector_registers[0] = d.predicate_result(p);
  i.e = d.predicate(s.operands[5]);
  i.count = s.has("and") ? 2 : 1;
  return true;
}

bool decode_four_operands(Decoder& d, const Statement& s, Instruction& i) {
  if (s.operands.size() < 4 || (s.op != "lop3" && s.operands[0].kind == Operand::Vector)) return false;
  if (!(s.op == "prmt" ? select_permutation(s, i) : s.op == "lop3" ? select_lookup(d, s, i) : select_funnel(s, i)))
    return false;
  const Operand& result = s.operands[0];
  i.d = result.kind == Operand::Vector ? d.result(result.parts.at(0), "b32", true) : d.result(result, "b32");
  uint32_t* sources[] = {&i.a, &i.b, &i.c};
  if (s.op == "shf" && s.operands.at(3).is_real()) return false;
  for (size_t k = 0; k < 3; k++) *sources[k] = d.source(s.operands[k + 1], "b32");
  d.emit(i);
  return true;
}

Execute select_mask(const Statement& s, bool clamps) {
  if (s.op == "bmsk") return clamps ? binary<uint32_t, uint32_t, Bmsk<true>> : binary<uint32_t, uint32_t, Bmsk<false>>;
  if (s.op == "fns") return ternary<uint32_t, uint32_t, Fns>;
  return for_integer(s.type(), [clamps](auto tag) -> Execute {
    using T = typename decltype(tag)::type;
    return sizeof(T) != 4 ? nullptr : clamps ? binary<T, T, Szext<true>> : binary<T, T, Szext<false>>;
  });
}

bool decode_masks(Decoder& d, const Statement& s, Instruction& i) {
  if (!s.allows_only({s.op == "fns" ? "" : "clamp|wrap"}) || s.operands.size() != (s.op == "fns" ? 4u : 3u)) return false;
  i.execute = select_mask(s, s.has("clamp"));
  if (!i.execute) return false;
  i.d = d.result(s.operands[0], s.type());
  if (s.op != "fns" && (s.operands[1].is_real() || s.operands[2].is_real())) return false;
  i.a = d.source(s.operands[1], s.type());
  i.b = d.source(s.operands[2], "b32");
  if (s.op == "fns") i.c = d.source(s.operands[3], "b32");
  return d.emit(i), true;
}

}  // namespace

bool decode_bits(Decoder& d, const Statement& s, Instruction& i) {
  std::string_view t = s.type();
  if (s.op == "szext" || s.op == "bmsk" || s.op == "fns") return decode_masks(d, s, i);
  if (s.op == "bfe" || s.op == "bfi") return decode_fields(d, s, i, t);
  if (s.op == "prmt" || s.op == "lop3" || s.op == "shf") return decode_four_operands(d, s, i);
  if (s.operands.size() != 2 || !(s.op == "bfind" ? s.allows_only({"shiftamt"}) : s.allows_only({}))) return false;
  if (s.op == "brev") {
    i.execute = ptx::size_of(t) == 8 ? unary<uint64_t, uint64_t, Brev> : unary<uint32_t, uint32_t, Brev>;
    i.d = d.result(s.operands[0], t);
  } else if (s.op == "popc" || s.op == "clz" || s.op == "bfind") {
    i.execute = select_count(s, t);
    i.d = d.result(s.operands[0], "u32");
  }
  if (!i.execute) return false;
  i.a = d.source(s.operands[1], t);
  d.emit(i);
  return true;
}

bool decode_carry(Decoder& d, const Statement& s, Instruction& i) {
  bool reads = s.op == "addc" || s.op == "subc" || s.op == "madc", writes = s.has("cc");
  if ((!reads && !writes) || !(s.op[0] == 'm' ? s.allows_only({"cc", "lo|hi"}) : s.allows_only({"cc"}))) return false;
  std::string_view t = s.type();
  i.execute = for_integer(t, [&s](auto tag) -> Execute {
    using T = typename decltype(tag)::type;
    if constexpr (sizeof(T) == 2) return nullptr;
    else return carry_of<T>(s);
  });
  if (!i.execute || s.operands.size() < 3) return false;
  i.variant = (reads ? kReads : 0) | (writes ? kWrites : 0);
  i.d = d.result(s.operands[0], t);
  i.a = d.source(s.operands[1], t);
  i.b = d.source(s.operands[2], t);
  if (s.operands.size() > 3) i.c = d.source(s.operands[3], t);
  i.e = d.carry_predicate();
  d.emit(i);
  return true;
}

}  // namespace vgpu
