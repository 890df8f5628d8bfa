// Between integers, floats of all widths, and floats without a fraction.
#include <cmath>
#include <limits>

#include "arithmetic/float.h"
#include "arithmetic/half.h"
#include "floats.h"
#include "select.h"

namespace vgpu::sm80 {
namespace {

enum class Format : uint8_t { F16, Bf16, F32, F64 };

// Of i.variant; imm and words of vector_registers say between which formats.
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

// A lane's b, with its sign flags, as a double, in which it is exact.
struct RealOperand {
  const uint32_t* from;
  Format format;
  bool negate, absolute, flush;
  RealOperand(WarpContext& warp, const Instruction& i, Format f)
      : from(words(warp, i.b)),
        format(f),
        negate(i.vector_registers[kFlags] & kNegateB),
        absolute(i.vector_registers[kFlags] & kAbsoluteB),
        flush(i.variant & kFlush) {}

  double value(uint32_t l) const {
    double x = 0;
    if (format == Format::F64) x = bit_cast<double>(pair_of(from, l));
    else if (format == Format::F16) x = half_to_float(static_cast<uint16_t>(from[l]));
    else if (format == Format::F32) x = flush ? flush_subnormal(bit_cast<float>(from[l])) : bit_cast<float>(from[l]);
    if (absolute) x = std::fabs(x);
    return negate ? -x : x;
  }
};

double whole(double x, RoundingMode to) {
  switch (to) {
    case RoundingMode::Down: return std::floor(x);
    case RoundingMode::Up: return std::ceil(x);
    case RoundingMode::Zero: return std::trunc(x);
    default: return std::nearbyint(x);
  }
}

// A NaN of double precision keeps its sign and what fits of its payload.
uint32_t quiet_float(double x) {
  const uint64_t bits = bit_cast<uint64_t>(x);
  return static_cast<uint32_t>(bits >> 63) << 31 | 0x7fc00000u | (static_cast<uint32_t>(bits >> 29) & 0x3fffffu);
}

// Rounded once.  volatile: in the rounding that is set.
uint64_t rounded_bits(double x, Format to, RoundingMode how, bool from_double, bool flush) {
  if (to == Format::F64) return bit_cast<uint64_t>(canonicalize_nan(x));
  if (to == Format::F16) return to_half(x, how);
  if (to == Format::Bf16) return to_bfloat16(x, how);
  if (x != x) return from_double ? quiet_float(x) : 0x7fffffffu;
  if (flush && std::fabs(x) < kMinNormal) return bit_cast<uint32_t>(static_cast<float>(std::copysign(0.0, x)));
  volatile double from = x;
  volatile float made = static_cast<float>(from);
  return bit_cast<uint32_t>(float(made));
}

// f(lane) as a pair or as a word, with the rounding set while it runs.
template <class F> void write_rounded(WarpContext& warp, const Instruction& i, bool pair, RoundingMode how, F f) {
  uint64_t made[kWarpSize] = {};
  if (how == RoundingMode::Nearest) {
    for_each_lane(warp.active_mask, [&](uint32_t l) { made[l] = f(l); });
  } else {
    ScopedRoundingMode to(how);
    for (uint32_t left = warp.active_mask; left; left &= left - 1) {
      const uint32_t l = static_cast<uint32_t>(__builtin_ctz(left));
      made[l] = f(l);
    }
  }
  if (pair) write_pairs(warp, i.d, [&](uint32_t l) { return made[l]; });
  else write_words(warp, i.d, [&](uint32_t l) { return static_cast<uint32_t>(made[l]); });
}

void float_to_float(WarpContext& warp, const Instruction& i) {
  const Format from = static_cast<Format>(i.vector_registers[kFrom]), to = static_cast<Format>(i.vector_registers[kTo]);
  const RoundingMode how = static_cast<RoundingMode>(i.imm);
  const RealOperand b(warp, i, from);
  write_rounded(warp, i, to == Format::F64, how,
                [&](uint32_t l) { return rounded_bits(b.value(l), to, how, from == Format::F64, b.flush); });
}

// Held to the type; a NaN becomes the highest bit alone where one of the types has 64 bits, otherwise 0.
template <class T> uint64_t to_integer(double x, bool from_double) {
  constexpr double low = static_cast<double>(std::numeric_limits<T>::min());
  const double high = std::ldexp(1.0, 8 * int(sizeof(T)) - std::is_signed_v<T>);
  if (x != x) return sizeof(T) == 8 || from_double ? uint64_t(1) << (8 * sizeof(T) - 1) : 0;
  const T made = x <= low ? std::numeric_limits<T>::min() : x >= high ? std::numeric_limits<T>::max() : static_cast<T>(x);
  return static_cast<uint64_t>(made);
}

template <class T> void float_to_integer(WarpContext& warp, const Instruction& i) {
  const Format from = static_cast<Format>(i.vector_registers[kFrom]);
  const RealOperand b(warp, i, from);
  const RoundingMode how = static_cast<RoundingMode>(i.imm);
  write_rounded(warp, i, sizeof(T) == 8, RoundingMode::Nearest,
                [&](uint32_t l) { return to_integer<T>(whole(b.value(l), how), from == Format::F64); });
}

// A 64-bit integer as a double that rounds to a half as the integer does: what does not fit sets the last bit.
double odd_double(uint64_t magnitude) {
  constexpr int kBelow = 64 - std::numeric_limits<double>::digits;
  if (magnitude >> std::numeric_limits<double>::digits) {
    const uint64_t lost = magnitude & ((uint64_t(1) << kBelow) - 1);
    magnitude = (magnitude - lost) | uint64_t(lost != 0) << kBelow;
  }
  return static_cast<double>(magnitude);
}

template <class T> uint64_t integer_bits(T value, Format to, RoundingMode how) {
  volatile T from = value;  // converted in the rounding that is set
  if (to == Format::F64) {
    volatile double made = static_cast<double>(from);
    return bit_cast<uint64_t>(double(made));
  }
  if (to == Format::F32) {
    volatile float made = static_cast<float>(from);
    return bit_cast<uint32_t>(float(made));
  }
  const bool negative = value < 0;
  const double exact = odd_double(negative ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value));
  return to_half(negative ? -exact : exact, how);
}

// imm: the rounding; v[2]: by how many bits the operand lies higher in its register.
template <class T> void integer_to_float(WarpContext& warp, const Instruction& i) {
  const uint32_t *b = words(warp, i.b), shift = i.vector_registers[kShift];
  const Format to = static_cast<Format>(i.vector_registers[kTo]);
  const RoundingMode how = static_cast<RoundingMode>(i.imm);
  write_rounded(warp, i, to == Format::F64, how, [=](uint32_t l) {
    return integer_bits(static_cast<T>(sizeof(T) == 8 ? pair_of(b, l) : b[l] >> shift), to, how);
  });
}

void round_to_whole(WarpContext& warp, const Instruction& i) {
  const Format format = static_cast<Format>(i.vector_registers[kFrom]);
  const RealOperand b(warp, i, format);
  write_rounded(warp, i, format == Format::F64, RoundingMode::Nearest, [&](uint32_t l) {
    return rounded_bits(whole(b.value(l), static_cast<RoundingMode>(i.imm)), format, RoundingMode::Nearest, false, false);
  });
}

void pack_floats(WarpContext& warp, const Instruction& i) {
  const uint32_t *a = words(warp, i.a), *b = words(warp, i.b);
  const Signs<uint32_t> first(i.vector_registers[kFlags], 0), second(i.vector_registers[kFlags], 1);
  const Format to = static_cast<Format>(i.vector_registers[kTo]);
  const RoundingMode how = static_cast<RoundingMode>(i.imm);
  const auto half = [=](uint32_t bits) -> uint32_t {
    const uint16_t made = static_cast<uint16_t>(rounded_bits(bit_cast<float>(bits), to, how, false, false));
    return i.variant & kRelu ? relu(made) : made;
  };
  write_rounded(warp, i, false, RoundingMode::Nearest,
                [&](uint32_t l) -> uint64_t { return half(first.of(a[l])) << 16 | half(second.of(b[l])); });
}

RoundingMode whole_rounding(std::string_view name) {
  if (name == "FLOOR") return RoundingMode::Down;
  if (name == "CEIL") return RoundingMode::Up;
  return name == "TRUNC" ? RoundingMode::Zero : RoundingMode::Nearest;
}

bool read_real(FunctionDecoder& d, const Decoded& c, Instruction& i, Format from) {
  i.vector_registers[kFlags] = sign_flags(c), i.vector_registers[kFrom] = static_cast<uint32_t>(from);
  i.variant = c.has("FTZ") ? kFlush : 0;
  if (from == Format::F64) i.b = d.read_pair(c.b, WideImmediate::UpperHalf);
  return true;
}

}  // namespace

bool select_float_to_float(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  Format from, to;
  if (!format_of(c.modifier(84), from) || !format_of(c.modifier(75), to)) return false;
  i.imm = static_cast<int64_t>(rounding_of(c.modifier(78))), i.execute = float_to_float;
  i.vector_registers[kTo] = static_cast<uint32_t>(to);
  return read_real(d, c, i, from);
}

bool select_float_to_integer(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  Format from;
  if (!format_of(c.modifier(84), from)) return false;
  i.imm = static_cast<int64_t>(whole_rounding(c.modifier(78)));
  const std::string_view to = c.modifier(72);
  if (to.empty()) i.execute = float_to_integer<int32_t>;
  if (to == "U32") i.execute = float_to_integer<uint32_t>;
  if (to == "S64") i.execute = float_to_integer<int64_t>;
  if (to == "U64") i.execute = float_to_integer<uint64_t>;
  if (to == "S16") i.execute = float_to_integer<int16_t>;
  if (to == "U16") i.execute = float_to_integer<uint16_t>;
  if (to == "S8") i.execute = float_to_integer<int8_t>;
  if (to == "U8") i.execute = float_to_integer<uint8_t>;
  return read_real(d, c, i, from) && i.execute;
}

bool select_integer_to_float(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  Format to;
  if (!format_of(c.modifier(75), to)) return false;
  i.vector_registers[kTo] = static_cast<uint32_t>(to), i.imm = static_cast<int64_t>(rounding_of(c.modifier(78)));
  const std::string_view from = c.modifier(74);
  i.vector_registers[kShift] = from == "U8" || from == "S8"     ? 8u * c.b.part
                               : from == "U16" || from == "S16" ? 16u * (c.b.part & 1u)
                                                                : 0;
  if (from == "U8") i.execute = integer_to_float<uint8_t>;
  if (from == "S8") i.execute = integer_to_float<int8_t>;
  if (from == "U16") i.execute = integer_to_float<uint16_t>;
  if (from == "S16") i.execute = integer_to_float<int16_t>;
  if (from == "U32") i.execute = integer_to_float<uint32_t>;
  if (from.empty()) i.execute = integer_to_float<int32_t>;
  if (from == "U64") i.execute = integer_to_float<uint64_t>;
  if (from == "S64") i.execute = integer_to_float<int64_t>;
  if (from == "U64" || from == "S64") i.b = d.read_pair(c.b, WideImmediate::SignExtended);
  return i.execute != nullptr;
}

bool select_round(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  Format format;
  i.imm = static_cast<int64_t>(whole_rounding(c.modifier(78))), i.execute = round_to_whole;
  return format_of(c.modifier(75), format) && c.bits(84, 2) == c.bits(75, 2) && read_real(d, c, i, format);
}

bool select_pack_floats(FunctionDecoder&, const Decoded& c, Instruction& i) {
  i.vector_registers[kFlags] = sign_flags(c), i.variant = c.has("RELU") ? kRelu : 0;
  i.vector_registers[kTo] = static_cast<uint32_t>(c.has("BF16") ? Format::Bf16 : Format::F16);
  i.imm = static_cast<int64_t>(rounding_of(c.modifier(79))), i.execute = pack_floats;
  return true;
}

}  // namespace vgpu::sm80
