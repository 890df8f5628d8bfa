// Integer arithmetic and logic: PTX ISA, "Integer Arithmetic Instructions" and "Logic and Shift Instructions".
#include <algorithm>

#include "families.h"
#include "types.h"

namespace vgpu {
namespace {

template <class T>
struct Wider;
template <> struct Wider<int16_t> { using type = int32_t; };
template <> struct Wider<uint16_t> { using type = uint32_t; };
template <> struct Wider<int32_t> { using type = int64_t; };
template <> struct Wider<uint32_t> { using type = uint64_t; };
template <> struct Wider<int64_t> { using type = __int128; };
template <> struct Wider<uint64_t> { using type = unsigned __int128; };
template <class T>
using Wide = typename Wider<T>::type;

// Computes with unsigned numbers, because signed overflow is undefined in C++.
struct Add {
  template <class T> static T of(T a, T b) { return static_cast<T>(Unsigned<T>(a) + Unsigned<T>(b)); }
};
struct Sub {
  template <class T> static T of(T a, T b) { return static_cast<T>(Unsigned<T>(a) - Unsigned<T>(b)); }
};
struct And {
  template <class T> static T of(T a, T b) { return static_cast<T>(a & b); }
};
struct Or {
  template <class T> static T of(T a, T b) { return static_cast<T>(a | b); }
};
struct Xor {
  template <class T> static T of(T a, T b) { return static_cast<T>(a ^ b); }
};
struct Not {
  template <class T> static T of(T a) { return static_cast<T>(~a); }
};
struct Cnot {
  template <class T> static T of(T a) { return a == 0; }
};
struct Neg {
  template <class T> static T of(T a) { return static_cast<T>(0 - Unsigned<T>(a)); }
};
struct Abs {
  template <class T> static T of(T a) { return a < 0 ? Neg::of(a) : a; }
};
struct Min {
  template <class T> static T of(T a, T b) { return std::min(a, b); }
};
struct Max {
  template <class T> static T of(T a, T b) { return std::max(a, b); }
};
// The result of Op, but at least zero.
template <class Op> struct Relu {
  template <class T> static T of(T a, T b) { return std::max(Op::of(a, b), T(0)); }
};
struct AddSaturated {
  static int32_t of(int32_t a, int32_t b) {
    return static_cast<int32_t>(std::clamp<int64_t>(int64_t(a) + b, INT32_MIN, INT32_MAX));
  }
};
struct SubSaturated {
  static int32_t of(int32_t a, int32_t b) {
    return static_cast<int32_t>(std::clamp<int64_t>(int64_t(a) - b, INT32_MIN, INT32_MAX));
  }
};

struct MulLow {
  template <class T> static T of(T a, T b) { return static_cast<T>(uint64_t(a) * uint64_t(b)); }
};
struct MulHigh {
  template <class T> static T of(T a, T b) { return static_cast<T>((Wide<T>(a) * b) >> (8 * sizeof(T))); }
};
struct MulWide {
  template <class T> static Wide<T> of(T a, T b) { return Wide<T>(a) * Wide<T>(b); }
};
struct MadLow {
  template <class T> static T of(T a, T b, T c) { return static_cast<T>(uint64_t(a) * uint64_t(b) + uint64_t(c)); }
};
struct MadHigh {
  template <class T> static T of(T a, T b, T c) { return Add::of(MulHigh::of(a, b), c); }
};
struct MadHighSaturated {
  static int32_t of(int32_t a, int32_t b, int32_t c) { return AddSaturated::of(MulHigh::of(a, b), c); }
};
struct MadWide {
  template <class T> static Wide<T> of(T a, T b, Wide<T> c) {
    return static_cast<Wide<T>>(Unsigned<Wide<T>>(Wide<T>(a) * Wide<T>(b)) + Unsigned<Wide<T>>(c));
  }
};
// mul24 and mad24 multiply the low 24 bits; the result is the low 32 bits of the product, or 32 bits from bit 16 on.
template <class T> int64_t low24(T a) {
  return std::is_signed_v<T> ? int64_t(int32_t(uint32_t(a) << 8) >> 8) : int64_t(uint32_t(a) & 0xffffff);
}
struct Mul24Low {
  template <class T> static T of(T a, T b) { return static_cast<T>(low24(a) * low24(b)); }
};
struct Mul24High {
  template <class T> static T of(T a, T b) { return static_cast<T>((low24(a) * low24(b)) >> 16); }
};
struct Mad24Low {
  template <class T> static T of(T a, T b, T c) { return Add::of(Mul24Low::of(a, b), c); }
};
struct Mad24High {
  template <class T> static T of(T a, T b, T c) { return Add::of(Mul24High::of(a, b), c); }
};
struct Mad24HighSaturated {
  static int32_t of(int32_t a, int32_t b, int32_t c) { return AddSaturated::of(Mul24High::of(a, b), c); }
};

// Division by zero is unspecified; hardware gives all ones, and the dividend as the remainder.
struct Div {
  template <class T> static T of(T a, T b) {
    if (b == 0) return static_cast<T>(~T(0));
    if (std::is_signed_v<T> && b == T(-1)) return Neg::of(a);
    return static_cast<T>(a / b);
  }
};
struct Rem {
  template <class T> static T of(T a, T b) {
    if (b == 0) return a;
    if (std::is_signed_v<T> && b == T(-1)) return 0;
    return static_cast<T>(a % b);
  }
};
}  // namespace

template <> constexpr bool kIsExpensive<Div> = true;
template <> constexpr bool kIsExpensive<Rem> = true;

namespace {

struct Sad {
  template <class T> static T of(T a, T b, T c) { return Add::of(c, a < b ? Sub::of(b, a) : Sub::of(a, b)); }
};

struct Shl {
  template <class T> static T of(T a, uint32_t distance) {
    return distance >= 8 * sizeof(T) ? T(0) : static_cast<T>(Unsigned<T>(a) << distance);
  }
};
struct Shr {
  template <class T> static T of(T a, uint32_t distance) {
    if (distance >= 8 * sizeof(T)) return std::is_signed_v<T> && a < 0 ? T(-1) : T(0);
    return static_cast<T>(a >> distance);
  }
};
template <class T, class Op> void shift(WarpContext& warp, const Instruction& i) {
  T* d = lane_values<T>(warp, i.d);
  const T* a = lane_values<T>(warp, i.a);
  const uint32_t* b = lane_values<uint32_t>(warp, i.b);
  assign_lanes(warp.active_mask, d, [=](uint32_t l) { return Op::of(a[l], b[l]); });
}

// Logic on predicates, for all lanes at once.
template <class Op> void predicates(WarpContext& warp, const Instruction& i) {
  uint32_t a = predicate(warp, i.a), b = i.variant ? predicate(warp, i.b) : 0;
  write_predicate(warp, i.d, Op::of(a, b));
}
struct NotFirst {
  static uint32_t of(uint32_t a, uint32_t) { return ~a; }
};

// Dot products of bytes (dot4) and of 16-bit halves with two bytes from byte kFirstByte on (dot2).
template <class A, class B> void dot4(WarpContext& warp, const Instruction& i) {
  uint32_t *d = lane_values<uint32_t>(warp, i.d), *a = lane_values<uint32_t>(warp, i.a), *b = lane_values<uint32_t>(warp, i.b),
           *c = lane_values<uint32_t>(warp, i.c);
  for_each_lane(warp.active_mask, [=](uint32_t l) {
    uint32_t sum = c[l];
    for (int k = 0; k < 4; k++) sum += uint32_t(int32_t(A(a[l] >> (8 * k))) * int32_t(B(b[l] >> (8 * k))));
    d[l] = sum;
  });
}
template <class A, class B, int kFirstByte> void dot2(WarpContext& warp, const Instruction& i) {
  uint32_t *d = lane_values<uint32_t>(warp, i.d), *a = lane_values<uint32_t>(warp, i.a), *b = lane_values<uint32_t>(warp, i.b),
           *c = lane_values<uint32_t>(warp, i.c);
  for_each_lane(warp.active_mask, [=](uint32_t l) {
    uint32_t sum = c[l];
    for (int k = 0; k < 2; k++) sum += uint32_t(int64_t(A(a[l] >> (16 * k))) * B(b[l] >> (8 * (k + kFirstByte))));
    d[l] = sum;
  });
}
// Applies Op to both halves of each register.
template <class T, class Op> void apply_to_halves(WarpContext& warp, const Instruction& i) {
  uint32_t *d = lane_values<uint32_t>(warp, i.d), *a = lane_values<uint32_t>(warp, i.a), *b = lane_values<uint32_t>(warp, i.b);
  for_each_lane(warp.active_mask, [=](uint32_t l) {
    d[l] = uint16_t(Op::of(T(a[l]), T(b[l]))) | uint32_t(uint16_t(Op::of(T(a[l] >> 16), T(b[l] >> 16)))) << 16;
  });
}

template <class Op> Execute select_binary(std::string_view t) {
  return for_integer(t, [](auto tag) -> Execute {
    using T = typename decltype(tag)::type;
    return binary<T, T, Op>;
  });
}
template <class Op> Execute select_unary(std::string_view t) {
  return for_integer(t, [](auto tag) -> Execute {
    using T = typename decltype(tag)::type;
    return unary<T, T, Op>;
  });
}
template <class Op> Execute select_ternary(std::string_view t) {
  return for_integer(t, [](auto tag) -> Execute {
    using T = typename decltype(tag)::type;
    return ternary<T, T, Op>;
  });
}
template <class Op, bool kAdds> Execute select_wide(std::string_view t) {
  return for_integer(t, [](auto tag) -> Execute {
    using T = typename decltype(tag)::type;
    if constexpr (sizeof(T) == 8) return nullptr;
    else if constexpr (kAdds) return ternary<Wide<T>, T, Op>;
    else return binary<Wide<T>, T, Op>;
  });
}
template <class Op> Execute select_shift(std::string_view t) {
  return for_integer(t, [](auto tag) -> Execute { return shift<typename decltype(tag)::type, Op>; });
}

std::string_view double_width(std::string_view t) {
  return t == "s16" ? "s32" : t == "u16" ? "u32" : t == "s32" ? "s64" : "u64";
}

Execute select_product(const Statement& s, std::string_view t) {
  bool adds = s.op == "mad";
  if (s.has("wide")) return adds ? select_wide<MadWide, true>(t) : select_wide<MulWide, false>(t);
  if (s.has("hi")) {
    if (s.has("sat")) return adds && t == "s32" ? ternary<int32_t, int32_t, MadHighSaturated> : nullptr;
    return adds ? select_ternary<MadHigh>(t) : select_binary<MulHigh>(t);
  }
  return s.has("lo") ? (adds ? select_ternary<MadLow>(t) : select_binary<MulLow>(t)) : nullptr;
}

Execute select_product24(const Statement& s, std::string_view t) {
  if (t != "s32" && t != "u32") return nullptr;
  bool high = s.has("hi");
  if (s.has("sat")) return high && s.op == "mad24" && t == "s32" ? ternary<int32_t, int32_t, Mad24HighSaturated> : nullptr;
  if (s.op == "mul24") return high ? select_binary<Mul24High>(t) : select_binary<Mul24Low>(t);
  return high ? select_ternary<Mad24High>(t) : select_ternary<Mad24Low>(t);
}

template <class Op, class Saturated> Execute select_sum(const Statement& s, std::string_view t) {
  if (!s.has("sat")) return select_binary<Op>(t);
  return t == "s32" ? binary<int32_t, int32_t, Saturated> : nullptr;
}

Execute select_plain(const Statement& s, std::string_view t) {
  if (s.op == "add") return select_sum<Add, AddSaturated>(s, t);
  if (s.op == "sub") return select_sum<Sub, SubSaturated>(s, t);
  if (s.op == "and") return select_binary<And>(t);
  if (s.op == "or") return select_binary<Or>(t);
  if (s.op == "xor") return select_binary<Xor>(t);
  if (s.op == "not") return select_unary<Not>(t);
  if (s.op == "cnot") return select_unary<Cnot>(t);
  if (s.op == "neg") return select_unary<Neg>(t);
  if (s.op == "abs") return select_unary<Abs>(t);
  if (s.op == "min") return select_binary<Min>(t);
  if (s.op == "max") return select_binary<Max>(t);
  if (s.op == "div") return select_binary<Div>(t);
  if (s.op == "rem") return select_binary<Rem>(t);
  if (s.op == "sad") return select_ternary<Sad>(t);
  if (s.op == "mul" || s.op == "mad") return select_product(s, t);
  if (s.op == "mul24" || s.op == "mad24") return select_product24(s, t);
  return nullptr;
}

bool decode_predicates(Decoder& d, const Statement& s, Instruction& i) {
  i.execute = s.op == "and"   ? predicates<And>
              : s.op == "or"  ? predicates<Or>
              : s.op == "xor" ? predicates<Xor>
              : s.op == "not" ? predicates<NotFirst>
                              : nullptr;
  size_t expected_operands = s.op == "not" ? 2 : 3;
  if (!i.execute || s.operands.size() != expected_operands) return false;
  i.d = d.predicate_result(s.operands[0]);
  i.a = d.predicate(s.operands[1]);
  if (expected_operands == 3) i.b = d.predicate(s.operands[2]), i.variant = 1;
  d.emit(i);
  return true;
}

bool decode_shift(Decoder& d, const Statement& s, Instruction& i, std::string_view t) {
  i.execute = s.op == "shl" ? select_shift<Shl>(t) : select_shift<Shr>(t);
  if (!i.execute || s.operands.size() != 3) return false;
  i.d = d.result(s.operands[0], t);
  i.a = d.source(s.operands[1], t);
  i.b = d.source(s.operands[2], "u32");
  d.emit(i);
  return true;
}

Execute select_relu(const Statement& s, std::string_view t) {
  if (t == "s32") return s.op == "min" ? binary<int32_t, int32_t, Relu<Min>> : binary<int32_t, int32_t, Relu<Max>>;
  return t != "s16x2" ? nullptr : s.op == "min" ? apply_to_halves<int16_t, Relu<Min>> : apply_to_halves<int16_t, Relu<Max>>;
}

Execute select_packed(const Statement& s, std::string_view t) {
  if (t == "s16x2" && s.op == "min") return apply_to_halves<int16_t, Min>;
  if (t == "s16x2" && s.op == "max") return apply_to_halves<int16_t, Max>;
  if (t == "u16x2" && s.op == "min") return apply_to_halves<uint16_t, Min>;
  if (t == "u16x2" && s.op == "max") return apply_to_halves<uint16_t, Max>;
  if (t == "u16x2" || t == "s16x2") return s.op == "add" ? apply_to_halves<uint16_t, Add> : nullptr;
  return nullptr;
}

template <class A, class B> Execute dot2_from(const Statement& s) { return s.has("lo") ? dot2<A, B, 0> : dot2<A, B, 2>; }
Execute select_dot(const Statement& s) {
  if ((s.op != "dp4a" && s.op != "dp2a") || s.qualifiers.size() < 2) return nullptr;
  bool first = s.type(1) == "s32", second = s.type() == "s32";
  if (s.op == "dp2a")
    return first ? (second ? dot2_from<int16_t, int8_t>(s) : dot2_from<int16_t, uint8_t>(s))
                 : (second ? dot2_from<uint16_t, int8_t>(s) : dot2_from<uint16_t, uint8_t>(s));
  return first ? (second ? dot4<int8_t, int8_t> : dot4<int8_t, uint8_t>)
               : (second ? dot4<uint8_t, int8_t> : dot4<uint8_t, uint8_t>);
}

bool has_known_qualifiers(const Statement& s) {
  if (s.op == "add" || s.op == "sub") return s.allows_only({"sat"});
  if (s.op == "mul" || s.op == "mad") return s.allows_only({"lo|hi|wide", "sat"});
  if (s.op == "mul24" || s.op == "mad24") return s.allows_only({"lo|hi", "sat"}) && s.qualifiers.size() > 1;
  if (s.op == "min" || s.op == "max") return s.allows_only({"relu"});
  if (s.op == "dp4a") return s.allows_only({}, /*types=*/2);
  if (s.op == "dp2a") return s.allows_only({"lo|hi"}, /*types=*/2) && s.qualifiers.size() == 3;
  return s.allows_only({});
}

}  // namespace

bool decode_integer(Decoder& d, const Statement& s, Instruction& i) {
  std::string_view t = s.type();
  if (!has_known_qualifiers(s)) return false;
  if (t == "pred") return decode_predicates(d, s, i);
  if (s.op == "shl" || s.op == "shr") return decode_shift(d, s, i, t);
  i.execute = s.has("relu") ? select_relu(s, t) : select_plain(s, t);
  if (!i.execute) i.execute = select_packed(s, t);
  if (!i.execute && (i.execute = select_dot(s))) {
    t = "b32";
    if (std::any_of(s.operands.begin(), s.operands.end(), [](const Operand& o) { return o.is_real(); })) return false;
  }
  if (!i.execute || s.operands.size() < 2) return false;
  std::string_view result_type = s.has("wide") ? double_width(t) : t;
  uint32_t* fields[] = {&i.d, &i.a, &i.b, &i.c};
  size_t count = std::min<size_t>(s.operands.size(), 4);
  for (size_t k = 0; k < count; k++)
    *fields[k] = k ? d.source(s.operands[k], k == 3 ? result_type : t) : d.result(s.operands[k], result_type);
  d.emit(i);
  return true;
}

}  // namespace vgpu
