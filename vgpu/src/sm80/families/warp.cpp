// What the lanes of a warp tell each other.  These take no mask: they are of the active lanes, which code has brought together
// before.
#include "operands.h"
#include "select.h"

namespace vgpu::sm80 {
namespace {

enum class Shuffle : uint8_t { Index, Up, Down, Butterfly };

struct ShuffleSource {
  uint32_t lane;
  bool fits;
};

// From which lane one takes its value; clamp and segment lie in one word, as in PTX.
ShuffleSource shuffle_source(Shuffle how, uint32_t lane, uint32_t by, uint32_t bounds) {
  const int32_t n = static_cast<int32_t>(by & 31), own = static_cast<int32_t>(lane);
  const uint32_t clamp = bounds & 31, segment = bounds >> 8 & 31;
  const int32_t last = static_cast<int32_t>((lane & segment) | (clamp & ~segment));
  int32_t from = 0;
  switch (how) {
    case Shuffle::Index: from = static_cast<int32_t>((lane & segment) | (static_cast<uint32_t>(n) & ~segment)); break;
    case Shuffle::Up: from = own - n; break;
    case Shuffle::Down: from = own + n; break;
    case Shuffle::Butterfly: from = own ^ n; break;
  }
  const bool fits = how == Shuffle::Up ? from >= last : from <= last;
  return {static_cast<uint32_t>(fits ? from : own) & 31, fits};
}

// a: the value, b: by how much, c: the bounds.
void shuffle(WarpContext& warp, const Instruction& i) {
  const uint32_t *value = words(warp, i.a), *by = words(warp, i.b), *bounds = words(warp, i.c);
  uint32_t made[kWarpSize], inside = 0, lost = 0;
  for_each_lane(warp.active_mask, [&](uint32_t l) {
    const ShuffleSource from = shuffle_source(static_cast<Shuffle>(i.variant), l, by[l], bounds[l]);
    // A lane that takes no part has nothing to tell: what comes from there is unspecified, here the own value.
    made[l] = warp.active_mask >> from.lane & 1 ? value[from.lane] : value[l];
    inside |= uint32_t(from.fits) << l;
    lost |= ~(warp.active_mask & warp.convergence->together[l]) >> from.lane & 1;
  });
  if (lost) tell_source(warp, i, ScheduleSource::InactiveLane);
  for_each_lane(warp.active_mask, [&, d = words(warp, i.d)](uint32_t l) { d[l] = made[l]; });
  write_predicate(warp, i.vector_registers[kFirstWritten], inside);
}

enum class Vote : uint8_t { All, Any, Equal };

void vote(WarpContext& warp, const Instruction& i) {
  check_all_together(warp, i);
  const uint32_t said = read_predicate(warp, i.e) & warp.active_mask;
  const Vote how = static_cast<Vote>(i.variant);
  const bool all = said == warp.active_mask, holds = how == Vote::All ? all : how == Vote::Any ? said != 0 : all || said == 0;
  write_words(warp, i.d, [=](uint32_t) { return said; });
  write_predicate(warp, i.vector_registers[kFirstWritten], holds ? kFullMask : 0);
}

template <class T, class F> void reduce(WarpContext& warp, const Instruction& i, F f) {
  check_all_together(warp, i);
  const uint32_t* from = words(warp, i.a);
  T made = static_cast<T>(from[__builtin_ctz(warp.active_mask)]);
  for (uint32_t left = warp.active_mask & (warp.active_mask - 1); left; left &= left - 1)
    made = f(made, static_cast<T>(from[__builtin_ctz(left)]));
  write_words(warp, i.d, [=](uint32_t) { return static_cast<uint32_t>(made); });
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

// Which lanes have the same value; variant: are all of them asked for?
template <bool kWide> void match(WarpContext& warp, const Instruction& i) {
  check_all_together(warp, i);
  const uint32_t* a = words(warp, i.a);
  const auto value = [=](uint32_t l) { return kWide ? pair_of(a, l) : a[l]; };
  uint32_t same[kWarpSize] = {}, whole = 0;
  for_each_lane(warp.active_mask, [&](uint32_t l) {
    for_each_lane(warp.active_mask, [&](uint32_t other) { same[l] |= uint32_t(value(l) == value(other)) << other; });
    whole |= uint32_t(same[l] == warp.active_mask) << l;
  });
  const bool all = i.variant != 0;
  write_words(warp, i.d, [&](uint32_t l) { return !all ? same[l] : whole >> l & 1 ? warp.active_mask : 0; });
  write_predicate(warp, i.vector_registers[kFirstWritten], whole);
}

}  // namespace

bool select_shuffle(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  const uint32_t opcode = c.row->opcode;
  const bool by_register = opcode == 0x389 || opcode == 0x589, bounds_register = opcode == 0x389 || opcode == 0x989;
  const std::string_view how = c.modifier(58);
  i.variant = static_cast<uint8_t>(how == "IDX"    ? Shuffle::Index
                                   : how == "UP"   ? Shuffle::Up
                                   : how == "DOWN" ? Shuffle::Down
                                                   : Shuffle::Butterfly);
  i.a = d.read_register(c.bits(24, 8));
  i.b = by_register ? d.read_register(c.bits(32, 8)) : d.constant(c.bits(53, 5));
  i.c = bounds_register ? d.read_register(c.bits(64, 8)) : d.constant(c.bits(40, 13));
  return i.execute = shuffle, true;
}

bool select_vote(FunctionDecoder&, const Decoded& c, Instruction& i) {
  const std::string_view how = c.modifier(72);
  i.variant = static_cast<uint8_t>(how == "ALL" ? Vote::All : how == "ANY" ? Vote::Any : Vote::Equal);
  return i.execute = vote, true;
}

bool select_reduce_lanes(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  i.a = d.read_register(c.bits(24, 8));
  const std::string_view how = c.modifier(78);
  const bool is_signed = c.has("S32");
  if (how.empty()) i.execute = reduce_and;
  if (how == "OR") i.execute = reduce_or;
  if (how == "XOR") i.execute = reduce_xor;
  if (how == "SUM") i.execute = reduce_sum;
  if (how == "MIN") i.execute = is_signed ? reduce_min<int32_t> : reduce_min<uint32_t>;
  if (how == "MAX") i.execute = is_signed ? reduce_max<int32_t> : reduce_max<uint32_t>;
  return i.execute != nullptr;
}

bool select_match(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  i.a = d.read_register(c.bits(24, 8)), i.variant = c.has("ALL");
  i.execute = c.has("U64") ? match<true> : match<false>;
  return true;
}

}  // namespace vgpu::sm80
