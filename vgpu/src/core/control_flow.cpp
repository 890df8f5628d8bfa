// How lanes part and come back: branches, calls, ends, atomics that let others go first.
#include "block.h"

#include <algorithm>

#include "deferred_atomics.h"

namespace vgpu {

// The lanes of `mask` go on at `pc`, the others of the group where they are.
void Block::split(Warp& warp, uint32_t group, uint32_t mask, uint32_t pc) {
  Group other = warp.groups[group];
  other.mask = mask, other.pc = pc, other.state = State::Ready, other.passed = other.tired = false;
  other.frame->holders++;
  warp.groups[group].mask &= ~mask;
  warp.groups.push_back(other);
}

Block::Step Block::jump(Warp& warp, uint32_t group, uint32_t taken, uint32_t target) {
  Group& g = warp.groups[group];
  if (taken == g.mask) g.pc = target;
  else if (taken == 0) g.pc++;
  else {
    g.pc++;
    split(warp, group, taken, target);
  }
  return Step::Next;
}

Block::Step Block::indexed(Warp& warp, uint32_t group, const Instruction& i, uint32_t mask) {
  const uint32_t* index = lanes_of<uint32_t>(lanes_, i.a);
  const std::vector<uint32_t>& table = warp.groups[group].frame->program->tables[static_cast<size_t>(i.imm)];
  uint32_t at = warp.groups[group].pc, left = mask;
  while (left) {
    uint32_t lane = static_cast<uint32_t>(__builtin_ctz(left)), chosen = index[lane], same = 0;
    if (chosen >= table.size()) return fail(Fault::OutOfBounds, &i, warp.groups[group].frame->program), Step::Stop;
    each(left, [&](uint32_t l) { same |= uint32_t(index[l] == chosen) << l; });
    left &= ~same;
    if (same == warp.groups[group].mask) {
      warp.groups[group].pc = table[chosen];
      return Step::Next;
    }
    split(warp, group, same, table[chosen]);
  }
  warp.groups[group].pc = at + 1;
  return Step::Next;
}

Block::Step Block::call(Warp& warp, uint32_t group, const Instruction& i, uint32_t mask) {
  uint32_t next = warp.groups[group].pc + 1;
  if (mask != warp.groups[group].mask) split(warp, group, warp.groups[group].mask & ~mask, next);
  if (!mask) return drop(warp, group), Step::Stop;
  Frame* caller = warp.groups[group].frame;
  const CallSite& site = caller->program->calls[static_cast<size_t>(i.imm)];
  if (caller->depth + 1 >= kMostDepth) return fail(Fault::CallDepth, &i, caller->program), Step::Stop;
  const Program* callee = site.callee.empty() ? pointed(warp, group, i, mask) : launch_.functions->program(site.callee);
  if (!callee || callee->parameter_bytes < site.parameter_bytes)
    return fail(Fault::OutOfBounds, &i, caller->program), Step::Stop;
  Group& g = warp.groups[group];
  Frame* frame = warp.enter(*callee);
  frame->caller = caller, frame->site = &site, frame->depth = caller->depth + 1, frame->return_pc = next;
  frame->holders = 1;  // the group's hold of the caller becomes the new frame's
  frame->parameters.assign(size_t(callee->parameter_bytes) * kLanes, 0);
  std::copy_n(caller->aligned(), kSpecialBytes, frame->aligned());
  each(mask, [&](uint32_t l) {
    for (const CallSite::Piece& p : site.arguments)
      std::copy_n(&caller->scratch[size_t(l) * caller->program->scratch_bytes + p.from], p.size,
                  &frame->parameters[size_t(l) * callee->parameter_bytes + p.to]);
  });
  g.frame = frame;
  g.pc = 0;
  bind(frame);
  return Step::Next;
}

// What the first lane's pointer leads to; lanes with another one stay at the call, apart.
const Program* Block::pointed(Warp& warp, uint32_t group, const Instruction& i, uint32_t& mask) {
  const uint64_t* target = lanes_of<uint64_t>(lanes_, i.a);
  uint64_t first = target[__builtin_ctz(mask)];
  uint32_t same = mask & lanes_where([=](uint32_t l) { return target[l] == first; });
  if (same != mask) split(warp, group, mask & ~same, warp.groups[group].pc);
  mask = same;
  return launch_.functions->program_at(first);
}

Block::Step Block::back(Warp& warp, uint32_t group, uint32_t mask) {
  Group& g = warp.groups[group];
  if (mask != g.mask) split(warp, group, g.mask & ~mask, g.pc + 1);
  if (!mask) return drop(warp, group), Step::Stop;
  Frame *frame = warp.groups[group].frame, *caller = frame->caller;
  const CallSite& site = *frame->site;
  uint32_t own = frame->program->parameter_bytes, theirs = caller->program->scratch_bytes;
  each(mask, [&](uint32_t l) {
    for (const CallSite::Piece& p : site.results)
      std::copy_n(&frame->parameters[size_t(l) * own + p.from], p.size, &caller->scratch[size_t(l) * theirs + p.to]);
  });
  caller->holders++;
  warp.groups[group].frame = caller;
  warp.groups[group].pc = frame->return_pc;
  warp.leave(frame);
  return Step::Stop;  // the next turn brings those together that come back
}

Block::Step Block::leave(Warp& warp, uint32_t group, uint32_t mask) {
  warp.alive &= ~mask;
  live_ -= static_cast<uint32_t>(__builtin_popcount(mask));
  warp.groups[group].mask &= ~mask;
  warp.groups[group].pc++;
  bool gone = warp.groups[group].mask == 0;
  if (gone) drop(warp, group);
  if (mask) {
    for (Group& other : warp.groups)
      if (other.state == State::Meeting) other.state = State::Ready;
    check_barriers();
  }
  return gone || mask ? Step::Stop : Step::Next;
}

bool Block::held_up() const { return held_ && !ready_; }

// With the one whose turn it is: it is this block's.
void Block::go_on(Holding& holding) {
  Holding::One one = holding.take();
  Warp& warp = warps_[one.warp];
  uint32_t group = 0;
  while (warp.groups[group].state != State::Held || warp.groups[group].mask != 1u << one.lane) group++;
  // It stands before its atomic, whose guard let it come this far: that alone runs now.
  Group& g = warp.groups[group];
  const Program& program = *g.frame->program;
  const Instruction& i = program.code[g.pc];
  g.state = State::Ready, g.passed = false, held_--;
  bind(g.frame);
  look_at(warp);
  lanes_.mask = g.mask, lanes_.released = true;
  i.run(lanes_, i);
  holding.settle_passed();
  lanes_.released = false;
  outcome_.instructions++;
  if (lanes_.fault != Fault::None) fail(lanes_.fault, &i, &program);
  else g.pc++;
  spinning_ = false;
  ready_ |= 1u << warp.number;
  outcome_.atomics += lanes_.atomics, lanes_.atomics = 0;
}

// The lanes that did not come stay before the atomic: those that are held each by itself.
void Block::set_apart(Warp& warp, uint32_t group) {
  uint32_t at = warp.groups[group].pc - 1;
  for (uint32_t left = lanes_.held; left; left &= left - 1) {
    split(warp, group, left & -left, at);
    warp.groups.back().state = State::Held, held_++;
  }
  if (lanes_.later) split(warp, group, lanes_.later, at);
  lanes_.held = lanes_.later = 0;
  if (!warp.groups[group].mask) drop(warp, group);
}

}  // namespace vgpu
