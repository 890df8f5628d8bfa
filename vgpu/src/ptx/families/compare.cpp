// Comparison and selection: setp, set, selp, slct.
#include <algorithm>

#include "arithmetic/float.h"
#include "arithmetic/half.h"
#include "families.h"
#include "types.h"

namespace vgpu {
namespace {

enum Relation : uint8_t { kEq, kNe, kLt, kLe, kGt, kGe, kNum, kNan, kEqu, kNeu, kLtu, kLeu, kGtu, kGeu };
enum Combine : uint8_t { kAlone, kAnd, kOr, kXor };

int relation_of(std::string_view word) {
  static const std::map<std::string_view, Relation> known = {
      {"eq", kEq},   {"ne", kNe},   {"lt", kLt},   {"le", kLe},   {"gt", kGt},   {"ge", kGe},
      {"lo", kLt},   {"ls", kLe},   {"hi", kGt},   {"hs", kGe},   {"num", kNum}, {"nan", kNan},
      {"equ", kEqu}, {"neu", kNeu}, {"ltu", kLtu}, {"leu", kLeu}, {"gtu", kGtu}, {"geu", kGeu}};
  auto found = known.find(word);
  return found == known.end() ? -1 : found->second;
}

// In the forms below `how` is a constant: the switch is gone when they are compiled.
template <class T> inline bool holds(Relation how, T a, T b) {
  bool nan = a != a || b != b;
  switch (how) {
    case kEq: return a == b;
    case kNe: return !nan && a != b;
    case kLt: return a < b;
    case kLe: return a <= b;
    case kGt: return a > b;
    case kGe: return a >= b;
    case kNum: return !nan;
    case kNan: return nan;
    case kEqu: return nan || a == b;
    case kNeu: return a != b;
    case kLtu: return !(a >= b);
    case kLeu: return !(a > b);
    case kGtu: return !(a <= b);
    case kGeu: return !(a < b);
  }
  return false;
}

// How a register's lane becomes what is compared.
template <class T> struct Value {
  using Lane = T;
  using Number = T;
  static T of(T x) { return x; }
};
struct FlushedFloat {
  using Lane = float;
  using Number = float;
  static float of(float x) { return flush_subnormal(x); }
};
struct Half {
  using Lane = uint16_t;
  using Number = float;
  static float of(uint16_t x) { return half_to_float(x); }
};
struct FlushedHalf {
  using Lane = uint16_t;
  using Number = float;
  static float of(uint16_t x) { return half_to_float(x & 0x7c00 ? x : 0); }
};
struct Bfloat {
  using Lane = uint16_t;
  using Number = float;
  static float of(uint16_t x) { return bfloat16_to_float(x); }
};

template <class V, Relation kHow> uint32_t compared(WarpContext& warp, const Instruction& i) {
  using Lane = typename V::Lane;
  const Lane *a = lane_values<Lane>(warp, i.a), *b = lane_values<Lane>(warp, i.b);
  return lanes_where([=](uint32_t l) { return holds<typename V::Number>(kHow, V::of(a[l]), V::of(b[l])); });
}

// With another predicate, c.  imm: what `set` writes where the relation holds.
uint32_t combined(WarpContext& warp, const Instruction& i, uint32_t bits) {
  if (i.variant == kAlone) return bits;
  uint32_t other = predicate(warp, i.c);
  return i.variant == kAnd ? bits & other : i.variant == kOr ? bits | other : bits ^ other;
}
template <class V, Relation kHow> void setp(WarpContext& warp, const Instruction& i) {
  uint32_t bits = compared<V, kHow>(warp, i);
  uint32_t first = combined(warp, i, bits), second = combined(warp, i, ~bits);
  write_predicate(warp, i.d, first);
  if (i.count == 2) write_predicate(warp, i.e, second);
}
template <class V, Relation kHow> void set(WarpContext& warp, const Instruction& i) {
  uint32_t bits = combined(warp, i, compared<V, kHow>(warp, i));
  uint32_t *d = lane_values<uint32_t>(warp, i.d), yes = uint32_t(i.imm);
  for_each_lane(warp.active_mask, [=](uint32_t l) { d[l] = bits >> l & 1 ? yes : 0; });
}
template <class V, Relation kHow> void set_half(WarpContext& warp, const Instruction& i) {
  uint32_t bits = combined(warp, i, compared<V, kHow>(warp, i));
  uint16_t *d = lane_values<uint16_t>(warp, i.d), yes = uint16_t(i.imm);
  for_each_lane(warp.active_mask, [=](uint32_t l) { d[l] = bits >> l & 1 ? yes : 0; });
}

template <class V, Relation kHow> Execute form(int which) {
  return which == 0 ? setp<V, kHow> : which == 1 ? set<V, kHow> : set_half<V, kHow>;
}
template <class V> Execute related(Relation how, int which) {
  switch (how) {
    case kEq: return form<V, kEq>(which);
    case kNe: return form<V, kNe>(which);
    case kLt: return form<V, kLt>(which);
    case kLe: return form<V, kLe>(which);
    case kGt: return form<V, kGt>(which);
    case kGe: return form<V, kGe>(which);
    case kNum: return form<V, kNum>(which);
    case kNan: return form<V, kNan>(which);
    case kEqu: return form<V, kEqu>(which);
    case kNeu: return form<V, kNeu>(which);
    case kLtu: return form<V, kLtu>(which);
    case kLeu: return form<V, kLeu>(which);
    case kGtu: return form<V, kGtu>(which);
    case kGeu: return form<V, kGeu>(which);
  }
  return nullptr;
}
Execute typed(std::string_view t, bool ftz, Relation how, int which) {
  if (t == "f32") return ftz ? related<FlushedFloat>(how, which) : related<Value<float>>(how, which);
  if (t == "f64") return related<Value<double>>(how, which);
  if (t == "f16") return ftz ? related<FlushedHalf>(how, which) : related<Half>(how, which);
  if (t == "bf16") return related<Bfloat>(how, which);
  return for_integer(t, [=](auto tag) -> Execute { return related<Value<typename decltype(tag)::type>>(how, which); });
}

// Two halves a register: each is compared by itself, into one predicate each or into a half of the result.
template <class V, bool kToHalves> void pairs(WarpContext& warp, const Instruction& i) {
  const uint32_t *a = lane_values<uint32_t>(warp, i.a), *b = lane_values<uint32_t>(warp, i.b);
  Relation how = static_cast<Relation>(i.vector_registers[1]);
  auto half = [&](int shift) {
    return lanes_where(
        [&](uint32_t l) { return holds<float>(how, V::of(uint16_t(a[l] >> shift)), V::of(uint16_t(b[l] >> shift))); });
  };
  uint32_t low = half(0), up = half(16);
  low = combined(warp, i, low), up = combined(warp, i, up);
  if (kToHalves) {
    uint32_t *d = lane_values<uint32_t>(warp, i.d), yes = uint32_t(i.imm);
    for_each_lane(warp.active_mask, [=](uint32_t l) { d[l] = (low >> l & 1 ? yes : 0) | (up >> l & 1 ? yes << 16 : 0); });
  } else {
    write_predicate(warp, i.d, low);
    if (i.count == 2) write_predicate(warp, i.e, up);
  }
}

template <class V> Execute paired_of(const Statement& s) { return s.op == "set" ? pairs<V, true> : pairs<V, false>; }

bool with_other(Decoder& d, const Statement& s, Instruction& i) {
  if (s.operands.size() <= 3) return s.qualifier_of("and|or|xor").empty();
  i.variant = s.has("and") ? kAnd : s.has("or") ? kOr : s.has("xor") ? kXor : kAlone;
  i.c = d.predicate(s.operands[3]);
  return i.variant != kAlone;
}

// What a set of this type writes where the relation holds.
uint32_t true_value(std::string_view into, bool paired) {
  if (into == "f32") return 0x3f800000u;
  if (into == "f16" || into == "f16x2") return 0x3c00u;
  if (into == "bf16" || into == "bf16x2") return 0x3f80u;
  return paired ? 0xffffu : 0xffffffffu;
}

Execute select_relation(const Statement& s, std::string_view t, std::string_view into, Relation how) {
  const bool halved = s.op == "set" && ptx::size_of(into) == 2;
  if (t == "bf16x2") return paired_of<Bfloat>(s);
  if (t == "f16x2") return s.has("ftz") ? paired_of<FlushedHalf>(s) : paired_of<Half>(s);
  return typed(t, s.has("ftz"), how, s.op == "setp" ? 0 : halved ? 2 : 1);
}

bool decode_relation(Decoder& d, const Statement& s, Instruction& i) {
  int how = s.qualifiers.empty() ? -1 : relation_of(s.qualifiers[0]);
  std::string_view t = s.type(), into = s.op == "set" ? s.type(1) : "";
  if (how < 0 || s.operands.size() < 3 || !with_other(d, s, i)) return false;
  i.imm |= true_value(into, t == "f16x2" || t == "bf16x2");
  i.vector_registers[1] = static_cast<uint32_t>(how);
  i.execute = select_relation(s, t, into, static_cast<Relation>(how));
  if (!i.execute) return false;
  if (s.op == "set") {
    i.d = d.result(s.operands[0], into);
  } else if (s.operands[0].kind == Operand::Vector) {
    i.d = d.predicate_result(s.operands[0].parts.at(0));
    i.e = d.predicate_result(s.operands[0].parts.at(1));
    i.count = 2;
  } else {
    i.d = d.predicate_result(s.operands[0]);
  }
  i.a = d.exact_operand(s.operands[1], t);
  i.b = d.exact_operand(s.operands[2], t);
  d.emit(i);
  return true;
}

template <class T> void selp(WarpContext& warp, const Instruction& i) {
  T *d = lane_values<T>(warp, i.d), *a = lane_values<T>(warp, i.a), *b = lane_values<T>(warp, i.b);
  uint32_t chosen = predicate(warp, i.c);
  assign_lanes(warp.active_mask, d, [=](uint32_t l) { return chosen >> l & 1 ? a[l] : b[l]; });
}
template <class T, class V> void slct(WarpContext& warp, const Instruction& i) {
  using C = typename V::Lane;
  T *d = lane_values<T>(warp, i.d), *a = lane_values<T>(warp, i.a), *b = lane_values<T>(warp, i.b);
  C* c = lane_values<C>(warp, i.c);
  for_each_lane(warp.active_mask, [=](uint32_t l) { d[l] = V::of(c[l]) >= C(0) ? a[l] : b[l]; });
}

bool decode_selection(Decoder& d, const Statement& s, Instruction& i) {
  bool by_predicate = s.op == "selp";
  std::string_view t = by_predicate ? s.type() : s.type(1);
  bool by_float = s.type() == "f32", ftz = s.has("ftz");
  i.execute = for_size(ptx::size_of(t), [=](auto tag) -> Execute {
    using T = typename decltype(tag)::type;
    if (by_predicate) return selp<T>;
    if (!by_float) return slct<T, Value<int32_t>>;
    return ftz ? slct<T, FlushedFloat> : slct<T, Value<float>>;
  });
  if (!i.execute || s.operands.size() != 4) return false;
  i.d = d.result(s.operands[0], t);
  i.a = d.exact_operand(s.operands[1], t);
  i.b = d.exact_operand(s.operands[2], t);
  i.c = by_predicate ? d.predicate(s.operands[3]) : d.exact_operand(s.operands[3], s.type());
  d.emit(i);
  return true;
}

}  // namespace

bool decode_compare(Decoder& d, const Statement& s, Instruction& i) {
  static const std::string_view relations = "eq|ne|lt|le|gt|ge|lo|ls|hi|hs|num|nan|equ|neu|ltu|leu|gtu|geu";
  bool known = s.op == "selp"   ? s.allows_only({})
               : s.op == "slct" ? s.allows_only({"ftz"}, 2)
                                : s.allows_only({relations, "and|or|xor", "ftz"}, s.op == "set" ? 2 : 1);
  if (!known) return false;
  return s.op == "setp" || s.op == "set" ? decode_relation(d, s, i) : decode_selection(d, s, i);
}

}  // namespace vgpu
