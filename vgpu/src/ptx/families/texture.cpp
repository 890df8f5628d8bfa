// Texture fetches and gathers, and queries of texture and surface objects: of objects that a handle in a register names.
// CUDA C++ Programming Guide, "Texture Fetching"; positions and filters are computed in double, and rounded once at the end.
#include <cmath>
#include <cstring>

#include "arithmetic/half.h"
#include "core/instruction_set.h"
#include "families.h"
#include "texture.h"

namespace vgpu {
namespace {

enum Mode : uint8_t { kDimensions = 3, kLayered = 4, kIntegers = 8, kGathers = 16 };

constexpr int kMaxCorners = 8;
constexpr double kFar = 0x1p40;  // beyond any texture
constexpr double kWeights = 256;  // "9-bit fixed point format with 8 bits of fractional value"

struct Axis {
  uint64_t size;
  AddressMode mode;
  bool normalized;
};

// The texel of this index, or one behind an end: -1 for the border.
int64_t addressed(const Axis& axis, int64_t index) {
  const int64_t n = static_cast<int64_t>(axis.size);
  switch (axis.mode) {
    case AddressMode::Wrap: return (index % n + n) % n;
    case AddressMode::Mirror: index = (index % (2 * n) + 2 * n) % (2 * n); return index < n ? index : 2 * n - 1 - index;
    case AddressMode::Clamp: return index < 0 ? 0 : index < n ? index : n - 1;
    case AddressMode::Border: return index < 0 || index >= n ? -1 : index;
  }
  return -1;
}

// Where a coordinate lies, in texels.  What is no number lies at 0.
double position(const Axis& axis, float x) {
  double at = x;
  if (axis.mode == AddressMode::Wrap) at -= std::floor(at);
  if (axis.mode == AddressMode::Mirror) at -= 2 * std::floor(at / 2);
  if (axis.normalized) at *= static_cast<double>(axis.size);
  if (at != at) return 0;
  return at < -kFar ? -kFar : at > kFar ? kFar : at;
}

// The two texels of an axis, and the second one's share.
struct Between {
  int64_t first, second;
  double share;
};

Between between(const Axis& axis, float x, bool linear) {
  const double at = position(axis, x) - (linear ? 0.5 : 0), whole = std::floor(at);
  const int64_t index = static_cast<int64_t>(whole);
  if (!linear) return {addressed(axis, index), -1, 0};
  return {addressed(axis, index), addressed(axis, index + 1), std::floor((at - whole) * kWeights + 0.5) / kWeights};
}

// What one lane reads: up to 8 texels (nullptr: the border), each with its weight.
struct Footprint {
  const uint8_t* at[kMaxCorners];
  double weight[kMaxCorners];
  int count;
};

class Fetch {
 public:
  Fetch(WarpContext& warp, const Instruction& i, const Texture& t) : w_(warp), i_(i), t_(t) {
    linear_ = (t.linear && !(i.variant & kIntegers)) || i.variant & kGathers;
  }

  Footprint footprint(uint32_t lane) const {
    const uint64_t sizes[3] = {t_.texels.width, t_.texels.height, t_.texels.depth};
    const uint32_t registers[3] = {i_.b, i_.c, i_.d};
    Between axes[3] = {{0, 0, 0}, {0, 0, 0}, {0, 0, 0}};
    for (int k = 0; k < (i_.variant & kDimensions); k++) axes[k] = along({sizes[k], mode(k), normalized()}, registers[k], lane);
    return corners(axes, layer(lane));
  }

 private:
  bool normalized() const { return t_.normalized && !(i_.variant & kIntegers); }
  // The others are of normalized coordinates alone.
  AddressMode mode(int k) const {
    if (t_.fetched) return AddressMode::Border;
    const bool folds = t_.address[k] == AddressMode::Wrap || t_.address[k] == AddressMode::Mirror;
    return folds && !normalized() ? AddressMode::Clamp : t_.address[k];
  }
  Between along(const Axis& axis, uint32_t from, uint32_t lane) const {
    if (i_.variant & kIntegers) return {addressed(axis, lane_values<int32_t>(w_, from)[lane]), -1, 0};
    return between(axis, lane_values<float>(w_, from)[lane], linear_);
  }
  uint64_t layer(uint32_t lane) const {
    if (!(i_.variant & kLayered)) return 0;
    return std::min<uint64_t>(lane_values<uint32_t>(w_, i_.e)[lane], t_.texels.layers - 1);
  }
  Footprint corners(const Between axes[3], uint64_t layer) const {
    Footprint made = {};
    made.count = linear_ ? 1 << (i_.variant & kDimensions) : 1;
    for (int k = 0; k < made.count; k++) {
      int64_t index[3];
      made.weight[k] = 1;
      for (int axis = 0; axis < 3; axis++) {
        const bool second = k >> axis & 1;
        index[axis] = second ? axes[axis].second : axes[axis].first;
        made.weight[k] *= second ? axes[axis].share : 1 - axes[axis].share;
      }
      made.at[k] = texel(index, layer);
    }
    return made;
  }
  const uint8_t* texel(const int64_t index[3], uint64_t layer) const {
    if (index[0] < 0 || index[1] < 0 || index[2] < 0) return nullptr;
    const Texels& of = t_.texels;
    return reinterpret_cast<const uint8_t*>(of.at) + (static_cast<uint64_t>(index[2]) + layer) * of.slice +
           static_cast<uint64_t>(index[1]) * of.pitch + static_cast<uint64_t>(index[0]) * of.texel_bytes();
  }

  WarpContext& w_;
  const Instruction& i_;
  const Texture& t_;
  bool linear_;
};

template <class T> T at(const uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

int64_t integer(Format format, const uint8_t* from) {
  switch (format) {
    case Format::U8: return *from;
    case Format::S8: return at<int8_t>(from);
    case Format::U16: return at<uint16_t>(from);
    case Format::S16: return at<int16_t>(from);
    case Format::U32: return at<uint32_t>(from);
    default: return at<int32_t>(from);
  }
}

bool real(const Texture& t) { return t.promoted || is_float(t.texels.format); }

// One channel, as a number: of an integer that is not promoted the integer.
double number(const Texture& t, uint32_t channel, const uint8_t* texel) {
  if (!texel) return t.border[channel];
  if (channel >= t.texels.channels) return channel == 3;  // what a texel does not have: 0, and 1 for the last
  const Format format = t.texels.format;
  const uint8_t* from = texel + channel * bytes_of(format);
  if (format == Format::Float) return at<float>(from);
  if (format == Format::Half) return half_to_float(at<uint16_t>(from));
  const double value = static_cast<double>(integer(format, from));
  if (!t.promoted) return value;
  const bool is_signed = format == Format::S8 || format == Format::S16;
  const double most = static_cast<double>((1u << (8 * bytes_of(format) - is_signed)) - 1);
  return std::max(-1.0, value / most);
}

// As a register gets it.
uint32_t bits(const Texture& t, uint32_t channel, const uint8_t* texel) {
  if (texel && channel < t.texels.channels && t.texels.format == Format::Float) return at<uint32_t>(texel + 4 * channel);
  const double value = number(t, channel, texel);
  return real(t) ? bit_cast<uint32_t>(static_cast<float>(value)) : static_cast<uint32_t>(static_cast<int64_t>(value));
}

uint32_t filtered(const Texture& t, uint32_t channel, const Footprint& of) {
  if (of.count == 1) return bits(t, channel, of.at[0]);
  double sum = 0;
  for (int k = 0; k < of.count; k++) sum += of.weight[k] * static_cast<float>(number(t, channel, of.at[k]));
  return bit_cast<uint32_t>(static_cast<float>(sum));
}

// Reads are told texel by texel: the lanes' first ones, their second ones, ...
void tell(WarpContext& warp, const Instruction& i, const Texture& t, const Footprint* of) {
  for (int k = 0; k < kMaxCorners; k++) {
    uint8_t* at[kWarpSize];
    uint8_t lanes[kWarpSize];
    uint32_t count = 0;
    for (uint8_t l = 0; l < kWarpSize; l++)
      if (warp.active_mask >> l & 1 && k < of[l].count && of[l].at[k])
        at[l] = const_cast<uint8_t*>(of[l].at[k]), lanes[count++] = l;
    if (count)
      warp.observer->on_access(warp, i,
                               {AccessKind::Read, kWeak, OrderSensitivity::Nothing, t.texels.texel_bytes(), at, lanes, count});
  }
}

// The corners of a footprint, as a gather names them: those of the second row from the first on, then back.
constexpr int kGathered[4] = {2, 3, 1, 0};

void fetch_with(WarpContext& warp, const Instruction& i, uint32_t lanes, const Texture& t) {
  const Fetch fetch(warp, i, t);
  Footprint all[kWarpSize];
  for_each_lane(lanes, [&](uint32_t l) { all[l] = fetch.footprint(l); });
  const uint32_t before = warp.active_mask;
  warp.active_mask = lanes;
  if (warp.observer) tell(warp, i, t, all);
  warp.active_mask = before;
  for (uint32_t k = 0; k < 4; k++) {
    uint32_t* d = lane_values<uint32_t>(warp, i.vector_registers[k]);
    for_each_lane(lanes, [&](uint32_t l) {
      d[l] = i.variant & kGathers ? bits(t, static_cast<uint32_t>(i.imm), all[l].at[kGathered[k]]) : filtered(t, k, all[l]);
    });
  }
}

void fetch(WarpContext& warp, const Instruction& i) { by_object<Texture>(warp, i, fetch_with); }

enum Query : uint8_t { kWidth, kHeight, kDepth, kLayers, kLevels, kNormalized };

uint32_t answer(const Texels& of, uint8_t query) {
  switch (query) {
    case kWidth: return static_cast<uint32_t>(of.width);
    case kHeight: return static_cast<uint32_t>(of.height);
    case kDepth: return static_cast<uint32_t>(of.depth);
    case kLayers: return static_cast<uint32_t>(of.layers);
    default: return 1;
  }
}

void query_texture(WarpContext& warp, const Instruction& i) {
  by_object<Texture>(warp, i, [](WarpContext& held, const Instruction& one, uint32_t lanes, const Texture& t) {
    const uint32_t value = one.variant == kNormalized ? t.normalized : answer(t.texels, one.variant);
    for_each_lane(lanes, [&](uint32_t l) { lane_values<uint32_t>(held, one.d)[l] = value; });
  });
}
void query_surface(WarpContext& warp, const Instruction& i) {
  by_object<Surface>(warp, i, [](WarpContext& held, const Instruction& one, uint32_t lanes, const Surface& s) {
    for_each_lane(lanes, [&](uint32_t l) { lane_values<uint32_t>(held, one.d)[l] = answer(s.texels, one.variant); });
  });
}

uint8_t query_of(const Statement& s) {
  if (s.has("width")) return kWidth;
  if (s.has("height")) return kHeight;
  if (s.has("depth")) return kDepth;
  if (s.has("array_size")) return kLayers;
  return s.has("num_mipmap_levels") ? kLevels : kNormalized;
}

bool decode_query(Decoder& d, const Statement& s, Instruction& i) {
  if (!s.operands[1].parts.empty()) return false;
  decode_object(d, s, s.operands[1], i);
  i.d = d.result(s.operands[0], "b32");
  i.variant = query_of(s);
  i.execute = s.op == "txq" ? query_texture : query_surface;
  return d.emit(i), true;
}

// `d|p`: p says whether the texels are there, and none of an array that is not sparse is missing.
void all_there(WarpContext& warp, const Instruction& i) { write_predicate(warp, i.d, kFullMask); }

const Operand& values(Decoder& d, const Operand& o, const Instruction& i) {
  const bool both = o.kind == Operand::Vector && o.parts.size() == 2 && o.parts[0].kind == Operand::Vector;
  if (!both) return o;
  Instruction there = i;
  there.d = d.predicate_result(o.parts[1]), there.execute = all_there;
  d.emit(there);
  return o.parts[0];
}

}  // namespace

void decode_object(Decoder& d, const Statement& s, const Operand& o, Instruction& i) {
  if (o.kind != Operand::Address || o.offset) d.reject(s, "an object that is none");
  if (d.symbol(std::string(o.text))) d.reject(s, "a texture or surface reference (only objects by a handle are there)");
  Operand handle = o;
  handle.kind = Operand::Register, handle.parts.clear();
  i.a = d.exact_operand(handle, "b64");
}

uint8_t decode_place(Decoder& d, const Statement& s, const Operand& o, std::string_view type, Instruction& i) {
  if (o.parts.size() != 1) d.reject(s, "coordinates and a sampler, or none");
  const Operand& first = o.parts[0];
  const std::vector<Operand> one = {first};
  const std::vector<Operand>& given = first.kind == Operand::Vector ? first.parts : one;
  const bool layered = s.has("a1d") || s.has("a2d");
  const size_t dimensions = s.has("1d") || s.has("a1d") ? 1 : s.has("3d") ? 3 : 2;
  const size_t wanted = dimensions + layered;
  if (given.size() != (wanted == 3 ? 4 : wanted)) d.reject(s, "coordinates of another geometry");
  if (layered) i.e = d.exact_operand(given[0], "u32");
  uint32_t* const to[] = {&i.b, &i.c, &i.d};
  for (size_t k = 0; k < dimensions; k++) *to[k] = d.exact_operand(given[k + layered], type);
  return static_cast<uint8_t>(dimensions | (layered ? kLayered : 0));
}

bool decode_texture(Decoder& d, const Statement& s, Instruction& i) {
  if (s.op == "txq" || s.op == "suq") return decode_query(d, s, i);
  const Operand& held = values(d, s.operands[0], i);
  if (held.kind != Operand::Vector || held.parts.size() != 4) return false;
  decode_object(d, s, s.operands[1], i);
  i.variant = decode_place(d, s, s.operands[1], s.type(), i);
  if (s.type() == "s32") i.variant |= kIntegers;
  if (s.op == "tld4") i.variant |= kGathers, i.imm = s.has("r") ? 0 : s.has("g") ? 1 : s.has("b") ? 2 : 3;
  for (size_t k = 0; k < 4; k++) i.vector_registers[k] = d.result(held.parts[k], s.type(1), true);
  i.execute = fetch;
  return d.emit(i), true;
}

}  // namespace vgpu
