// Where lanes wait for each other: the block's barriers, and what a warp's lanes tell each other.
#include "block.h"

#include <algorithm>

#include "deferred_atomics.h"

namespace vgpu {

Block::Step Block::barrier(Warp& warp, uint32_t group, const Instruction& i, uint32_t mask) {
  uint32_t at = warp.groups[group].pc;
  if (mask != warp.groups[group].mask) split(warp, group, warp.groups[group].mask & ~mask, at + 1);
  if (!mask) return drop(warp, group), Step::Stop;
  Group& g = warp.groups[group];
  uint32_t lane = static_cast<uint32_t>(__builtin_ctz(mask)), which = lanes_of<uint32_t>(lanes_, i.a)[lane];
  if (which >= kBarriers) return fail(Fault::IllegalInstruction, &i, g.frame->program), Step::Stop;
  Barrier& b = barriers_[which];
  b.wanted = i.count == 2 ? lanes_of<uint32_t>(lanes_, i.b)[lane] : 0;
  b.arrived += static_cast<uint32_t>(__builtin_popcount(mask));
  if (i.mode >= 2) {
    uint32_t holds = predicate(lanes_, i.c) & mask;
    b.holding += static_cast<uint32_t>(__builtin_popcount(holds));
    b.values += static_cast<uint32_t>(__builtin_popcount(mask));
  }
  if (i.mode == 1) {
    g.pc++;
  } else {
    g.state = State::Barrier;
    g.barrier = which;
  }
  check_barriers();
  return Step::Stop;
}

void Block::check_barriers() {
  for (uint32_t k = 0; k < kBarriers; k++) {
    const Barrier& b = barriers_[k];
    if (b.arrived && b.arrived >= (b.wanted ? b.wanted : live_)) release(k);
  }
}

void Block::release(uint32_t which) {
  Barrier b = barriers_[which];
  barriers_[which] = Barrier();
  if (lanes_.holding)
    for (PutOff& own : put_off_) lanes_.holding->settle(own, kAll);
  if (lanes_.observer) lanes_.observer->barrier(lanes_.block);
  for (Warp& warp : warps_) {
    for (Group& g : warp.groups) {
      if (g.state != State::Barrier || g.barrier != which) continue;
      const Instruction& i = g.frame->program->code[g.pc];
      if (i.mode >= 2) {
        Lanes to;
        to.frame = g.frame->aligned();
        bool holds = i.mode == 3 ? b.holding == b.values : b.holding != 0;
        if (i.mode == 2) each(g.mask, [&](uint32_t l) { lanes_of<uint32_t>(to, i.d)[l] = b.holding; });
        else predicate(to, i.d) = (predicate(to, i.d) & ~g.mask) | (holds ? g.mask : 0);
      }
      g.state = State::Ready;
      g.tired = false;
      g.pc++;
    }
    note(warp);
  }
  tired_ = asleep_ = 0;
}

// bar.warp.sync by these lanes: what they did before is done.
void Block::meet(uint32_t lanes) {
  if (lanes_.holding) lanes_.holding->settle(*lanes_.put_off, lanes);
  if (lanes_.observer) lanes_.observer->meeting(lanes_, lanes);
}

Block::Step Block::meeting(Warp& warp, uint32_t group, const Instruction& i, uint32_t mask) {
  uint32_t at = warp.groups[group].pc;
  if (mask != warp.groups[group].mask) split(warp, group, warp.groups[group].mask & ~mask, at + 1);
  if (!mask) return drop(warp, group), Step::Stop;
  const uint32_t* named = lanes_of<uint32_t>(lanes_, i.b);
  uint32_t wanted = named[__builtin_ctz(mask)], same = 0;
  each(mask, [&](uint32_t l) { same |= uint32_t(named[l] == wanted) << l; });
  same &= wanted | (1u << __builtin_ctz(mask));
  if (same != mask) {
    // Other lanes name others: they meet by themselves, after these.
    split(warp, group, mask & ~same, at);
    warp.groups.back().state = State::Meeting;
  }
  uint32_t needed = wanted & warp.alive;
  if ((same & needed) != needed) {
    warp.groups[group].state = State::Meeting;
    return Step::Stop;
  }
  if (i.run) {
    lanes_.mask = same;
    i.run(lanes_, i);
  } else {
    meet(same);
  }
  warp.groups[group].pc = at + 1;
  for (Group& other : warp.groups)
    if (other.state == State::Meeting) other.state = State::Ready;
  return warp.groups.size() > 1 ? Step::Stop : Step::Next;
}

// Lanes that wait for each other at different barriers of the warp (bar.warp.sync names lanes, not a place).
bool Block::meet_apart(Warp& warp) {
  for (const Group& first : warp.groups) {
    if (first.state != State::Meeting || first.frame->program->code[first.pc].run) continue;
    auto named = [](const Group& g) {
      Lanes of;
      of.frame = g.frame->aligned();
      return lanes_of<uint32_t>(of, g.frame->program->code[g.pc].b)[__builtin_ctz(g.mask)];
    };
    uint32_t wanted = named(first), here = 0;
    auto takes_part = [&](const Group& g) {
      return g.state == State::Meeting && !g.frame->program->code[g.pc].run && named(g) == wanted;
    };
    for (const Group& g : warp.groups)
      if (takes_part(g)) here |= g.mask;
    if ((here & wanted & warp.alive) != (wanted & warp.alive)) continue;
    look_at(warp);
    meet(here);
    std::vector<Group*> all;
    for (Group& g : warp.groups)
      if (takes_part(g)) all.push_back(&g);
    for (Group* g : all) g->state = State::Ready, g->pc++;
    return true;
  }
  return false;
}

}  // namespace vgpu
