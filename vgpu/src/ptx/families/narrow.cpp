// cvt to and from formats that only matrix units compute with, and cvt that packs several values into one register.
#include <algorithm>

#include "arithmetic/float.h"
#include "arithmetic/half.h"
#include "families.h"
#include "types.h"

namespace vgpu {
namespace {

constexpr uint8_t kRelu = 1, kFinite = 2, kAway = 4;

// Target formats of a conversion from float.  bits: the size; largest and infinite: the largest finite value and infinity.
struct ToHalf {
  static constexpr int bits = 16;
  static constexpr uint32_t largest = 0x7bff, infinite = 0x7c00;
  static uint32_t of(double x, RoundingMode mode) { return to_half(x, mode); }
};
struct ToBfloat {
  static constexpr int bits = 16;
  static constexpr uint32_t largest = 0x7f7f, infinite = 0x7f80;
  static uint32_t of(double x, RoundingMode mode) { return to_bfloat16(x, mode); }
};
// kFraction: bits of the fraction; kLeast, kGreatest: exponents of normal numbers; kLargest: the bits of the largest number.
template <int kFraction, int kLeast, int kGreatest, uint32_t kLargest> struct ToByte {
  static constexpr int bits = 8;
  static constexpr uint32_t largest = kLargest, infinite = kLargest + 1;
  static uint32_t of(double x, RoundingMode mode) {
    const bool negative = std::signbit(x);
    if (x != x) return 0x7f;
    if (std::isinf(x)) return infinite | (negative ? 0x80u : 0);
    const uint32_t magnitude = x == 0 ? 0 : round_magnitude(std::fabs(x), kFraction, kLeast, kGreatest, mode, negative);
    return std::min(magnitude, infinite) | (negative ? 0x80u : 0);
  }
};
using ToE4m3 = ToByte<3, -6, 8, 0x7e>;  // has no infinity: larger values are clamped to the largest
using ToE5m2 = ToByte<2, -14, 15, 0x7b>;

template <class H> uint32_t narrow_value(double x, RoundingMode mode, uint8_t flags) {
  constexpr uint32_t sign = 1u << (H::bits - 1);
  if (x != x) return H::of(x, mode);
  uint32_t result = H::of(x, mode);
  if ((flags & kRelu) && result & sign) return 0;
  if ((flags & kFinite) && (result & ~sign) >= H::infinite) result = (result & sign) | H::largest;
  return result;
}

template <class H> using Pair = std::conditional_t<H::bits == 16, uint32_t, uint16_t>;

// Packs two floats into one register: the first operand becomes the upper part.
template <class H> void pack(WarpContext& warp, const Instruction& i) {
  RoundingMode mode = static_cast<RoundingMode>(i.variant & 3);
  const uint8_t flags = i.variant >> 2;
  Pair<H>* d = lane_values<Pair<H>>(warp, i.d);
  const float *a = lane_values<float>(warp, i.a), *b = lane_values<float>(warp, i.b);
  for_each_lane(warp.active_mask, [=](uint32_t l) {
    d[l] = static_cast<Pair<H>>(narrow_value<H>(b[l], mode, flags) | narrow_value<H>(a[l], mode, flags) << H::bits);
  });
}
// Converts the two f16 of one register.
template <class H> void repack(WarpContext& warp, const Instruction& i) {
  const uint8_t flags = i.variant >> 2;
  uint16_t* d = lane_values<uint16_t>(warp, i.d);
  const uint32_t* a = lane_values<uint32_t>(warp, i.a);
  for_each_lane(warp.active_mask, [=](uint32_t l) {
    uint32_t low = narrow_value<H>(half_to_float(uint16_t(a[l])), RoundingMode::Nearest, flags);
    d[l] = static_cast<uint16_t>(low | narrow_value<H>(half_to_float(uint16_t(a[l] >> 16)), RoundingMode::Nearest, flags) << 8);
  });
}

// Converts e4m3 or e5m2 to f16, which has all of their values.
template <int kFraction, int kBias> uint32_t widen_value(uint32_t byte, bool relu) {
  const uint32_t magnitude = byte & 0x7f, fraction = magnitude & ((1u << kFraction) - 1), exponent = magnitude >> kFraction;
  if (kFraction == 3 ? magnitude == 0x7f : magnitude > 0x7c) return 0x7fff;
  const bool negative = byte & 0x80;
  if (negative && relu) return 0;
  const uint32_t sign = negative ? 0x8000u : 0;
  if (kFraction == 2 && magnitude == 0x7c) return sign | 0x7c00u;
  const double scaled = fraction + (exponent ? 1 << kFraction : 0);
  return sign | to_half(std::ldexp(scaled, int(std::max(exponent, 1u)) - kBias - kFraction));
}
template <int kFraction, int kBias> void widen(WarpContext& warp, const Instruction& i) {
  const bool relu = i.variant >> 2 & kRelu;
  uint32_t* d = lane_values<uint32_t>(warp, i.d);
  const uint16_t* a = lane_values<uint16_t>(warp, i.a);
  for_each_lane(warp.active_mask, [=](uint32_t l) {
    d[l] = widen_value<kFraction, kBias>(a[l] & 0xff, relu) | widen_value<kFraction, kBias>(a[l] >> 8, relu) << 16;
  });
}

// Rounds to tf32: a float whose last 13 fraction bits are zero.
uint32_t to_tf32(float x, RoundingMode mode, uint8_t flags) {
  constexpr uint32_t kDropped = 0x1fff, kHalf = 0x1000, kInfinite = 0x7f800000u;
  if (x != x) return bit_cast<uint32_t>(canonicalize_nan(x));
  uint32_t bits = bit_cast<uint32_t>(x), sign = bits & 0x80000000u, magnitude = bits ^ sign;
  if (flags & kAway) magnitude += kHalf;
  else if (mode == RoundingMode::Nearest) magnitude += kHalf - 1 + (magnitude >> 13 & 1);
  magnitude &= ~kDropped;
  if ((flags & kFinite) && magnitude >= kInfinite) magnitude = kInfinite - kDropped - 1;
  return sign && (flags & kRelu) ? 0 : sign | magnitude;
}
void tf32(WarpContext& warp, const Instruction& i) {
  uint32_t* d = lane_values<uint32_t>(warp, i.d);
  const float* a = lane_values<float>(warp, i.a);
  for_each_lane(warp.active_mask,
                [=](uint32_t l) { d[l] = to_tf32(a[l], static_cast<RoundingMode>(i.variant & 3), i.variant >> 2); });
}

// cvt.pack: clamps two integers to `count` bits each and puts them below the bits of c.  variant 1: the result is signed.
void pack_integers(WarpContext& warp, const Instruction& i) {
  uint32_t* d = lane_values<uint32_t>(warp, i.d);
  const int32_t *a = lane_values<int32_t>(warp, i.a), *b = lane_values<int32_t>(warp, i.b);
  const uint32_t *c = lane_values<uint32_t>(warp, i.c), bits = i.count;
  const int32_t low = i.variant ? -(1 << (bits - 1)) : 0, high = (1 << (i.variant ? bits - 1 : bits)) - 1;
  auto clamp = [=](int32_t x) { return uint32_t(std::clamp(x, low, high)) & ((1u << bits) - 1); };
  for_each_lane(warp.active_mask, [=](uint32_t l) {
    const uint32_t upper = bits == 16 ? 0 : c[l] << (2 * bits);
    d[l] = clamp(b[l]) | clamp(a[l]) << bits | upper;
  });
}
bool decode_pack(Decoder& d, const Statement& s, Instruction& i) {
  const bool has_third_source = s.qualifiers.size() == 5;
  if ((!has_third_source && s.qualifiers.size() != 4) || s.qualifiers[0] != "pack" || s.qualifiers[1] != "sat" ||
      s.qualifiers[3] != "s32")
    return false;
  const std::string_view result_type = s.qualifiers[2];
  if (!is_in_group(has_third_source ? "u2|s2|u4|s4|u8|s8" : "u16|s16", result_type) ||
      (has_third_source && s.qualifiers[4] != "b32"))
    return false;
  if (s.operands.size() != (has_third_source ? 4u : 3u)) return false;
  i.variant = result_type[0] == 's';
  i.count = result_type == "u16" || result_type == "s16" ? 16 : static_cast<uint8_t>(result_type[1] - '0');
  i.d = d.result(s.operands[0], "b32");
  i.a = d.source(s.operands[1], "s32");
  i.b = d.source(s.operands[2], "s32");
  i.c = has_third_source ? d.source(s.operands[3], "b32") : i.a;
  i.execute = pack_integers;
  return d.emit(i), true;
}

struct Form {
  std::string_view result_type, source_type;
  std::string_view rounding, optional;  // groups of qualifiers: one of `rounding` is required
  size_t operands;
  Execute execute;
};
const Form* form_of(const Statement& s) {
  static const Form forms[] = {
      {"f16x2", "f32", "rn|rz", "relu|satfinite", 3, pack<ToHalf>},
      {"bf16x2", "f32", "rn|rz", "relu|satfinite", 3, pack<ToBfloat>},
      {"e4m3x2", "f32", "rn", "relu|satfinite", 3, pack<ToE4m3>},
      {"e5m2x2", "f32", "rn", "relu|satfinite", 3, pack<ToE5m2>},
      {"e4m3x2", "f16x2", "rn", "relu|satfinite", 2, repack<ToE4m3>},
      {"e5m2x2", "f16x2", "rn", "relu|satfinite", 2, repack<ToE5m2>},
      {"f16x2", "e4m3x2", "rn", "relu", 2, widen<3, 7>},
      {"f16x2", "e5m2x2", "rn", "relu", 2, widen<2, 15>},
      {"tf32", "f32", "rn|rz", "relu", 2, tf32},
      {"tf32", "f32", "rna", "satfinite", 2, tf32},
  };
  for (const Form& form : forms)
    if (s.qualifiers.size() >= 3 && s.type(1) == form.result_type && s.type() == form.source_type &&
        is_in_group(form.rounding, s.qualifiers[0]))
      return &form;
  return nullptr;
}

}  // namespace

bool decode_narrow(Decoder& d, const Statement& s, Instruction& i) {
  if (!s.qualifiers.empty() && s.qualifiers[0] == "pack") return decode_pack(d, s, i);
  const Form* form = form_of(s);
  if (!form || s.operands.size() != form->operands) return false;
  for (size_t k = 1; k + 2 < s.qualifiers.size(); k++)
    if (!is_in_group(form->optional, s.qualifiers[k]) || (k > 1 && s.qualifiers[k] == s.qualifiers[k - 1])) return false;
  const bool is_result_bytes = form->result_type == "e4m3x2" || form->result_type == "e5m2x2";
  if (is_result_bytes && !s.has("satfinite")) return false;  // there is no form without it
  const uint8_t flags = (s.has("relu") ? kRelu : 0) | (s.has("satfinite") ? kFinite : 0) | (s.has("rna") ? kAway : 0);
  i.variant = static_cast<uint8_t>(static_cast<uint8_t>(rounding_mode_of(s)) | flags << 2);
  i.execute = form->execute;
  i.d = d.result(s.operands[0], form->result_type);
  i.a = d.source(s.operands[1], form->source_type);
  if (form->operands == 3) i.b = d.source(s.operands[2], form->source_type);
  return d.emit(i), true;
}

}  // namespace vgpu
