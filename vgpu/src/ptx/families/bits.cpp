// Bit fields, counts and permutations; sums with carry.
#include <algorithm>

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
    T made = 0;
    for (unsigned k = 0; k < 8 * sizeof(T); k++) made |= ((a >> k) & T(1)) << (8 * sizeof(T) - 1 - k);
    return made;
  }
};
// The highest bit that is not the sign, counted from the lowest; all ones where there is none.
struct Bfind {
  template <class T> static uint32_t of(T a) {
    Unsigned<T> bits = std::is_signed_v<T> && a < 0 ? Unsigned<T>(~a) : Unsigned<T>(a);
    return bits ? 63 - uint32_t(__builtin_clzll(bits)) : ~0u;
  }
};
struct BfindShift {  // how far it has to go up
  template <class T> static uint32_t of(T a) {
    uint32_t at = Bfind::of(a);
    return at == ~0u ? at : uint32_t(8 * sizeof(T) - 1) - at;
  }
};
struct Bfe {
  template <class T> static T of(T a, uint32_t from, uint32_t length) {
    constexpr uint32_t last = 8 * sizeof(T) - 1;
    from &= 255, length &= 255;
    bool sign = std::is_signed_v<T> && length && (Unsigned<T>(a) >> std::min(from + length - 1, last)) & 1;
    Unsigned<T> made = 0;
    for (uint32_t k = 0; k <= last; k++) {
      bool bit = k < length && from + k <= last ? (Unsigned<T>(a) >> (from + k)) & 1 : sign;
      made |= Unsigned<T>(bit) << k;
    }
    return static_cast<T>(made);
  }
};
template <class T> T insert(T a, T b, uint32_t from, uint32_t length) {
  constexpr uint32_t bits = 8 * sizeof(T);
  from &= 255, length &= 255;
  for (uint32_t k = 0; k < length && from + k < bits; k++) {
    b &= static_cast<T>(~(T(1) << (from + k)));
    b |= static_cast<T>(((a >> k) & T(1)) << (from + k));
  }
  return b;
}

// The low b bits of a, with their sign above them or without.  The result of szext and bmsk is exact for all b: clamped to
// 32, or modulo it.
template <bool kClamp> uint32_t held_to_word(uint32_t b) { return kClamp ? std::min(b, 32u) : b & 31; }
template <bool kClamp> struct Szext {
  template <class T> static T of(T a, uint32_t b) {
    const uint32_t bits = held_to_word<kClamp>(b), above = 32 - bits;
    return bits ? static_cast<T>(static_cast<T>(uint32_t(a) << above) >> above) : T(0);
  }
};
// b bits from bit a on.
template <bool kClamp> struct Bmsk {
  static uint32_t of(uint32_t a, uint32_t b) {
    return static_cast<uint32_t>(((1ull << held_to_word<kClamp>(b)) - 1) << held_to_word<kClamp>(a));
  }
};
// The place of the n-th set bit from `base` on, upwards or downwards; 0: is that bit itself set?
struct Fns {
  static uint32_t of(uint32_t mask, uint32_t base, uint32_t n) {
    const bool down = static_cast<int32_t>(n) < 0;
    uint32_t left = n == 0 ? 1 : down ? 0 - n : n;
    for (uint32_t at = base; at < 32; down ? at-- : at++) {
      left -= mask >> at & 1;
      if (!left) return at;
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

// Bytes of two registers by selectors; mode: 0 generic, then f4e, b4e, rc8, ecl, ecr, rc16.
uint32_t selectors(uint8_t mode, uint32_t c) {
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
    uint32_t chosen = selectors(i.variant, c[l]), made = 0;
    for (int k = 0; k < 4; k++) {
      uint32_t selector = chosen >> (4 * k) & 15, byte = bytes >> (8 * (selector & 7)) & 255;
      if (selector & 8) byte = byte & 128 ? 255 : 0;
      made |= byte << (8 * k);
    }
    d[l] = made;
  });
}
void lop3(WarpContext& warp, const Instruction& i) {
  uint32_t *d = lane_values<uint32_t>(warp, i.d), *a = lane_values<uint32_t>(warp, i.a), *b = lane_values<uint32_t>(warp, i.b),
           *c = lane_values<uint32_t>(warp, i.c);
  uint32_t table = static_cast<uint32_t>(i.imm);
  for_each_lane(warp.active_mask, [=](uint32_t l) {
    uint32_t made = 0;
    for (int k = 0; k < 8; k++)
      if (table >> k & 1) made |= (k & 4 ? a[l] : ~a[l]) & (k & 2 ? b[l] : ~b[l]) & (k & 1 ? c[l] : ~c[l]);
    d[l] = made;
  });
}
// lop3 that also joins whether any bit is set with another predicate, e.  v[0]: the predicate; count 2: and, else or.
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
    uint64_t both = a[l] | uint64_t(b[l]) << 32;
    uint32_t by = kWrap ? c[l] & 31 : std::min(c[l], 32u);
    d[l] = kLeft ? uint32_t((both << by) >> 32) : uint32_t(both >> by);
  });
}

// A sum's or a product's carry lives in a predicate that no name has, one for each function.  A difference leaves the
// carry of a + ~b + 1 there, as hardware does: the complement of the borrow, which whatever reads it next gets to see.
template <class T> T high(T a, T b) {
  using W = std::conditional_t<sizeof(T) == 8, std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>,
                               std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;
  return static_cast<T>((W(a) * b) >> (8 * sizeof(T)));
}
enum { kAddCarry, kSubCarry, kLowCarry, kHighCarry };
constexpr uint8_t kReads = 1, kWrites = 2;
template <class T, int kWhat> void carry(WarpContext& warp, const Instruction& i) {
  using U = Unsigned<T>;
  using W = unsigned __int128;
  T *d = lane_values<T>(warp, i.d), *a = lane_values<T>(warp, i.a), *b = lane_values<T>(warp, i.b),
    *c = lane_values<T>(warp, i.c);
  uint32_t& flags = predicate(warp, i.e);
  uint32_t out = 0;
  for (uint32_t left = warp.active_mask; left; left &= left - 1) {
    uint32_t l = uint32_t(__builtin_ctz(left));
    W in = i.variant & kReads ? flags >> l & 1 : 0, sum;
    if (kWhat == kAddCarry) sum = W(U(a[l])) + U(b[l]) + in;
    else if (kWhat == kSubCarry) sum = W(U(a[l])) + U(~b[l]) + (i.variant & kReads ? in : 1);
    else sum = W(U(kWhat == kHighCarry ? high(a[l], b[l]) : T(U(a[l]) * U(b[l])))) + U(c[l]) + in;
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

Execute counted(const Statement& s, std::string_view t) {
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
  for (size_t k = s.operands.size() - 2; k < s.operands.size(); k++)  // where the field begins, and its length
    if (s.operands[k].kind == Operand::Literal && d.bits(s.operands[k], "u32") > 255) return false;
  i.execute = for_integer(t, [inserts](auto tag) -> Execute {
    using T = typename decltype(tag)::type;
    if constexpr (sizeof(T) == 2) return nullptr;
    else return inserts ? bfi<Unsigned<T>> : bfe<T>;
  });
  if (!i.execute) return false;
  i.d = d.result(s.operands[0], t);
  i.a = d.exact_operand(s.operands[1], t);
  i.b = d.exact_operand(s.operands[2], inserts ? t : "u32");
  i.c = d.exact_operand(s.operands[3], "u32");
  if (inserts) i.e = d.exact_operand(s.operands[4], "u32");
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
  const bool joins = s.has("and") || s.has("or");
  if (!s.allows_only({"and|or"}) || s.operands.size() != (joins ? 6u : 5u) || s.operands[4].kind != Operand::Literal)
    return false;
  if (joins != (s.operands[0].kind == Operand::Vector)) return false;
  i.imm = static_cast<int64_t>(d.bits(s.operands[4], "u32"));
  i.execute = lop3;
  if (!joins) return true;
  const Operand& p = s.operands[0].parts.at(1);
  if (p.text == "_") return false;
  i.execute = lop3_with_predicate;
  i.vector_registers[0] = d.predicate_result(p);
  i.e = d.predicate(s.operands[5]);
  i.count = s.has("and") ? 2 : 1;
  return true;
}

bool decode_four(Decoder& d, const Statement& s, Instruction& i) {
  if (s.operands.size() < 4 || (s.op != "lop3" && s.operands[0].kind == Operand::Vector)) return false;
  if (!(s.op == "prmt" ? select_permutation(s, i) : s.op == "lop3" ? select_lookup(d, s, i) : select_funnel(s, i)))
    return false;
  const Operand& into = s.operands[0];
  i.d = into.kind == Operand::Vector ? d.result(into.parts.at(0), "b32", true) : d.result(into, "b32");
  uint32_t* places[] = {&i.a, &i.b, &i.c};
  for (size_t k = 0; k < 3; k++) *places[k] = d.exact_operand(s.operands[k + 1], "b32");
  d.emit(i);
  return true;
}

Execute masks(const Statement& s, bool clamps) {
  if (s.op == "bmsk") return clamps ? binary<uint32_t, uint32_t, Bmsk<true>> : binary<uint32_t, uint32_t, Bmsk<false>>;
  if (s.op == "fns") return ternary<uint32_t, uint32_t, Fns>;
  return for_integer(s.type(), [clamps](auto tag) -> Execute {
    using T = typename decltype(tag)::type;
    return sizeof(T) != 4 ? nullptr : clamps ? binary<T, T, Szext<true>> : binary<T, T, Szext<false>>;
  });
}

bool decode_masks(Decoder& d, const Statement& s, Instruction& i) {
  if (!s.allows_only({s.op == "fns" ? "" : "clamp|wrap"}) || s.operands.size() != (s.op == "fns" ? 4u : 3u)) return false;
  i.execute = masks(s, s.has("clamp"));
  if (!i.execute) return false;
  i.d = d.result(s.operands[0], s.type());
  i.a = d.exact_operand(s.operands[1], s.type());
  i.b = d.exact_operand(s.operands[2], "b32");
  if (s.op == "fns") i.c = d.exact_operand(s.operands[3], "b32");
  return d.emit(i), true;
}

}  // namespace

bool decode_bits(Decoder& d, const Statement& s, Instruction& i) {
  std::string_view t = s.type();
  if (s.op == "szext" || s.op == "bmsk" || s.op == "fns") return decode_masks(d, s, i);
  if (s.op == "bfe" || s.op == "bfi") return decode_fields(d, s, i, t);
  if (s.op == "prmt" || s.op == "lop3" || s.op == "shf") return decode_four(d, s, i);
  if (s.operands.size() != 2 || !(s.op == "bfind" ? s.allows_only({"shiftamt"}) : s.allows_only({}))) return false;
  if (s.op == "brev") {
    i.execute = ptx::size_of(t) == 8 ? unary<uint64_t, uint64_t, Brev> : unary<uint32_t, uint32_t, Brev>;
    i.d = d.result(s.operands[0], t);
  } else if (s.op == "popc" || s.op == "clz" || s.op == "bfind") {
    i.execute = counted(s, t);
    i.d = d.result(s.operands[0], "u32");
  }
  if (!i.execute) return false;
  i.a = d.exact_operand(s.operands[1], t);
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
  i.a = d.exact_operand(s.operands[1], t);
  i.b = d.exact_operand(s.operands[2], t);
  if (s.operands.size() > 3) i.c = d.exact_operand(s.operands[3], t);
  i.e = d.carry_predicate();
  d.emit(i);
  return true;
}

}  // namespace vgpu
