// cvt between any two of the integer types, float types, f16 and bf16.  A register may be wider than the type: the source is
// read from its low bytes, and an integer result is extended by its own sign.
#include <algorithm>
#include <cstring>
#include <limits>

#include "arithmetic/float.h"
#include "arithmetic/half.h"
#include "arithmetic/rounding.h"
#include "families.h"
#include "types.h"

namespace vgpu {
namespace {

struct Half { uint16_t bits; };
struct Bfloat { uint16_t bits; };
template <class T> constexpr bool is_half = std::is_same_v<T, Half> || std::is_same_v<T, Bfloat>;
template <class T> constexpr bool is_real = std::is_floating_point_v<T> || is_half<T>;

constexpr uint8_t kFlush = 1, kSaturate = 2, kRoundToInteger = 4, kRelu = 8, kFinite = 16;

// The value of a real type as a double, which is exact for f16 and bf16.
inline double to_double(float x) { return x; }
inline double to_double(double x) { return x; }
inline double to_double(Half x) { return half_to_float(x.bits); }
inline double to_double(Bfloat x) { return bfloat16_to_float(x.bits); }

inline double round_to_integer(double x, RoundingMode mode) {
  switch (mode) {
    case RoundingMode::Zero: return std::trunc(x);
    case RoundingMode::Down: return std::floor(x);
    case RoundingMode::Up: return std::ceil(x);
    default: return std::nearbyint(x);
  }
}

// Converts an integer to a double that rounds to a half as the integer itself would: digits that do not fit set the last bit
// (round to odd).
template <class S> double round_to_odd(S s) {
  if constexpr (sizeof(S) < 8) return static_cast<double>(s);
  constexpr int kBelow = 64 - std::numeric_limits<double>::digits;
  const bool negative = s < 0;
  uint64_t magnitude = negative ? 0 - static_cast<uint64_t>(s) : static_cast<uint64_t>(s);
  if (magnitude >> std::numeric_limits<double>::digits) {
    const uint64_t lost = magnitude & ((1ull << kBelow) - 1);
    magnitude = (magnitude - lost) | uint64_t(lost != 0) << kBelow;
  }
  const double result = to_rounded<double>(magnitude);
  return negative ? -result : result;
}

template <class D> D to_integer(double x) {
  constexpr double low = static_cast<double>(std::numeric_limits<D>::min());
  const double high = std::ldexp(1.0, 8 * int(sizeof(D)) - std::is_signed_v<D>);  // the first that is too large
  if (x <= low) return std::numeric_limits<D>::min();
  return x >= high ? std::numeric_limits<D>::max() : static_cast<D>(x);
}
// A NaN becomes the highest bit alone where one of the types has 64 bits, otherwise 0.
template <class D> D convert_nan(size_t source) {
  return source == 8 || sizeof(D) == 8 ? static_cast<D>(1ull << (8 * sizeof(D) - 1)) : D(0);
}

inline double saturate(double x) { return x > 0 ? std::min(x, 1.0) : 0; }

// Rounds in the rounding mode that is set on the processor.  The volatile stops the compiler from rounding earlier.
inline float to_float(double x) {
  volatile double source = x;
  return static_cast<float>(source);
}

template <class D, class S> struct Convert {
  static D of(S s, uint8_t flags, RoundingMode mode) {
    if constexpr (is_real<S>) return from_real(s, flags, mode);
    else return from_integer(s, flags, mode);
  }

  static D from_real(S s, uint8_t flags, RoundingMode mode) {
    if constexpr (std::is_same_v<S, float>)
      if (flags & kFlush) s = flush_subnormal(s);
    if constexpr (std::is_same_v<S, Bfloat> && std::is_same_v<D, float>)
      if (!flags) return bfloat16_to_float(s.bits);  // a shift: NaNs keep their bits
    double x = to_double(s);
    if constexpr (std::is_integral_v<D>) {
      return x != x ? convert_nan<D>(sizeof(S)) : to_integer<D>(round_to_integer(x, mode));
    } else {
      if (flags & kRoundToInteger) x = round_to_integer(x, mode), mode = RoundingMode::Nearest;
      if (flags & kSaturate) x = saturate(x);
      D result = round_to_real(x, flags, mode);
      if constexpr (is_half<D>) {
        if (flags & kRelu) result.bits = relu(result.bits);
        if (flags & kFinite) result.bits = finite<D>(result.bits);
      }
      return result;
    }
  }
  template <class H> static uint16_t finite(uint16_t bits) {
    constexpr uint16_t kInfinite = std::is_same_v<H, Half> ? 0x7c00 : 0x7f80;
    return (bits & 0x7fff) == kInfinite ? static_cast<uint16_t>(bits - 1) : bits;
  }
  // Converts a double NaN to a quiet NaN with its sign and the part of its payload that fits.
  static D quiet_nan(double x) {
    uint64_t bits = bit_cast<uint64_t>(x);
    uint32_t sign = uint32_t(bits >> 63), payload = uint32_t(bits >> 20);
    if constexpr (std::is_same_v<D, Half>) return {uint16_t(sign << 15 | 0x7e00u | (payload >> 22 & 0x1ffu))};
    else if constexpr (std::is_same_v<D, Bfloat>) return {uint16_t(sign << 15 | 0x7fc0u | (payload >> 25 & 0x3fu))};
    else return bit_cast<float>(sign << 31 | 0x7fc00000u | (payload >> 9 & 0x3fffffu));
  }
  static D from_integer(S s, uint8_t flags, RoundingMode mode) {
    if constexpr (std::is_integral_v<D>) {
      if (!(flags & kSaturate)) return static_cast<D>(s);
      __int128 low = std::numeric_limits<D>::min(), high = std::numeric_limits<D>::max();
      return static_cast<D>(std::clamp<__int128>(s, low, high));
    } else if constexpr (std::is_floating_point_v<D>) {
      using Wide = std::conditional_t<std::is_signed_v<S>, int64_t, uint64_t>;
      const D result = to_rounded<D>(Wide(s));
      return flags & kSaturate ? static_cast<D>(saturate(result)) : result;
    } else {
      double x = round_to_odd(s);
      return round_to_real(flags & kSaturate ? saturate(x) : x, flags, mode);
    }
  }
  static D round_to_real(double x, uint8_t flags, RoundingMode mode) {
    if constexpr (std::is_same_v<S, double> && !std::is_same_v<D, double>)
      if (x != x) return quiet_nan(x);
    if constexpr (std::is_same_v<D, Half>) return {to_half(x, mode)};
    else if constexpr (std::is_same_v<D, Bfloat>) return {to_bfloat16(x, mode)};
    else if constexpr (std::is_same_v<D, double>) return canonicalize_nan(x);
    else {
      // A value that only rounding makes normal is flushed, too.
      if ((flags & kFlush) && std::fabs(x) < kMinNormal) return static_cast<float>(std::copysign(0.0, x));
      return canonicalize_nan(to_float(x));
    }
  }
};

// a: the source; d: the result; count and imm: the bytes of their registers; variant: the rounding mode and, above two bits,
// the flags.
template <class D, class S> void cvt(WarpContext& warp, const Instruction& i) {
  RoundingMode mode = static_cast<RoundingMode>(i.variant & 3);
  uint8_t flags = i.variant >> 2;
  uint32_t source_bytes = i.count, result_bytes = static_cast<uint32_t>(i.imm);
  const uint8_t* a = warp.frame + i.a;
  uint8_t* d = warp.frame + i.d;
  auto run = [&] {
    for_each_lane(warp.active_mask, [=](uint32_t l) {
      S s;
      std::memcpy(&s, a + l * source_bytes, sizeof s);
      D result = Convert<D, S>::of(s, flags, mode);
      if constexpr (std::is_integral_v<D>) {
        int64_t wide = static_cast<int64_t>(result);
        std::memcpy(d + l * result_bytes, &wide, result_bytes);
      } else {
        std::memcpy(d + l * result_bytes, &result, sizeof result);
      }
    });
  };
  if (mode == RoundingMode::Nearest || !std::is_floating_point_v<D>) return run();
  ScopedRoundingMode set(mode);
  run();
}

template <class D> Execute select_conversion_to(std::string_view s) {
  if (s == "f32") return cvt<D, float>;
  if (s == "f64") return cvt<D, double>;
  if (s == "f16") return cvt<D, Half>;
  if (s == "bf16") return cvt<D, Bfloat>;
  if (s == "s8") return cvt<D, int8_t>;
  if (s == "u8") return cvt<D, uint8_t>;
  return for_integer(s, [](auto tag) -> Execute { return cvt<D, typename decltype(tag)::type>; });
}
Execute select_conversion(std::string_view d, std::string_view s) {
  if (d == "f32") return select_conversion_to<float>(s);
  if (d == "f64") return select_conversion_to<double>(s);
  if (d == "f16") return select_conversion_to<Half>(s);
  if (d == "bf16") return select_conversion_to<Bfloat>(s);
  if (d == "s8") return select_conversion_to<int8_t>(s);
  if (d == "u8") return select_conversion_to<uint8_t>(s);
  if (d == "s16") return select_conversion_to<int16_t>(s);
  if (d == "u16") return select_conversion_to<uint16_t>(s);
  if (d == "s32") return select_conversion_to<int32_t>(s);
  if (d == "u32") return select_conversion_to<uint32_t>(s);
  if (d == "s64") return select_conversion_to<int64_t>(s);
  return d == "u64" ? select_conversion_to<uint64_t>(s) : nullptr;
}

}  // namespace

bool decode_convert(Decoder& d, const Statement& s, Instruction& i) {
  if (decode_narrow(d, s, i)) return true;
  std::string_view source_type = s.type(), result_type = s.type(1);
  if (!s.allows_only({"rn|rz|rm|rp|rni|rzi|rmi|rpi", "ftz", "sat|relu", "satfinite"}, /*types=*/2) || s.operands.size() != 2)
    return false;
  const bool is_result_half = result_type == "f16" || result_type == "bf16";
  if ((s.has("relu") || s.has("satfinite")) && (!is_result_half || source_type != "f32")) return false;
  uint8_t flags = (s.has("ftz") ? kFlush : 0) | (s.has("sat") ? kSaturate : 0) | (s.has("relu") ? kRelu : 0);
  if (s.has("rni") || s.has("rzi") || s.has("rmi") || s.has("rpi")) flags |= kRoundToInteger;
  if (s.has("satfinite")) flags |= kFinite;
  i.variant = static_cast<uint8_t>(static_cast<uint8_t>(rounding_mode_of(s)) | flags << 2);
  i.execute = select_conversion(result_type, source_type);
  if (!i.execute) return false;
  RegisterSlot source = d.source_slot(s.operands[1], source_type), result = d.result_slot(s.operands[0], result_type);
  if (source.sort == Sort::Special && (result_type[0] == 'f' || result_type[0] == 'b')) return false;
  if (!source.width || !result.width || source.width < ptx::size_of(source_type) || result.width < ptx::size_of(result_type))
    return false;
  i.a = source.offset, i.d = result.offset;
  i.count = static_cast<uint8_t>(source.width);
  i.imm = result.width;
  d.emit(i);
  return true;
}

}  // namespace vgpu
