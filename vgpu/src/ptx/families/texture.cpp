// Texture fetches and gathers, and queries of texture and surface objects, which handles in registers name.
// CUDA C++ Programming Guide, "Texture Fetching"; positions and filters are computed in double, and rounded once at the end.
#include <cmath>
#include <cstring>

#include "arithmetic/half.h"
#include "core/instruction_set.h"
#include "families.h"
#include "texture.h"

namespace vgpu {
namespace {

// Bits of Instruction::variant: the number of dimensions (a mask), whether there are layers, whether coordinates are integers,
// and whether it gathers.
enum Mode : uint8_t { kDimensions = 3, kLayered = 4, kIntegers = 8, kGathers = 16 };

constexpr int kMaxCorners = 8;
constexpr double kFar = 0x1p40;  // beyond any texture
constexpr double kWeights = 256;  // "9-bit fixed point format with 8 bits of fractional value"

struct Axis {
  uint64_t size;
  AddressMode mode;
  bool normalized;
};

// Applies the address mode to an index; returns -1 for the border.
int64_t texel_index(const Axis& axis, int64_t index) {
  const int64_t n = static_cast<int64_t>(axis.size);
  switch (axis.mode) {
    case AddressMode::Wrap: return (index % n + n) % n;
    case AddressMode::Mirror: index = (index % (2 * n) + 2 * n) % (2 * n); return index < n ? index : 2 * n - 1 - index;
    case AddressMode::Clamp: return index < 0 ? 0 : index < n ? index : n - 1;
    case AddressMode::Border: return index < 0 || index >= n ? -1 : index;
  }
  return -1;
}

// Converts a coordinate to texels; a NaN becomes 0.
double position(const Axis& axis, float x) {
  double result = x;
  if (axis.mode == AddressMode::Wrap) result -= std::floor(result);
  if (axis.mode == AddressMode::Mirror) result -= 2 * std::floor(result / 2);
  if (axis.normalized) result *= static_cast<double>(axis.size);
  if (result != result) return 0;
  return result < -kFar ? -kFar : result > kFar ? kFar : result;
}

// The indices of the two texels of an axis, and the weight of the second one.
struct AxisTexels {
  int64_t first, second;
  double share;
};

AxisTexels axis_texels(const Axis& axis, float x, bool linear) {
  const double center = position(axis, x) - (linear ? 0.5 : 0), lower = std::floor(center);
  const int64_t index = static_cast<int64_t>(lower);
  if (!linear) return {texel_index(axis, index), -1, 0};
  return {texel_index(axis, index), texel_index(axis, index + 1), std::floor((center - lower) * kWeights + 0.5) / kWeights};
}

// The texels that one lane reads (nullptr: the border), at most 8, with their weights.
struct Footprint {
  const uint8_t* at[kMaxCorners];
  double weight[kMaxCorners];
  int count;
};

class Fetch {
 public:
  Fetch(WarpContext& warp, const Instruction& i, const Texture& texture) : warp_(warp), instruction_(i), texture_(texture) {
    linear_ = (texture.linear && !(i.variant & kIntegers)) || i.variant & kGathers;
  }

  Footprint footprint(uint32_t lane) const {
    const uint64_t sizes[3] = {texture_.texels.width, texture_.texels.height, texture_.texels.depth};
    const uint32_t registers[3] = {instruction_.b, instruction_.c, instruction_.d};
    AxisTexels axes[3] = {{0, 0, 0}, {0, 0, 0}, {0, 0, 0}};
    for (int k = 0; k < (instruction_.variant & kDimensions); k++)
      axes[k] = axis_texels_of({sizes[k], mode(k), normalized()}, registers[k], lane);
    return corners(axes, layer(lane));
  }

 private:
  bool normalized() const { return texture_.normalized && !(instruction_.variant & kIntegers); }
  // Wrap and Mirror require normalized coordinates.
  AddressMode mode(int k) const {
    if (texture_.is_zero_outside) return AddressMode::Border;  // one-dimensional linear memory: zero outside
    const bool folds = texture_.address[k] == AddressMode::Wrap || texture_.address[k] == AddressMode::Mirror;
    return folds && !normalized() ? AddressMode::Clamp : texture_.address[k];
  }
  AxisTexels axis_texels_of(const Axis& axis, uint32_t register_offset, uint32_t lane) const {
    if (instruction_.variant & kIntegers) return {texel_index(axis, lane_values<int32_t>(warp_, register_offset)[lane]), -1, 0};
    return axis_texels(axis, lane_values<float>(warp_, register_offset)[lane], linear_);
  }
  uint64_t layer(uint32_t lane) const {
    if (!(instruction_.variant & kLayered)) return 0;
    return std::min<uint64_t>(lane_values<uint32_t>(warp_, instruction_.e)[lane], texture_.texels.layers - 1);
  }
  Footprint corners(const AxisTexels axes[3], uint64_t layer) const {
    Footprint result = {};
    result.count = linear_ ? 1 << (instruction_.variant & kDimensions) : 1;
    for (int k = 0; k < result.count; k++) {
      int64_t index[3];
      result.weight[k] = 1;
      for (int axis = 0; axis < 3; axis++) {
        const bool second = k >> axis & 1;
        index[axis] = second ? axes[axis].second : axes[axis].first;
        result.weight[k] *= second ? axes[axis].share : 1 - axes[axis].share;
      }
      result.at[k] = texel(index, layer);
    }
    return result;
  }
  const uint8_t* texel(const int64_t index[3], uint64_t layer) const {
    if (index[0] < 0 || index[1] < 0 || index[2] < 0) return nullptr;
    const Texels& texels = texture_.texels;
    return reinterpret_cast<const uint8_t*>(texels.at) + (static_cast<uint64_t>(index[2]) + layer) * texels.slice +
           static_cast<uint64_t>(index[1]) * texels.pitch + static_cast<uint64_t>(index[0]) * texels.texel_bytes();
  }

  WarpContext& warp_;
  const Instruction& instruction_;
  const Texture& texture_;
  bool linear_;
};

template <class T> T load_value(const uint8_t* address) {
  T value;
  std::memcpy(&value, address, sizeof value);
  return value;
}

int64_t load_integer(Format format, const uint8_t* address) {
  switch (format) {
    case Format::U8: return *address;
    case Format::S8: return load_value<int8_t>(address);
    case Format::U16: return load_value<uint16_t>(address);
    case Format::S16: return load_value<int16_t>(address);
    case Format::U32: return load_value<uint32_t>(address);
    default: return load_value<int32_t>(address);
  }
}

// reads_integers_as_floats: integers of 8 and 16 bits are read as floats in [0, 1] or [-1, 1].
bool is_real(const Texture& t) { return t.reads_integers_as_floats || is_float(t.texels.format); }

// Returns the value of one channel.
double channel_value(const Texture& t, uint32_t channel, const uint8_t* texel) {
  if (!texel) return t.border[channel];
  if (channel >= t.texels.channels) return channel == 3;  // missing channels are 0, the last one is 1
  const Format format = t.texels.format;
  const uint8_t* address = texel + channel * bytes_of(format);
  if (format == Format::Float) return load_value<float>(address);
  if (format == Format::Half) return half_to_float(load_value<uint16_t>(address));
  const double value = static_cast<double>(load_integer(format, address));
  if (!t.reads_integers_as_floats) return value;
  const bool is_signed = format == Format::S8 || format == Format::S16;
  const double max_value = static_cast<double>((1u << (8 * bytes_of(format) - is_signed)) - 1);
  return std::max(-1.0, value / max_value);
}

// Returns one channel as the bits of the result register.
uint32_t channel_bits(const Texture& t, uint32_t channel, const uint8_t* texel) {
  if (texel && channel < t.texels.channels && t.texels.format == Format::Float)
    return load_value<uint32_t>(texel + 4 * channel);
  const double value = channel_value(t, channel, texel);
  return is_real(t) ? bit_cast<uint32_t>(static_cast<float>(value)) : static_cast<uint32_t>(static_cast<int64_t>(value));
}

uint32_t filter_texels(const Texture& t, uint32_t channel, const Footprint& footprint) {
  if (footprint.count == 1) return channel_bits(t, channel, footprint.at[0]);
  double sum = 0;
  for (int k = 0; k < footprint.count; k++)
    sum += footprint.weight[k] * static_cast<float>(channel_value(t, channel, footprint.at[k]));
  return bit_cast<uint32_t>(static_cast<float>(sum));
}

// Notifies the observer of the reads of all lanes' first texels, then of their second ones, and so on.
void notify_reads(WarpContext& warp, const Instruction& i, const Texture& t, const Footprint* footprints) {
  for (int k = 0; k < kMaxCorners; k++) {
    uint8_t* addresses[kWarpSize];
    uint8_t lanes[kWarpSize];
    uint32_t count = 0;
    for (uint8_t l = 0; l < kWarpSize; l++)
      if (warp.active_mask >> l & 1 && k < footprints[l].count && footprints[l].at[k])
        addresses[l] = const_cast<uint8_t*>(footprints[l].at[k]), lanes[count++] = l;
    if (count)
      warp.observer->on_access(
          warp, i, {AccessKind::Read, kWeak, OrderSensitivity::Nothing, t.texels.texel_bytes(), addresses, lanes, count});
  }
}

// The order in which a gather returns the corners of a footprint.
constexpr int kGathered[4] = {2, 3, 1, 0};

void fetch_with(WarpContext& warp, const Instruction& i, uint32_t lanes, const Texture& t) {
  const Fetch fetch(warp, i, t);
  Footprint footprints[kWarpSize];
  for_each_lane(lanes, [&](uint32_t l) { footprints[l] = fetch.footprint(l); });
  const uint32_t active = warp.active_mask;
  warp.active_mask = lanes;
  if (warp.observer) notify_reads(warp, i, t, footprints);
  warp.active_mask = active;
  for (uint32_t k = 0; k < 4; k++) {
    uint32_t* d = lane_values<uint32_t>(warp, i.vector_registers[k]);
    for_each_lane(lanes, [&](uint32_t l) {
      d[l] = i.variant & kGathers ? channel_bits(t, static_cast<uint32_t>(i.imm), footprints[l].at[kGathered[k]])
                                  : filter_texels(t, k, footprints[l]);
    });
  }
}

void fetch(WarpContext& warp, const Instruction& i) { for_each_object<Texture>(warp, i, fetch_with); }

enum Query : uint8_t { kWidth, kHeight, kDepth, kLayers, kLevels, kNormalized };

uint32_t query_value(const Texels& texels, uint8_t query) {
  switch (query) {
    case kWidth: return static_cast<uint32_t>(texels.width);
    case kHeight: return static_cast<uint32_t>(texels.height);
    case kDepth: return static_cast<uint32_t>(texels.depth);
    case kLayers: return static_cast<uint32_t>(texels.layers);
    default: return 1;
  }
}

void query_texture(WarpContext& warp, const Instruction& i) {
  for_each_object<Texture>(warp, i, [](WarpContext& context, const Instruction& instruction, uint32_t lanes, const Texture& t) {
    const uint32_t value = instruction.variant == kNormalized ? t.normalized : query_value(t.texels, instruction.variant);
    for_each_lane(lanes, [&](uint32_t l) { lane_values<uint32_t>(context, instruction.d)[l] = value; });
  });
}
void query_surface(WarpContext& warp, const Instruction& i) {
  for_each_object<Surface>(warp, i, [](WarpContext& context, const Instruction& instruction, uint32_t lanes, const Surface& s) {
    for_each_lane(lanes, [&](uint32_t l) {
      lane_values<uint32_t>(context, instruction.d)[l] = query_value(s.texels, instruction.variant);
    });
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

// Sets the predicate p of `d|p`, which is true unless texels of a sparse array are missing.
void set_true(WarpContext& warp, const Instruction& i) { write_predicate(warp, i.d, kFullMask); }

const Operand& result_operands(Decoder& d, const Operand& o, const Instruction& i) {
  const bool has_predicate = o.kind == Operand::Vector && o.parts.size() == 2 && o.parts[0].kind == Operand::Vector;
  if (!has_predicate) return o;
  Instruction set_predicate_instruction = i;
  set_predicate_instruction.d = d.predicate_result(o.parts[1]), set_predicate_instruction.execute = set_true;
  d.emit(set_predicate_instruction);
  return o.parts[0];
}

}  // namespace

void decode_object(Decoder& d, const Statement& s, const Operand& o, Instruction& i) {
  if (o.kind != Operand::Address || o.offset) d.reject(s, "an object that is none");
  if (d.symbol(std::string(o.text))) d.reject(s, "a texture or surface reference (only objects by a handle are there)");
  Operand handle = o;
  handle.kind = Operand::Register, handle.parts.clear();
  i.a = d.source(handle, "b64");
}

uint8_t decode_coordinates(Decoder& d, const Statement& s, const Operand& o, std::string_view type, Instruction& i) {
  if (o.parts.size() != 1) d.reject(s, "coordinates and a sampler, or none");
  const Operand& first = o.parts[0];
  const std::vector<Operand> single = {first};
  const std::vector<Operand>& coordinates = first.kind == Operand::Vector ? first.parts : single;
  const bool is_layered = s.has("a1d") || s.has("a2d");
  const size_t dimensions = s.has("1d") || s.has("a1d") ? 1 : s.has("3d") ? 3 : 2;
  const size_t expected = dimensions + is_layered;
  if (coordinates.size() != (expected == 3 ? 4 : expected)) d.reject(s, "coordinates of another geometry");
  if (is_layered) i.e = d.source(coordinates[0], "u32");
  uint32_t* const registers[] = {&i.b, &i.c, &i.d};
  for (size_t k = 0; k < dimensions; k++) *registers[k] = d.source(coordinates[k + is_layered], type);
  return static_cast<uint8_t>(dimensions | (is_layered ? kLayered : 0));
}

bool decode_texture(Decoder& d, const Statement& s, Instruction& i) {
  if (s.op == "txq" || s.op == "suq") return decode_query(d, s, i);
  const Operand& results = result_operands(d, s.operands[0], i);
  if (results.kind != Operand::Vector || results.parts.size() != 4) return false;
  decode_object(d, s, s.operands[1], i);
  i.variant = decode_coordinates(d, s, s.operands[1], s.type(), i);
  if (s.type() == "s32") i.variant |= kIntegers;
  if (s.op == "tld4") i.variant |= kGathers, i.imm = s.has("r") ? 0 : s.has("g") ? 1 : s.has("b") ? 2 : 3;
  for (size_t k = 0; k < 4; k++) i.vector_registers[k] = d.result(results.parts[k], s.type(1), true);
  i.execute = fetch;
  return d.emit(i), true;
}

}  // namespace vgpu
