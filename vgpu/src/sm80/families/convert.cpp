// Conversions between integers and floats of all widths, and rounding to integral floats.
#include <cmath>
#include <limits>

#include "arithmetic/float.h"
#include "arithmetic/half.h"
#include "arithmetic/rounding.h"
#include "floats.h"
#include "select.h"

namespace vgpu::sm80 {
namespace {

enum class Format : uint8_t { F16, Bf16, F32, F64 };

// Flags of i.variant; vector_registers has the formats.
constexpr uint32_t kFlush = 1, kRelu = 4;
enum : uint32_t { kFrom, kTo, kShift };

bool format_of(std::string_view name, Format& format) {
  if (name == "F16") format = Format::F16;
  else if (name == "BF16") format = Format::Bf16;
  else if (name == "F32" || name.empty()) format = Format::F32;
  else if (name == "F64") format = Format::F64;
  else return false;
  return true;
}

// Operand b as a double, which represents it exactly, with its sign flags applied.
struct RealOperand {
  const uint32_t* registers;
  Format format;
  bool negate, absolute, flush;
  RealOperand(WarpContext& warp, const Instruction& i, Format f)
      : registers(lane_words(warp, i.b)),
        format(f),
        negate(i.vector_registers[kFlags] & kNegateB),
        absolute(i.vector_registers[kFlags] & kAbsoluteB),
        flush(i.variant & kFlush) {}

  double value(uint32_t l) const {
    double x = 0;
    if (format == Format::F64) x = bit_cast<double>(pair_of(registers, l));
    else if (format == Format::F16) x = half_to_float(static_cast<uint16_t>(registers[l]));
    else if (format == Format::F32) x = flush ? flush_subnormal(bit_cast<float>(registers[l])) : bit_cast<float>(registers[l]);
    if (absolute) x = std::fabs(x);
    return negate ? -x : x;
  }
};

double round_to_integer(double x, RoundingMode mode) {
  switch (mode) {
    case RoundingMode::Down: return std::floor(x);
    case RoundingMode::Up: return std::ceil(x);
    case RoundingMode::Zero: return std::trunc(x);
    default: return std::nearbyint(x);
  }
}

// Converts a double NaN to a float NaN with its sign and the upper bits of its payload.
uint32_t quiet_float(double x) {
  const uint64_t bits = bit_cast<uint64_t>(x);
  return static_cast<uint32_t>(bits >> 63) << 31 | 0x7fc00000u | (static_cast<uint32_t>(bits >> 29) & 0x3fffffu);
}

// Rounds once.  volatile: so that the current rounding mode is used.
uint64_t rounded_bits(double x, Format format, RoundingMode mode, bool is_from_double, bool flush) {
  if (format == Format::F64) return bit_cast<uint64_t>(canonicalize_nan(x));
  if (format == Format::F16) return to_half(x, mode);
  if (format == Format::Bf16) return to_bfloat16(x, mode);
  if (x != x) return is_from_double ? quiet_float(x) : 0x7fffffffu;
  if (flush && std::fabs(x) < kMinNormal) return bit_cast<uint32_t>(static_cast<float>(std::copysign(0.0, x)));
  volatile double source = x;
  volatile float result = static_cast<float>(source);
  return bit_cast<uint32_t>(float(result));
}

// Writes f(lane) as a pair or a single register, with the rounding mode set while f runs.
template <class F> void write_rounded(WarpContext& warp, const Instruction& i, bool is_pair, RoundingMode mode, F f) {
  uint64_t results[kWarpSize] = {};
  if (mode == RoundingMode::Nearest) {
    for_each_lane(warp.active_mask, [&](uint32_t l) { results[l] = f(l); });
  } else {
    ScopedRoundingMode scope(mode);
    for (uint32_t remaining = warp.active_mask; remaining; remaining &= remaining - 1) {
      const uint32_t l = static_cast<uint32_t>(__builtin_ctz(remaining));
      results[l] = f(l);
    }
  }
  if (is_pair) write_pairs(warp, i.d, [&](uint32_t l) { return results[l]; });
  else write_lane_words(warp, i.d, [&](uint32_t l) { return static_cast<uint32_t>(results[l]); });
}

void float_to_float(WarpContext& warp, const Instruction& i) {
  const Format source_format = static_cast<Format>(i.vector_registers[kFrom]),
               result_format = static_cast<Format>(i.vector_registers[kTo]);
  const RoundingMode mode = static_cast<RoundingMode>(i.imm);
  const RealOperand b(warp, i, source_format);
  write_rounded(warp, i, result_format == Format::F64, mode, [&](uint32_t l) {
    return rounded_bits(b.value(l), result_format, mode, source_format == Format::F64, b.flush);
  });
}

// Converts with saturation.  A NaN gives only the highest bit if one of the types has 64 bits, otherwise 0.
template <class T> uint64_t to_integer(double x, bool is_from_double) {
  constexpr double low = static_cast<double>(std::numeric_limits<T>::min());
  const double high = std::ldexp(1.0, 8 * int(sizeof(T)) - std::is_signed_v<T>);
  if (x != x) return sizeof(T) == 8 || is_from_double ? uint64_t(1) << (8 * sizeof(T) - 1) : 0;
  const T result = x <= low ? std::numeric_limits<T>::min() : x >= high ? std::numeric_limits<T>::max() : static_cast<T>(x);
  return static_cast<uint64_t>(result);
}

template <class T> void float_to_integer(WarpContext& warp, const Instruction& i) {
  const Format source_format = static_cast<Format>(i.vector_registers[kFrom]);
  const RealOperand b(warp, i, source_format);
  const RoundingMode mode = static_cast<RoundingMode>(i.imm);
  write_rounded(warp, i, sizeof(T) == 8, RoundingMode::Nearest,
                [&](uint32_t l) { return to_integer<T>(round_to_integer(b.value(l), mode), source_format == Format::F64); });
}

// Rounds a 64-bit integer to odd, so that the double rounds to a half as the integer does.
double odd_double(uint64_t magnitude) {
  constexpr int kBelow = 64 - std::numeric_limits<double>::digits;
  if (magnitude >> std::numeric_limits<double>::digits) {
    const uint64_t lost = magnitude & ((uint64_t(1) << kBelow) - 1);
    magnitude = (magnitude - lost) | uint64_t(lost != 0) << kBelow;
  }
  return to_rounded<double>(magnitude);
}

template <class T> uint64_t integer_bits(T value, Format format, RoundingMode mode) {
  const std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t> wide = value;
  if (format == Format::F64) return bit_cast<uint64_t>(to_rounded<double>(wide));
  if (format == Format::F32) return bit_cast<uint32_t>(to_rounded<float>(wide));
  const bool negative = value < 0;
  const double exact = odd_double(negative ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value));
  return to_half(negative ? -exact : exact, mode);
}

// imm: the rounding mode; vector_registers[kShift]: the index of the operand's lowest bit in its register.
template <class T> void integer_to_float(WarpContext& warp, const Instruction& i) {
  const uint32_t *b = lane_words(warp, i.b), shift = i.vector_registers[kShift];
  const Format format = static_cast<Format>(i.vector_registers[kTo]);
  const RoundingMode mode = static_cast<RoundingMode>(i.imm);
  write_rounded(warp, i, format == Format::F64, mode, [=](uint32_t l) {
    return integer_bits(static_cast<T>(sizeof(T) == 8 ? pair_of(b, l) : b[l] >> shift), format, mode);
  });
}

void round_to_integral(WarpContext& warp, const Instruction& i) {
  const Format format = static_cast<Format>(i.vector_registers[kFrom]);
  const RealOperand b(warp, i, format);
  write_rounded(warp, i, format == Format::F64, RoundingMode::Nearest, [&](uint32_t l) {
    return rounded_bits(round_to_integer(b.value(l), static_cast<RoundingMode>(i.imm)), format, RoundingMode::Nearest, false,
                        false);
  });
}

void pack_floats(WarpContext& warp, const Instruction& i) {
  const uint32_t *a = lane_words(warp, i.a), *b = lane_words(warp, i.b);
  const Signs<uint32_t> first(i.vector_registers[kFlags], 0), second(i.vector_registers[kFlags], 1);
  const Format format = static_cast<Format>(i.vector_registers[kTo]);
  const RoundingMode mode = static_cast<RoundingMode>(i.imm);
  const auto half = [=](uint32_t bits) -> uint32_t {
    const uint16_t result = static_cast<uint16_t>(rounded_bits(bit_cast<float>(bits), format, mode, false, false));
    return i.variant & kRelu ? relu(result) : result;
  };
  write_rounded(warp, i, false, RoundingMode::Nearest,
                [&](uint32_t l) -> uint64_t { return half(first.of(a[l])) << 16 | half(second.of(b[l])); });
}

RoundingMode integral_rounding(std::string_view name) {
  if (name == "FLOOR") return RoundingMode::Down;
  if (name == "CEIL") return RoundingMode::Up;
  return name == "TRUNC" ? RoundingMode::Zero : RoundingMode::Nearest;
}

bool read_real(FunctionDecoder& d, const Decoded& c, Instruction& i, Format format) {
  i.vector_registers[kFlags] = sign_flags(c), i.vector_registers[kFrom] = static_cast<uint32_t>(format);
  i.variant = c.has("FTZ") ? kFlush : 0;
  if (format == Format::F64) i.b = d.read_pair(c.b, WideImmediate::UpperHalf);
  return true;
}

}  // namespace

bool select_float_to_float(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  Format source_format, result_format;
  if (!format_of(c.modifier(84), source_format) || !format_of(c.modifier(75), result_format)) return false;
  i.imm = static_cast<int64_t>(rounding_of(c.modifier(78))), i.execute = float_to_float;
  i.vector_registers[kTo] = static_cast<uint32_t>(result_format);
  return read_real(d, c, i, source_format);
}

bool select_float_to_integer(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  Format format;
  if (!format_of(c.modifier(84), format)) return false;
  i.imm = static_cast<int64_t>(integral_rounding(c.modifier(78)));
  const std::string_view result_type = c.modifier(72);
  if (result_type.empty()) i.execute = float_to_integer<int32_t>;
  if (result_type == "U32") i.execute = float_to_integer<uint32_t>;
  if (result_type == "S64") i.execute = float_to_integer<int64_t>;
  if (result_type == "U64") i.execute = float_to_integer<uint64_t>;
  if (result_type == "S16") i.execute = float_to_integer<int16_t>;
  if (result_type == "U16") i.execute = float_to_integer<uint16_t>;
  if (result_type == "S8") i.execute = float_to_integer<int8_t>;
  if (result_type == "U8") i.execute = float_to_integer<uint8_t>;
  return read_real(d, c, i, format) && i.execute;
}

bool select_integer_to_float(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  Format format;
  if (!format_of(c.modifier(75), format)) return false;
  i.vector_registers[kTo] = static_cast<uint32_t>(format), i.imm = static_cast<int64_t>(rounding_of(c.modifier(78)));
  const std::string_view source_type = c.modifier(74);
  i.vector_registers[kShift] = source_type == "U8" || source_type == "S8"     ? 8u * c.b.part
                               : source_type == "U16" || source_type == "S16" ? 16u * (c.b.part & 1u)
                                                                              : 0;
  if (source_type == "U8") i.execute = integer_to_float<uint8_t>;
  if (source_type == "S8") i.execute = integer_to_float<int8_t>;
  if (source_type == "U16") i.execute = integer_to_float<uint16_t>;
  if (source_type == "S16") i.execute = integer_to_float<int16_t>;
  if (source_type == "U32") i.execute = integer_to_float<uint32_t>;
  if (source_type.empty()) i.execute = integer_to_float<int32_t>;
  if (source_type == "U64") i.execute = integer_to_float<uint64_t>;
  if (source_type == "S64") i.execute = integer_to_float<int64_t>;
  if (source_type == "U64" || source_type == "S64") i.b = d.read_pair(c.b, WideImmediate::SignExtended);
  return i.execute != nullptr;
}

bool select_round(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  Format format;
  i.imm = static_cast<int64_t>(integral_rounding(c.modifier(78))), i.execute = round_to_integral;
  return format_of(c.modifier(75), format) && c.bits(84, 2) == c.bits(75, 2) && read_real(d, c, i, format);
}

bool select_pack_floats(FunctionDecoder&, const Decoded& c, Instruction& i) {
  i.vector_registers[kFlags] = sign_flags(c), i.variant = c.has("RELU") ? kRelu : 0;
  i.vector_registers[kTo] = static_cast<uint32_t>(c.has("BF16") ? Format::Bf16 : Format::F16);
  i.imm = static_cast<int64_t>(rounding_of(c.modifier(79))), i.execute = pack_floats;
  return true;
}

}  // namespace vgpu::sm80
