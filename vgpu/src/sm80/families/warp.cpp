// Exchange between the lanes of a warp.  These instructions have no mask: the active lanes take part, which code has made
// converge before.
#include "operands.h"
#include "select.h"

namespace vgpu::sm80 {
namespace {

enum class Shuffle : uint8_t { Index, Up, Down, Butterfly };

struct ShuffleSource {
  uint32_t lane;
  bool fits;
};

// The lane that `lane` takes its value from; clamp and segment are in one word, as in PTX.
ShuffleSource shuffle_source(Shuffle mode, uint32_t lane, uint32_t distance, uint32_t bounds) {
  const int32_t n = static_cast<int32_t>(distance & 31), own = static_cast<int32_t>(lane);
  const uint32_t clamp = bounds & 31, segment = bounds >> 8 & 31;
  const int32_t last = static_cast<int32_t>((lane & segment) | (clamp & ~segment));
  int32_t source = 0;
  switch (mode) {
    case Shuffle::Index: source = static_cast<int32_t>((lane & segment) | (static_cast<uint32_t>(n) & ~segment)); break;
    case Shuffle::Up: source = own - n; break;
    case Shuffle::Down: source = own + n; break;
    case Shuffle::Butterfly: source = own ^ n; break;
  }
  const bool fits = mode == Shuffle::Up ? source >= last : source <= last;
  return {static_cast<uint32_t>(fits ? source : own) & 31, fits};
}

// a: the value; b: the lane or the distance; c: the bounds.
void shuffle(WarpContext& warp, const Instruction& i) {
  const uint32_t *value = lane_words(warp, i.a), *distance = lane_words(warp, i.b), *bounds = lane_words(warp, i.c);
  uint32_t result[kWarpSize], inside = 0;
  ShuffleSources sources;
  for_each_lane(warp.active_mask, [&](uint32_t l) {
    const ShuffleSource source = shuffle_source(static_cast<Shuffle>(i.variant), l, distance[l], bounds[l]);
    sources.lane[l] = static_cast<uint8_t>(source.lane);
    result[l] = warp.active_mask >> source.lane & 1 ? value[source.lane] : unspecified_value(warp, l, value[l]);
    inside |= uint32_t(source.fits) << l;
    // Unspecified: the source lane is inactive, or is active only in some schedules.
    sources.unspecified |= (~(warp.active_mask & warp.convergence->converged[l]) >> source.lane & 1) << l;
  });
  notify_shuffle(warp, i, sources);
  for_each_lane(warp.active_mask, [&, d = lane_words(warp, i.d)](uint32_t l) { d[l] = result[l]; });
  write_predicate(warp, i.vector_registers[kFirstWritten], inside);
}

enum class Vote : uint8_t { All, Any, Equal };

void vote(WarpContext& warp, const Instruction& i) {
  check_convergence(warp, i);
  const uint32_t votes = read_predicate(warp, i.e) & warp.active_mask;
  const Vote mode = static_cast<Vote>(i.variant);
  const bool all = votes == warp.active_mask, holds = mode == Vote::All   ? all
                                                      : mode == Vote::Any ? votes != 0
                                                                          : all || votes == 0;
  write_lane_words(warp, i.d, [=](uint32_t) { return votes; });
  write_predicate(warp, i.vector_registers[kFirstWritten], holds ? kFullMask : 0);
}

template <class T, class F> void reduce(WarpContext& warp, const Instruction& i, F f) {
  const uint32_t* values = lane_words(warp, i.a);
  T reduced = static_cast<T>(values[__builtin_ctz(warp.active_mask)]);
  // One value that all lanes have is the minimum, and, or of any of them, too.
  const bool are_equal =
      !(lanes_where([&](uint32_t l) { return values[l] != static_cast<uint32_t>(reduced); }) & warp.active_mask);
  if (!are_equal || f(reduced, reduced) != reduced) check_convergence(warp, i);
  for (uint32_t remaining = warp.active_mask & (warp.active_mask - 1); remaining; remaining &= remaining - 1)
    reduced = f(reduced, static_cast<T>(values[__builtin_ctz(remaining)]));
  write_lane_words(warp, i.d, [=](uint32_t) { return static_cast<uint32_t>(reduced); });
}
void reduce_and(WarpContext& warp, const Instruction& i) {
  reduce<uint32_t>(warp, i, [](uint32_t a, uint32_t b) { return a & b; });
}
void reduce_or(WarpContext& warp, const Instruction& i) {
  reduce<uint32_t>(warp, i, [](uint32_t a, uint32_t b) { return a | b; });
}
void reduce_xor(WarpContext& warp, const Instruction& i) {
  reduce<uint32_t>(warp, i, [](uint32_t a, uint32_t b) { return a ^ b; });
}
void reduce_sum(WarpContext& warp, const Instruction& i) {
  reduce<uint32_t>(warp, i, [](uint32_t a, uint32_t b) { return a + b; });
}
template <class T> void reduce_min(WarpContext& warp, const Instruction& i) {
  reduce<T>(warp, i, [](T a, T b) { return std::min(a, b); });
}
template <class T> void reduce_max(WarpContext& warp, const Instruction& i) {
  reduce<T>(warp, i, [](T a, T b) { return std::max(a, b); });
}

// Finds the lanes with the same value.  variant 1: match.all.
template <bool kWide> void match(WarpContext& warp, const Instruction& i) {
  check_convergence(warp, i);
  const uint32_t* a = lane_words(warp, i.a);
  const auto value = [=](uint32_t l) { return kWide ? pair_of(a, l) : a[l]; };
  uint32_t same[kWarpSize] = {}, all_equal = 0;
  for_each_lane(warp.active_mask, [&](uint32_t l) {
    for_each_lane(warp.active_mask, [&](uint32_t other) { same[l] |= uint32_t(value(l) == value(other)) << other; });
    all_equal |= uint32_t(same[l] == warp.active_mask) << l;
  });
  const bool all = i.variant != 0;
  write_lane_words(warp, i.d, [&](uint32_t l) { return !all ? same[l] : all_equal >> l & 1 ? warp.active_mask : 0; });
  write_predicate(warp, i.vector_registers[kFirstWritten], all_equal);
}

}  // namespace

bool select_shuffle(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  const uint32_t opcode = c.row->opcode;
  const bool has_distance_register = opcode == 0x389 || opcode == 0x589,
             has_bounds_register = opcode == 0x389 || opcode == 0x989;
  const std::string_view mode = c.modifier(58);
  i.variant = static_cast<uint8_t>(mode == "IDX"    ? Shuffle::Index
                                   : mode == "UP"   ? Shuffle::Up
                                   : mode == "DOWN" ? Shuffle::Down
                                                    : Shuffle::Butterfly);
  i.a = d.read_register(c.bits(24, 8));
  i.b = has_distance_register ? d.read_register(c.bits(32, 8)) : d.constant(c.bits(53, 5));
  i.c = has_bounds_register ? d.read_register(c.bits(64, 8)) : d.constant(c.bits(40, 13));
  return i.execute = shuffle, true;
}

bool select_vote(FunctionDecoder&, const Decoded& c, Instruction& i) {
  const std::string_view mode = c.modifier(72);
  i.variant = static_cast<uint8_t>(mode == "ALL" ? Vote::All : mode == "ANY" ? Vote::Any : Vote::Equal);
  return i.execute = vote, true;
}

bool select_reduce_lanes(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  i.a = d.read_register(c.bits(24, 8));
  const std::string_view operation = c.modifier(78);
  const bool is_signed = c.has("S32");
  if (operation.empty()) i.execute = reduce_and;
  if (operation == "OR") i.execute = reduce_or;
  if (operation == "XOR") i.execute = reduce_xor;
  if (operation == "SUM") i.execute = reduce_sum;
  if (operation == "MIN") i.execute = is_signed ? reduce_min<int32_t> : reduce_min<uint32_t>;
  if (operation == "MAX") i.execute = is_signed ? reduce_max<int32_t> : reduce_max<uint32_t>;
  return i.execute != nullptr;
}

bool select_match(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  i.a = d.read_register(c.bits(24, 8)), i.variant = c.has("ALL");
  i.execute = c.has("U64") ? match<true> : match<false>;
  return true;
}

}  // namespace vgpu::sm80
