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

constexpr std::string_view kRelations = "eq|ne|lt|le|gt|ge|lo|ls|hi|hs|num|nan|equ|neu|ltu|leu|gtu|geu";

int relation_of(std::string_view name) {
  static const std::map<std::string_view, Relation> relations = {
      {"eq", kEq},   {"ne", kNe},   {"lt", kLt},   {"le", kLe},   {"gt", kGt},   {"ge", kGe},
      {"lo", kLt},   {"ls", kLe},   {"hi", kGt},   {"hs", kGe},   {"num", kNum}, {"nan", kNan},
      {"equ", kEqu}, {"neu", kNeu}, {"ltu", kLtu}, {"leu", kLeu}, {"gtu", kGtu}, {"geu", kGeu}};
  auto entry = relations.find(name);
  return entry == relations.end() ? -1 : entry->second;
}

// `relation` is a constant in all instances below, so that compilers remove the switch.
template <class T> inline bool holds(Relation relation, T a, T b) {
  bool nan = a != a || b != b;
  switch (relation) {
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

// Conversions of a register's lane to the value that is compared.
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

template <class V, Relation kRelation> uint32_t compare_lanes(WarpContext& warp, const Instruction& i) {
  using Lane = typename V::Lane;
  const Lane *a = lane_values<Lane>(warp, i.a), *b = lane_values<Lane>(warp, i.b);
  return lanes_where([=](uint32_t l) { return holds<typename V::Number>(kRelation, V::of(a[l]), V::of(b[l])); });
}

// Combines a result with another predicate, c.
uint32_t combine_with_predicate(WarpContext& warp, const Instruction& i, uint32_t bits) {
  if (i.variant == kAlone) return bits;
  uint32_t other = predicate(warp, i.c);
  return i.variant == kAnd ? bits & other : i.variant == kOr ? bits | other : bits ^ other;
}
template <class V, Relation kRelation> void setp(WarpContext& warp, const Instruction& i) {
  uint32_t bits = compare_lanes<V, kRelation>(warp, i);
  uint32_t first = combine_with_predicate(warp, i, bits), second = combine_with_predicate(warp, i, ~bits);
  write_predicate(warp, i.d, first);
  if (i.count == 2) write_predicate(warp, i.e, second);
}
template <class V, Relation kRelation> void set(WarpContext& warp, const Instruction& i) {
  uint32_t bits = combine_with_predicate(warp, i, compare_lanes<V, kRelation>(warp, i));
  uint32_t *d = lane_values<uint32_t>(warp, i.d), yes = uint32_t(i.imm);
  for_each_lane(warp.active_mask, [=](uint32_t l) { d[l] = bits >> l & 1 ? yes : 0; });
}
template <class V, Relation kRelation> void set_half(WarpContext& warp, const Instruction& i) {
  uint32_t bits = combine_with_predicate(warp, i, compare_lanes<V, kRelation>(warp, i));
  uint16_t *d = lane_values<uint16_t>(warp, i.d), yes = uint16_t(i.imm);
  for_each_lane(warp.active_mask, [=](uint32_t l) { d[l] = bits >> l & 1 ? yes : 0; });
}

// form: 0 for setp; 1 for set with a result of 32 bits, 2 with one of 16 bits.
template <class V, Relation kRelation> Execute select_form(int form) {
  return form == 0 ? setp<V, kRelation> : form == 1 ? set<V, kRelation> : set_half<V, kRelation>;
}
template <class V> Execute select_by_relation(Relation relation, int form) {
  switch (relation) {
    case kEq: return select_form<V, kEq>(form);
    case kNe: return select_form<V, kNe>(form);
    case kLt: return select_form<V, kLt>(form);
    case kLe: return select_form<V, kLe>(form);
    case kGt: return select_form<V, kGt>(form);
    case kGe: return select_form<V, kGe>(form);
    case kNum: return select_form<V, kNum>(form);
    case kNan: return select_form<V, kNan>(form);
    case kEqu: return select_form<V, kEqu>(form);
    case kNeu: return select_form<V, kNeu>(form);
    case kLtu: return select_form<V, kLtu>(form);
    case kLeu: return select_form<V, kLeu>(form);
    case kGtu: return select_form<V, kGtu>(form);
    case kGeu: return select_form<V, kGeu>(form);
  }
  return nullptr;
}
Execute select_by_type(std::string_view t, bool ftz, Relation relation, int form) {
  if (t == "f32")
    return ftz ? select_by_relation<FlushedFloat>(relation, form) : select_by_relation<Value<float>>(relation, form);
  if (t == "f64") return select_by_relation<Value<double>>(relation, form);
  if (t == "f16") return ftz ? select_by_relation<FlushedHalf>(relation, form) : select_by_relation<Half>(relation, form);
  if (t == "bf16") return select_by_relation<Bfloat>(relation, form);
  return for_integer(
      t, [=](auto tag) -> Execute { return select_by_relation<Value<typename decltype(tag)::type>>(relation, form); });
}

// Compares packed halves; each result goes to a predicate or to a half of the result.  imm: the value of true.
template <class V, bool kToHalves> void compare_halves(WarpContext& warp, const Instruction& i) {
  const uint32_t *a = lane_values<uint32_t>(warp, i.a), *b = lane_values<uint32_t>(warp, i.b);
  Relation relation = static_cast<Relation>(i.vector_registers[1]);
  auto half = [&](int shift) {
    return lanes_where(
        [&](uint32_t l) { return holds<float>(relation, V::of(uint16_t(a[l] >> shift)), V::of(uint16_t(b[l] >> shift))); });
  };
  uint32_t low = half(0), up = half(16);
  low = combine_with_predicate(warp, i, low), up = combine_with_predicate(warp, i, up);
  if (kToHalves) {
    uint32_t *d = lane_values<uint32_t>(warp, i.d), yes = uint32_t(i.imm);
    for_each_lane(warp.active_mask, [=](uint32_t l) { d[l] = (low >> l & 1 ? yes : 0) | (up >> l & 1 ? yes << 16 : 0); });
  } else {
    write_predicate(warp, i.d, low);
    if (i.count == 2) write_predicate(warp, i.e, up);
  }
}

template <class V> Execute select_packed(const Statement& s) {
  return s.op == "set" ? compare_halves<V, true> : compare_halves<V, false>;
}

bool decode_second_predicate(Decoder& d, const Statement& s, Instruction& i) {
  if (s.operands.size() <= 3) return s.qualifier_of("and|or|xor").empty();
  i.variant = s.has("and") ? kAnd : s.has("or") ? kOr : s.has("xor") ? kXor : kAlone;
  if (s.operands[3].kind == Operand::Literal && is_in_group("bf16|bf16x2", s.type())) return false;  // as ptxas refuses it
  i.c = d.predicate(s.operands[3]);
  return i.variant != kAlone;
}

// Returns the value that `set` with this result type writes for true.
uint32_t true_value(std::string_view type, bool is_packed) {
  if (type == "f32") return 0x3f800000u;
  if (type == "f16" || type == "f16x2") return 0x3c00u;
  if (type == "bf16" || type == "bf16x2") return 0x3f80u;
  return is_packed ? 0xffffu : 0xffffffffu;
}

Execute select_relation(const Statement& s, std::string_view t, std::string_view result_type, Relation relation) {
  const bool has_half_result = s.op == "set" && ptx::size_of(result_type) == 2;
  if (t == "bf16x2") return select_packed<Bfloat>(s);
  if (t == "f16x2") return s.has("ftz") ? select_packed<FlushedHalf>(s) : select_packed<Half>(s);
  return select_by_type(t, s.has("ftz"), relation, s.op == "setp" ? 0 : has_half_result ? 2 : 1);
}

bool decode_relation(Decoder& d, const Statement& s, Instruction& i) {
  int relation = relation_of(s.qualifier_of(kRelations));
  std::string_view t = s.type(), result_type = s.op == "set" ? s.type(1) : "";
  if (relation < 0 || s.operands.size() < 3 || !decode_second_predicate(d, s, i)) return false;
  i.imm |= true_value(result_type, t == "f16x2" || t == "bf16x2");
  i.vector_registers[1] = static_cast<uint32_t>(relation);
  i.execute = select_relation(s, t, result_type, static_cast<Relation>(relation));
  if (!i.execute) return false;
  if (s.op == "set") {
    i.d = d.result(s.operands[0], result_type);
  } else if (s.operands[0].kind == Operand::Vector) {
    i.d = d.predicate_result(s.operands[0].parts.at(0), true);
    i.e = d.predicate_result(s.operands[0].parts.at(1), true);
    i.count = 2;
  } else {
    i.d = d.predicate_result(s.operands[0], true);
  }
  i.a = d.source(s.operands[1], t);
  i.b = d.source(s.operands[2], t);
  d.emit(i);
  return true;
}

template <class T> void selp(WarpContext& warp, const Instruction& i) {
  T *d = lane_values<T>(warp, i.d), *a = lane_values<T>(warp, i.a), *b = lane_values<T>(warp, i.b);
  uint32_t chosen = predicate(warp, i.c);
  assign_lanes(warp.active_mask, d, [=](uint32_t l) { return blend(chosen >> l & 1, a[l], b[l]); });
}
template <class T, class V> void slct(WarpContext& warp, const Instruction& i) {
  using C = typename V::Lane;
  T *d = lane_values<T>(warp, i.d), *a = lane_values<T>(warp, i.a), *b = lane_values<T>(warp, i.b);
  C* c = lane_values<C>(warp, i.c);
  for_each_lane(warp.active_mask, [=](uint32_t l) { d[l] = blend(V::of(c[l]) >= C(0), a[l], b[l]); });
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
  i.a = d.source(s.operands[1], t);
  i.b = d.source(s.operands[2], t);
  i.c = by_predicate ? d.predicate(s.operands[3]) : d.source(s.operands[3], s.type());
  d.emit(i);
  return true;
}

}  // namespace

bool decode_compare(Decoder& d, const Statement& s, Instruction& i) {
  bool is_valid = s.op == "selp"   ? s.allows_only({})
                  : s.op == "slct" ? s.allows_only({"ftz"}, /*types=*/2)
                                   : s.allows_only({kRelations, "and|or|xor", "ftz"}, s.op == "set" ? 2 : 1);
  if (!is_valid) return false;
  return s.op == "setp" || s.op == "set" ? decode_relation(d, s, i) : decode_selection(d, s, i);
}

}  // namespace vgpu
