// Exchange between the lanes of a warp: shfl, vote, match, redux, activemask and elect.  Those with a mask run once all lanes
// in it have arrived.
#include <algorithm>

#include "families.h"
#include "types.h"

namespace vgpu {
namespace {

enum Shuffle : uint8_t { kUp, kDown, kButterfly, kIndex };

// a: the value; c: the lane or the distance; e: clamp and segment; vector_registers[0], if count is 2: the predicate result.
void shfl(WarpContext& warp, const Instruction& i) {
  uint32_t *d = lane_values<uint32_t>(warp, i.d), *distance = lane_values<uint32_t>(warp, i.c),
           *clamp = lane_values<uint32_t>(warp, i.e);
  uint32_t value[kWarpSize], inside = 0;
  ShuffleSources sources;
  std::copy_n(lane_values<uint32_t>(warp, i.a), kWarpSize, value);
  for_each_lane(warp.active_mask, [&](uint32_t l) {
    uint32_t n = distance[l] & 31, bound = clamp[l] & 31, segment = clamp[l] >> 8 & 31;
    uint32_t last = (l & segment) | (bound & ~segment), first = l & segment;
    int32_t source;
    bool is_inside;
    switch (i.variant) {
      case kUp: source = int32_t(l) - int32_t(n), is_inside = source >= int32_t(last); break;
      case kDown: source = int32_t(l + n), is_inside = source <= int32_t(last); break;
      case kButterfly: source = int32_t(l ^ n), is_inside = source <= int32_t(last); break;
      default: source = int32_t(first | (n & ~segment)), is_inside = source <= int32_t(last); break;
    }
    if (!is_inside) source = int32_t(l);
    inside |= uint32_t(is_inside) << l, sources.lane[l] = static_cast<uint8_t>(source & 31);
    sources.unspecified |= (~warp.active_mask >> (source & 31) & 1) << l;
    d[l] = warp.active_mask >> (source & 31) & 1 ? value[source & 31] : unspecified_value(warp, l, value[l]);
  });
  if (i.count == 2) write_predicate(warp, i.vector_registers[0], inside);
  notify_shuffle(warp, i, sources);
}

enum Vote : uint8_t { kAll, kAny, kUniform, kBallot };
void vote(WarpContext& warp, const Instruction& i) {
  uint32_t votes = predicate(warp, i.a) & warp.active_mask;
  if (i.variant == kBallot) {
    uint32_t* d = lane_values<uint32_t>(warp, i.d);
    for_each_lane(warp.active_mask, [=](uint32_t l) { d[l] = votes; });
    return;
  }
  bool holds = i.variant == kAll   ? votes == warp.active_mask
               : i.variant == kAny ? votes != 0
                                   : votes == 0 || votes == warp.active_mask;
  uint32_t& d = predicate(warp, i.d);
  d = holds ? d | warp.active_mask : d & ~warp.active_mask;
}

// variant 1: match.all; vector_registers[0], if count is 2: the predicate result.
template <class T> void match(WarpContext& warp, const Instruction& i) {
  const T* a = lane_values<T>(warp, i.a);
  uint32_t* d = lane_values<uint32_t>(warp, i.d);
  uint32_t same[kWarpSize], all_equal = 0;
  for_each_lane(warp.active_mask, [&](uint32_t l) {
    same[l] = 0;
    for_each_lane(warp.active_mask, [&](uint32_t other) { same[l] |= uint32_t(a[l] == a[other]) << other; });
    all_equal |= uint32_t(same[l] == warp.active_mask) << l;
  });
  for_each_lane(warp.active_mask, [&](uint32_t l) {
    d[l] = !i.variant ? same[l] : same[l] == warp.active_mask ? warp.active_mask : 0;
  });
  if (i.count == 2) write_predicate(warp, i.vector_registers[0], all_equal);
}

void activemask(WarpContext& warp, const Instruction& i) {
  uint32_t* d = lane_values<uint32_t>(warp, i.d);
  for_each_lane(warp.active_mask, [&](uint32_t l) { d[l] = warp.active_mask; });
}

// Elects the lowest lane.  vector_registers[0]: the predicate, which is true for that lane only.
void elect(WarpContext& warp, const Instruction& i) {
  uint32_t *d = lane_values<uint32_t>(warp, i.d), first = static_cast<uint32_t>(__builtin_ctz(warp.active_mask));
  for_each_lane(warp.active_mask, [=](uint32_t l) { d[l] = first; });
  write_predicate(warp, i.vector_registers[0], 1u << first);
}

struct Add {
  static uint32_t of(uint32_t a, uint32_t b) { return a + b; }
};
struct And {
  static uint32_t of(uint32_t a, uint32_t b) { return a & b; }
};
struct Or {
  static uint32_t of(uint32_t a, uint32_t b) { return a | b; }
};
struct Xor {
  static uint32_t of(uint32_t a, uint32_t b) { return a ^ b; }
};
struct Min {
  template <class T> static T of(T a, T b) { return std::min(a, b); }
};
struct Max {
  template <class T> static T of(T a, T b) { return std::max(a, b); }
};
template <class T, class Op> void redux(WarpContext& warp, const Instruction& i) {
  T *d = lane_values<T>(warp, i.d), *a = lane_values<T>(warp, i.a);
  T reduced = a[__builtin_ctz(warp.active_mask)];
  for (uint32_t remaining = warp.active_mask & (warp.active_mask - 1); remaining; remaining &= remaining - 1)
    reduced = Op::of(reduced, a[__builtin_ctz(remaining)]);
  for_each_lane(warp.active_mask, [=](uint32_t l) { d[l] = reduced; });
}
Execute reduction(const Statement& s) {
  bool is_signed = s.type() == "s32";
  if (s.has("add")) return redux<uint32_t, Add>;
  if (s.has("and")) return redux<uint32_t, And>;
  if (s.has("or")) return redux<uint32_t, Or>;
  if (s.has("xor")) return redux<uint32_t, Xor>;
  if (s.has("min")) return is_signed ? redux<int32_t, Min> : redux<uint32_t, Min>;
  return s.has("max") ? (is_signed ? redux<int32_t, Max> : redux<uint32_t, Max>) : nullptr;
}

// Decodes the result operand, `d|p` or `d`.  allow_sink: whether `_` may stand for d.
void decode_result(Decoder& d, const Operand& o, bool allow_sink, Instruction& i) {
  bool has_predicate = o.kind == Operand::Vector;
  i.d = d.result(has_predicate ? o.parts.at(0) : o, "b32", allow_sink && has_predicate);
  if (has_predicate) i.vector_registers[0] = d.predicate_result(o.parts.at(1), true), i.count = 2;
}

bool decode_shuffle(Decoder& d, const Statement& s, Instruction& i) {
  std::string_view mode = s.qualifier_of("up|down|bfly|idx");
  if (!s.allows_only({"sync", "up|down|bfly|idx"}) || mode.empty() || s.type() != "b32") return false;
  if (s.operands.size() != (s.has("sync") ? 5u : 4u)) return false;
  decode_result(d, s.operands[0], false, i);
  i.a = d.source(s.operands[1], "b32");
  i.c = d.source(s.operands[2], "b32");
  i.e = d.source(s.operands[3], "b32");
  i.variant = mode == "up" ? kUp : mode == "down" ? kDown : mode == "bfly" ? kButterfly : kIndex;
  i.execute = shfl;
  return true;
}

bool decode_activemask(Decoder& d, const Statement& s, Instruction& i) {
  if (!s.allows_only({}) || s.operands.size() != 1) return false;
  i.d = d.result(s.operands.at(0), "b32");
  i.execute = activemask;
  return true;
}

bool decode_vote(Decoder& d, const Statement& s, Instruction& i) {
  std::string_view mode = s.qualifier_of("all|any|uni|ballot");
  if (!s.allows_only({"sync", "all|any|uni|ballot"}) || mode.empty() || s.type() != (mode == "ballot" ? "b32" : "pred"))
    return false;
  if (s.operands.size() != (s.has("sync") ? 3u : 2u)) return false;
  i.variant = s.has("all") ? kAll : s.has("any") ? kAny : s.has("uni") ? kUniform : kBallot;
  i.d = i.variant == kBallot ? d.result(s.operands[0], "b32") : d.predicate_result(s.operands[0]);
  i.a = d.predicate(s.operands[1]);
  i.execute = vote;
  return true;
}

bool decode_match(Decoder& d, const Statement& s, Instruction& i) {
  if (!s.allows_only({"any|all", "sync"}) || s.qualifiers.size() != 3 || s.operands.size() != 3) return false;
  i.variant = s.has("all");
  if (!i.variant && s.operands[0].kind == Operand::Vector) return false;
  decode_result(d, s.operands[0], true, i);
  i.a = d.source(s.operands[1], s.type());
  i.execute = ptx::size_of(s.type()) == 8 ? match<uint64_t> : match<uint32_t>;
  return true;
}

bool decode_elect(Decoder& d, const Statement& s, Instruction& i) {
  if (!s.allows_only({"sync"}, /*types=*/0) || s.operands.size() != 2 || s.operands[0].kind != Operand::Vector) return false;
  decode_result(d, s.operands[0], true, i);
  i.execute = elect;
  return true;
}

bool decode_reduction(Decoder& d, const Statement& s, Instruction& i) {
  i.execute = reduction(s);
  if (!i.execute || !s.allows_only({"sync", "add|min|max|and|or|xor"}) || s.operands.size() != 3) return false;
  i.d = d.result(s.operands[0], s.type());
  i.a = d.source(s.operands[1], s.type());
  return true;
}

// How to decode an instruction.  lanes: the index of the operand with the mask of lanes that take part; 0 if there is none and
// the active lanes take part.
struct Form {
  std::string_view op;
  DecodeFunction decode;
  size_t lanes;
};
constexpr Form kForms[] = {{"shfl", decode_shuffle, 4}, {"activemask", decode_activemask, 0}, {"vote", decode_vote, 2},
                           {"match", decode_match, 2},  {"elect", decode_elect, 1},           {"redux", decode_reduction, 2}};

}  // namespace

bool decode_warp(Decoder& d, const Statement& s, Instruction& i) {
  if ((s.op == "shfl" || s.op == "vote") && !s.has("sync") && d.function().target >= 70 && d.function().version >= 64)
    d.reject(s, "no .sync, which PTX 6.4 and newer want on sm_70 and newer");
  for (const Form& form : kForms) {
    if (form.op != s.op) continue;
    if (!form.decode(d, s, i)) return false;
    if (form.lanes && form.lanes < s.operands.size()) {
      i.b = d.source(s.operands[form.lanes], "b32");
      i.kind = InstructionKind::WarpSync;
    } else {
      i.schedule_source = ScheduleSource::ActiveLanes;
    }
    d.emit(i);
    return true;
  }
  return false;
}

}  // namespace vgpu
