// What the lanes of a warp tell each other: shfl, vote, match, redux, activemask, elect.  They run once all lanes that their
// mask names have come.
#include <algorithm>

#include "families.h"
#include "types.h"

namespace vgpu {
namespace {

enum Shuffle : uint8_t { kUp, kDown, kButterfly, kIndex };

// a: the value, c: the lane or the distance, e: clamp and segment; v[0]: a predicate, with `count` 2.
void shfl(WarpContext& warp, const Instruction& i) {
  uint32_t *d = lane_values<uint32_t>(warp, i.d), *distance = lane_values<uint32_t>(warp, i.c),
           *clamp = lane_values<uint32_t>(warp, i.e);
  uint32_t value[kWarpSize], inside = 0, asked = 0;
  std::copy_n(lane_values<uint32_t>(warp, i.a), kWarpSize, value);
  for_each_lane(warp.active_mask, [&](uint32_t l) {
    uint32_t by = distance[l] & 31, bound = clamp[l] & 31, segment = clamp[l] >> 8 & 31;
    uint32_t last = (l & segment) | (bound & ~segment), first = l & segment;
    int32_t from;
    bool fits;
    switch (i.variant) {
      case kUp: from = int32_t(l) - int32_t(by), fits = from >= int32_t(last); break;
      case kDown: from = int32_t(l + by), fits = from <= int32_t(last); break;
      case kButterfly: from = int32_t(l ^ by), fits = from <= int32_t(last); break;
      default: from = int32_t(first | (by & ~segment)), fits = from <= int32_t(last); break;
    }
    if (!fits) from = int32_t(l);
    inside |= uint32_t(fits) << l, asked |= 1u << (from & 31);
    // A lane that does not take part has nothing to tell: what comes from there is unspecified, here the own value.
    d[l] = warp.active_mask >> (from & 31) & 1 ? value[from & 31] : value[l];
  });
  if (i.count == 2) write_predicate(warp, i.vector_registers[0], inside);
  if (warp.observer && (asked & ~warp.active_mask)) warp.observer->on_schedule_source(i, ScheduleSource::InactiveLane);
}

enum Vote : uint8_t { kAll4, kAny, kUniform, kBallot };
void vote(WarpContext& warp, const Instruction& i) {
  uint32_t said = predicate(warp, i.a) & warp.active_mask;
  if (i.variant == kBallot) {
    uint32_t* d = lane_values<uint32_t>(warp, i.d);
    for_each_lane(warp.active_mask, [=](uint32_t l) { d[l] = said; });
    return;
  }
  bool holds = i.variant == kAll4  ? said == warp.active_mask
               : i.variant == kAny ? said != 0
                                   : said == 0 || said == warp.active_mask;
  uint32_t& d = predicate(warp, i.d);
  d = holds ? d | warp.active_mask : d & ~warp.active_mask;
}

// mode 1: all of them the same?  v[0]: a predicate, with `count` 2.
template <class T> void match(WarpContext& warp, const Instruction& i) {
  const T* a = lane_values<T>(warp, i.a);
  uint32_t* d = lane_values<uint32_t>(warp, i.d);
  uint32_t same[kWarpSize], whole = 0;
  for_each_lane(warp.active_mask, [&](uint32_t l) {
    same[l] = 0;
    for_each_lane(warp.active_mask, [&](uint32_t other) { same[l] |= uint32_t(a[l] == a[other]) << other; });
    whole |= uint32_t(same[l] == warp.active_mask) << l;
  });
  for_each_lane(warp.active_mask, [&](uint32_t l) {
    d[l] = !i.variant ? same[l] : same[l] == warp.active_mask ? warp.active_mask : 0;
  });
  if (i.count == 2) write_predicate(warp, i.vector_registers[0], whole);
}

void activemask(WarpContext& warp, const Instruction& i) {
  uint32_t* d = lane_values<uint32_t>(warp, i.d);
  for_each_lane(warp.active_mask, [&](uint32_t l) { d[l] = warp.active_mask; });
}

// The lane that goes for all: the lowest.  v[0]: the predicate that only it gets.
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
  T made = a[__builtin_ctz(warp.active_mask)];
  for (uint32_t left = warp.active_mask & (warp.active_mask - 1); left; left &= left - 1)
    made = Op::of(made, a[__builtin_ctz(left)]);
  for_each_lane(warp.active_mask, [=](uint32_t l) { d[l] = made; });
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

// `d|p` or `d`; sink: may `_` stand for d?
void result(Decoder& d, const Operand& o, bool sink, Instruction& i) {
  bool both = o.kind == Operand::Vector;
  i.d = d.result(both ? o.parts.at(0) : o, "b32", sink && both);
  if (both) i.vector_registers[0] = d.predicate_result(o.parts.at(1)), i.count = 2;
}

bool decode_shuffle(Decoder& d, const Statement& s, Instruction& i) {
  std::string_view how = s.qualifier_of("up|down|bfly|idx");
  if (!s.allows_only({"sync", "up|down|bfly|idx"}) || how.empty() || s.type() != "b32") return false;
  if (s.operands.size() != (s.has("sync") ? 5u : 4u)) return false;
  result(d, s.operands[0], false, i);
  i.a = d.exact_operand(s.operands[1], "b32");
  i.c = d.exact_operand(s.operands[2], "b32");
  i.e = d.exact_operand(s.operands[3], "b32");
  i.variant = how == "up" ? kUp : how == "down" ? kDown : how == "bfly" ? kButterfly : kIndex;
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
  std::string_view how = s.qualifier_of("all|any|uni|ballot");
  if (!s.allows_only({"sync", "all|any|uni|ballot"}) || how.empty() || s.type() != (how == "ballot" ? "b32" : "pred"))
    return false;
  if (s.operands.size() != (s.has("sync") ? 3u : 2u)) return false;
  i.variant = s.has("all") ? kAll4 : s.has("any") ? kAny : s.has("uni") ? kUniform : kBallot;
  i.d = i.variant == kBallot ? d.result(s.operands[0], "b32") : d.predicate_result(s.operands[0]);
  i.a = d.predicate(s.operands[1]);
  i.execute = vote;
  return true;
}

bool decode_match(Decoder& d, const Statement& s, Instruction& i) {
  if (!s.allows_only({"any|all", "sync"}) || s.qualifiers.size() != 3 || s.operands.size() != 3) return false;
  result(d, s.operands[0], true, i);
  i.a = d.exact_operand(s.operands[1], s.type());
  i.variant = s.has("all");
  i.execute = ptx::size_of(s.type()) == 8 ? match<uint64_t> : match<uint32_t>;
  return true;
}

bool decode_elect(Decoder& d, const Statement& s, Instruction& i) {
  if (!s.allows_only({"sync"}, 0) || s.operands.size() != 2 || s.operands[0].kind != Operand::Vector) return false;
  result(d, s.operands[0], true, i);
  i.execute = elect;
  return true;
}

bool decode_reduction(Decoder& d, const Statement& s, Instruction& i) {
  i.execute = reduction(s);
  if (!i.execute || !s.allows_only({"sync", "add|min|max|and|or|xor"}) || s.operands.size() != 3) return false;
  i.d = d.result(s.operands[0], s.type());
  i.a = d.exact_operand(s.operands[1], s.type());
  return true;
}

// lanes: the operand that names the lanes which take part; 0: whoever is there.
struct Form {
  std::string_view op;
  DecodeFunction decode;
  size_t lanes;
};
constexpr Form kProcVersions[] = {{"shfl", decode_shuffle, 4}, {"activemask", decode_activemask, 0},
                                  {"vote", decode_vote, 2},    {"match", decode_match, 2},
                                  {"elect", decode_elect, 1},  {"redux", decode_reduction, 2}};

}  // namespace

bool decode_warp(Decoder& d, const Statement& s, Instruction& i) {
  if ((s.op == "shfl" || s.op == "vote") && !s.has("sync") && d.function().target >= 70 && d.function().version >= 64)
    d.reject(s, "no .sync, which PTX 6.4 and newer want on sm_70 and newer");
  for (const Form& form : kProcVersions) {
    if (form.op != s.op) continue;
    if (!form.decode(d, s, i)) return false;
    if (form.lanes && form.lanes < s.operands.size()) {
      i.b = d.exact_operand(s.operands[form.lanes], "b32");
      i.kind = InstructionKind::WarpSync;
    } else {
      i.source = ScheduleSource::ActiveLanes;
    }
    d.emit(i);
    return true;
  }
  return false;
}

}  // namespace vgpu
