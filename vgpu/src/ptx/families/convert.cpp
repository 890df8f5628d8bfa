// cvt, between any two of integers, floats, f16 and bf16.  Registers may be wider than the types: the low bytes count, and
// results are extended by their own sign.
#include <algorithm>
#include <cstring>
#include <limits>

#include "arithmetic/float.h"
#include "arithmetic/half.h"
#include "families.h"
#include "types.h"

namespace vgpu {
namespace {

struct Half { uint16_t bits; };
struct Bfloat { uint16_t bits; };
template <class T> constexpr bool is_half = std::is_same_v<T, Half> || std::is_same_v<T, Bfloat>;
template <class T> constexpr bool is_real = std::is_floating_point_v<T> || is_half<T>;

constexpr uint8_t kFlush = 1, kSaturate = 2, kWhole = 4, kRelu = 8, kFinite = 16;

// Of real types, the value: f16 and bf16 are exact in double.
inline double value(float x) { return x; }
inline double value(double x) { return x; }
inline double value(Half x) { return half_to_float(x.bits); }
inline double value(Bfloat x) { return bfloat16_to_float(x.bits); }

inline double round_to_integer(double x, RoundingMode to) {
  switch (to) {
    case RoundingMode::Zero: return std::trunc(x);
    case RoundingMode::Down: return std::floor(x);
    case RoundingMode::Up: return std::ceil(x);
    default: return std::nearbyint(x);
  }
}

// An integer as a double that rounds to a half as the integer itself does: what does not fit sets the last bit.
template <class S> double odd(S s) {
  if constexpr (sizeof(S) < 8) return static_cast<double>(s);
  constexpr int kBelow = 64 - std::numeric_limits<double>::digits;
  const bool negative = s < 0;
  uint64_t magnitude = negative ? 0 - static_cast<uint64_t>(s) : static_cast<uint64_t>(s);
  if (magnitude >> std::numeric_limits<double>::digits) {
    const uint64_t lost = magnitude & ((1ull << kBelow) - 1);
    magnitude = (magnitude - lost) | uint64_t(lost != 0) << kBelow;
  }
  const double made = static_cast<double>(magnitude);
  return negative ? -made : made;
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

inline double held(double x) { return x > 0 ? std::min(x, 1.0) : 0; }

// The rounding of the processor is the instruction's while this runs.
inline float to_float(double x) {
  volatile double from = x;
  return static_cast<float>(from);
}

template <class D, class S> struct Convert {
  static D of(S s, uint8_t how, RoundingMode to) {
    if constexpr (is_real<S>) return from_real(s, how, to);
    else return from_integer(s, how, to);
  }

  static D from_real(S s, uint8_t how, RoundingMode to) {
    if constexpr (std::is_same_v<S, float>)
      if (how & kFlush) s = flush_subnormal(s);
    if constexpr (std::is_same_v<S, Bfloat> && std::is_same_v<D, float>)
      if (!how) return bfloat16_to_float(s.bits);  // a shift: NaNs stay what they are
    double x = value(s);
    if constexpr (std::is_integral_v<D>) {
      return x != x ? convert_nan<D>(sizeof(S)) : to_integer<D>(round_to_integer(x, to));
    } else {
      if (how & kWhole) x = round_to_integer(x, to), to = RoundingMode::Nearest;
      if (how & kSaturate) x = held(x);
      D made = real(x, how, to);
      if constexpr (is_half<D>) {
        if (how & kRelu) made.bits = relu(made.bits);
        if (how & kFinite) made.bits = finite<D>(made.bits);
      }
      return made;
    }
  }
  template <class H> static uint16_t finite(uint16_t bits) {
    constexpr uint16_t kInfinite = std::is_same_v<H, Half> ? 0x7c00 : 0x7f80;
    return (bits & 0x7fff) == kInfinite ? static_cast<uint16_t>(bits - 1) : bits;
  }
  // Of double precision, with its sign and what fits of its payload.
  static D quiet(double x) {
    uint64_t bits = bit_cast<uint64_t>(x);
    uint32_t sign = uint32_t(bits >> 63), payload = uint32_t(bits >> 20);
    if constexpr (std::is_same_v<D, Half>) return {uint16_t(sign << 15 | 0x7e00u | (payload >> 22 & 0x1ffu))};
    else if constexpr (std::is_same_v<D, Bfloat>) return {uint16_t(sign << 15 | 0x7fc0u | (payload >> 25 & 0x3fu))};
    else return bit_cast<float>(sign << 31 | 0x7fc00000u | (payload >> 9 & 0x3fffffu));
  }
  static D from_integer(S s, uint8_t how, RoundingMode to) {
    if constexpr (std::is_integral_v<D>) {
      if (!(how & kSaturate)) return static_cast<D>(s);
      __int128 low = std::numeric_limits<D>::min(), high = std::numeric_limits<D>::max();
      return static_cast<D>(std::clamp<__int128>(s, low, high));
    } else if constexpr (std::is_floating_point_v<D>) {
      volatile S from = s;
      D made = static_cast<D>(from);  // in the rounding that is set
      return how & kSaturate ? static_cast<D>(held(made)) : made;
    } else {
      double x = odd(s);
      return real(how & kSaturate ? held(x) : x, how, to);
    }
  }
  static D real(double x, uint8_t how, RoundingMode to) {
    if constexpr (std::is_same_v<S, double> && !std::is_same_v<D, double>)
      if (x != x) return quiet(x);
    if constexpr (std::is_same_v<D, Half>) return {to_half(x, to)};
    else if constexpr (std::is_same_v<D, Bfloat>) return {to_bfloat16(x, to)};
    else if constexpr (std::is_same_v<D, double>) return canonicalize_nan(x);
    else {
      // What only its rounding makes normal is flushed, too.
      if ((how & kFlush) && std::fabs(x) < kMinNormal) return static_cast<float>(std::copysign(0.0, x));
      return canonicalize_nan(to_float(x));
    }
  }
};

// count: bytes between lanes of the source; e: of the result.
template <class D, class S> void cvt(WarpContext& warp, const Instruction& i) {
  RoundingMode to = static_cast<RoundingMode>(i.variant & 3);
  uint8_t how = i.variant >> 2;
  uint32_t from = i.count, into = static_cast<uint32_t>(i.imm);
  const uint8_t* a = warp.frame + i.a;
  uint8_t* d = warp.frame + i.d;
  auto run = [&] {
    for_each_lane(warp.active_mask, [=](uint32_t l) {
      S s;
      std::memcpy(&s, a + l * from, sizeof s);
      D made = Convert<D, S>::of(s, how, to);
      if constexpr (std::is_integral_v<D>) {
        int64_t wide = static_cast<int64_t>(made);
        std::memcpy(d + l * into, &wide, into);
      } else {
        std::memcpy(d + l * into, &made, sizeof made);
      }
    });
  };
  if (to == RoundingMode::Nearest) return run();
  ScopedRoundingMode set(to);
  run();
}

template <class D> Execute from(std::string_view s) {
  if (s == "f32") return cvt<D, float>;
  if (s == "f64") return cvt<D, double>;
  if (s == "f16") return cvt<D, Half>;
  if (s == "bf16") return cvt<D, Bfloat>;
  if (s == "s8") return cvt<D, int8_t>;
  if (s == "u8") return cvt<D, uint8_t>;
  return for_integer(s, [](auto tag) -> Execute { return cvt<D, typename decltype(tag)::type>; });
}
Execute between(std::string_view d, std::string_view s) {
  if (d == "f32") return from<float>(s);
  if (d == "f64") return from<double>(s);
  if (d == "f16") return from<Half>(s);
  if (d == "bf16") return from<Bfloat>(s);
  if (d == "s8") return from<int8_t>(s);
  if (d == "u8") return from<uint8_t>(s);
  if (d == "s16") return from<int16_t>(s);
  if (d == "u16") return from<uint16_t>(s);
  if (d == "s32") return from<int32_t>(s);
  if (d == "u32") return from<uint32_t>(s);
  if (d == "s64") return from<int64_t>(s);
  return d == "u64" ? from<uint64_t>(s) : nullptr;
}

}  // namespace

bool decode_convert(Decoder& d, const Statement& s, Instruction& i) {
  if (decode_narrow(d, s, i)) return true;
  std::string_view from = s.type(), into = s.type(1);
  if (!s.allows_only({"rn|rz|rm|rp|rni|rzi|rmi|rpi", "ftz", "sat|relu", "satfinite"}, 2) || s.operands.size() != 2)
    return false;
  const bool halves = into == "f16" || into == "bf16";
  if ((s.has("relu") || s.has("satfinite")) && (!halves || from != "f32")) return false;
  uint8_t how = (s.has("ftz") ? kFlush : 0) | (s.has("sat") ? kSaturate : 0) | (s.has("relu") ? kRelu : 0);
  if (s.has("rni") || s.has("rzi") || s.has("rmi") || s.has("rpi")) how |= kWhole;
  if (s.has("satfinite")) how |= kFinite;
  i.variant = static_cast<uint8_t>(static_cast<uint8_t>(rounding_mode_of(s)) | how << 2);
  i.execute = between(into, from);
  if (!i.execute) return false;
  RegisterSlot source = d.source_operand(s.operands[1], from), result = d.written(s.operands[0], into);
  if (source.sort == Sort::Special && (into[0] == 'f' || into[0] == 'b')) return false;
  if (!source.width || !result.width || source.width < ptx::size_of(from) || result.width < ptx::size_of(into)) return false;
  i.a = source.offset, i.d = result.offset;
  i.count = static_cast<uint8_t>(source.width);
  i.imm = result.width;
  d.emit(i);
  return true;
}

}  // namespace vgpu
