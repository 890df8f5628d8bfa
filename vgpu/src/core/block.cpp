#include "block.h"

#include <algorithm>

#include "deferred_atomics.h"

namespace vgpu {
namespace {

constexpr uint32_t kTurn = 20000;  // instructions of a group before others may go
constexpr uint8_t kLooks = 8;  // at what nobody changes before a group gives way

uint32_t align_up(uint32_t value, uint32_t to) { return (value + to - 1) / to * to; }

void fill(uint8_t* registers, Special which, uint32_t value) {
  std::fill_n(reinterpret_cast<uint32_t*>(registers + special_offset(which)), kLanes, value);
}

// An atomic that may come late: a relaxed one whose old value nobody wants.
bool goes_on(const Instruction& i) { return i.count == 0 && i.mode == kStrong; }

}  // namespace

Block::Block(const Launch& launch, Schedule& schedule, const Memory& memory, uint64_t& writes, Holding* holding)
    : launch_(launch), schedule_(schedule), parameters_(launch.parameters.size() + 64) {
  threads_ = launch.threads();
  warps_.resize((threads_ + kLanes - 1) / kLanes);
  put_off_.resize(warps_.size());
  dynamic_at_ = align_up(launch.program->shared_bytes, launch.program->shared_align);
  charge_.set(sizeof *this + dynamic_at_ + launch.dynamic_shared + launch.parameters.size() + warps_.size() * sizeof(Warp));
  const uint32_t align = std::max(launch.program->shared_align, 64u);
  shared_.resize(dynamic_at_ + launch.dynamic_shared + align);
  std::copy(launch.parameters.begin(), launch.parameters.end(), aligned_in(parameters_, 64));
  lanes_.shared = aligned_in(shared_, align);
  lanes_.shared_bytes = dynamic_at_ + launch.dynamic_shared;
  lanes_.memory = &memory;
  lanes_.heap = launch.heap;
  lanes_.textures = launch.textures;
  lanes_.schedule = &schedule;
  lanes_.writes = &writes;
  lanes_.holding = holding;
  lanes_.observer = launch.observer;
  lanes_.threads = threads_;
  for (uint32_t k = 0; k < warps_.size(); k++) {
    warps_[k].number = k;
    warps_[k].specials.resize(kSpecialBytes);
    special_registers(warps_[k], warps_[k].specials.data());
  }
}

void Block::begin(uint32_t number) {
  lanes_.block = number;
  live_ = threads_;
  held_ = 0;
  ready_ = warps_.size() == kLanes ? kAll : (1u << warps_.size()) - 1;
  tired_ = asleep_ = 0;
  const uint32_t* g = launch_.grid;
  const uint32_t at[3] = {number % g[0], number / g[0] % g[1], number / g[0] / g[1]};
  std::fill(std::begin(barriers_), std::end(barriers_), Barrier());
  std::fill_n(lanes_.shared, lanes_.shared_bytes, 0);
  for (Warp& warp : warps_) {
    uint32_t lanes = std::min(kLanes, threads_ - warp.number * kLanes);
    warp.alive = lanes == kLanes ? kAll : (1u << lanes) - 1;
    warp.groups.clear();
    Frame* frame = warp.enter(*launch_.program);
    frame->holders = 1;
    std::copy(warp.specials.begin(), warp.specials.end(), frame->aligned());
    for (uint32_t k = 0; k < 3; k++) fill(frame->aligned(), static_cast<Special>(kCtaidX + k), at[k]);
    warp.groups.push_back({frame, 0, warp.alive});
  }
}

// All but the block's own place.
void Block::special_registers(const Warp& warp, uint8_t* registers) const {
  auto lanes = [registers](Special which) { return reinterpret_cast<uint32_t*>(registers + special_offset(which)); };
  const uint32_t *b = launch_.block, *g = launch_.grid;
  for (uint32_t l = 0; l < kLanes; l++) {
    uint32_t thread = warp.number * kLanes + l;
    lanes(kTidX)[l] = thread % b[0];
    lanes(kTidY)[l] = thread / b[0] % b[1];
    lanes(kTidZ)[l] = thread / b[0] / b[1];
    lanes(kLaneid)[l] = l;
    lanes(kMaskEq)[l] = 1u << l;
    lanes(kMaskLt)[l] = (1u << l) - 1;
    lanes(kMaskLe)[l] = (1u << l) | ((1u << l) - 1);
    lanes(kMaskGt)[l] = ~((1u << l) | ((1u << l) - 1));
    lanes(kMaskGe)[l] = ~((1u << l) - 1);
  }
  for (uint32_t k = 0; k < 3; k++) {
    fill(registers, static_cast<Special>(kNtidX + k), b[k]);
    fill(registers, static_cast<Special>(kNctaidX + k), g[k]);
  }
  fill(registers, kWarpid, warp.number);
  fill(registers, kNwarpid, static_cast<uint32_t>(warps_.size()));
  fill(registers, kNsmid, 1);
  fill(registers, kDynamicShared, dynamic_at_);
  fill(registers, kDynamicSharedBytes, launch_.dynamic_shared);
  fill(registers, kTotalSharedBytes, launch_.program->declared_shared() + launch_.dynamic_shared);
  fill(registers, kEnvreg1, static_cast<uint32_t>(launch_.grid_workspace >> 32));
  fill(registers, kEnvreg2, static_cast<uint32_t>(launch_.grid_workspace));
}

void Block::bind(Frame* frame) {
  lanes_.frame = frame->aligned();
  lanes_.own_parameters = frame->caller != nullptr;
  lanes_.parameters = lanes_.own_parameters ? frame->parameters.data() : aligned_in(parameters_, 64);
  lanes_.parameter_bytes =
      lanes_.own_parameters ? frame->program->parameter_bytes : static_cast<uint32_t>(launch_.parameters.size());
  lanes_.local = frame->local_variables(), lanes_.local_bytes = frame->program->local_bytes;
  lanes_.scratch = frame->scratch.data(), lanes_.scratch_bytes = frame->program->scratch_bytes;
  lanes_.shares.clear();
  for (Frame* one = frame; one; one = one->caller) {
    if (one->program->local_bytes) lanes_.shares.push_back({one->local_variables(), one->program->local_bytes});
    if (one->program->scratch_bytes) lanes_.shares.push_back({one->scratch.data(), one->program->scratch_bytes});
    if (one->caller) lanes_.shares.push_back({one->parameters.data(), one->program->parameter_bytes});
  }
}

// Warps of which one may go on now, a bit for each.
uint32_t Block::able() {
  if (slept_at_ != *lanes_.writes) asleep_ = 0;
  if (uint32_t found = ready_ & ~tired_ & ~asleep_) return found;
  tired_ = 0;
  if (uint32_t found = ready_ & ~asleep_) return found;
  asleep_ = 0;
  return ready_;
}

void Block::turn() {
  if (lanes_.holding && lanes_.holding->next()) return go_on(*lanes_.holding);
  uint32_t left = able();
  if (!left) {
    for (Warp& warp : warps_)
      if (!warp.groups.empty() && meet_apart(warp)) return note(warp);
    if (held_up()) return;
    return fail(Fault::Deadlock, nullptr, launch_.program);
  }
  for (uint32_t skip = schedule_.pick(static_cast<uint32_t>(__builtin_popcount(left))); skip; skip--) left &= left - 1;
  Warp& warp = warps_[static_cast<uint32_t>(__builtin_ctz(left))];
  run_group(warp, leader(warp));
  note(warp);
  outcome_.atomics += lanes_.atomics, lanes_.atomics = 0;
}

void Block::look_at(const Warp& warp) { lanes_.warp = warp.number, lanes_.put_off = &put_off_[warp.number]; }

void Block::settle_shared() {
  if (lanes_.holding)
    for (PutOff& own : put_off_) lanes_.holding->settle_shared(own, lanes_);
}

void Block::note(const Warp& warp) {
  uint32_t bit = 1u << warp.number;
  ready_ = warp.ready() ? ready_ | bit : ready_ & ~bit;
}

// The group that the others wait for: the deepest call, and there the least place; now and then another, as threads of a
// warp are independent.
uint32_t Block::leader(Warp& warp) {
  if (warp.groups.size() == 1) return 0;
  uint8_t able[kLanes];
  uint32_t count = 0, first = 0;
  for (int pass = 0; pass < 2 && !count; pass++) {
    for (uint32_t k = 0; k < warp.groups.size(); k++) {
      Group& one = warp.groups[k];
      if (pass) one.tired = false;
      if (one.state != State::Ready || one.tired) continue;
      const Group& best = warp.groups[first];
      const bool sooner = one.frame == best.frame                 ? one.pc < best.pc
                          : one.frame->depth != best.frame->depth ? one.frame->depth > best.frame->depth
                                                                  : one.pc < best.pc;
      if (!count || sooner) first = k;
      able[count++] = static_cast<uint8_t>(k);
    }
  }
  return count > 1 && schedule_.strays() ? able[schedule_.pick(count)] : first;
}

// stop: the nearest place before this group at which another one waits to go on with it.  behind: may one that is not yet
// there go on?  It goes first, so that the lanes come together again.
Block::Around Block::around(const Warp& warp, uint32_t group) const {
  const Group& own = warp.groups[group];
  Around found;
  for (const Group& other : warp.groups) {
    bool waits = other.state == State::Barrier || other.state == State::Held;
    if (&other == &own || other.frame != own.frame || waits) continue;
    if (other.pc >= own.pc) found.stop = std::min(found.stop, other.pc);
    else found.behind |= other.state == State::Ready && !other.tired;
  }
  return found;
}

// With the groups at its very place; `group` is where it is afterwards.
void Block::merge(Warp& warp, uint32_t& group) {
  for (uint32_t k = 0; k < warp.groups.size(); k++) {
    Group &own = warp.groups[group], &other = warp.groups[k];
    bool waits = other.state == State::Barrier || other.state == State::Held;
    if (k == group || other.frame != own.frame || other.pc != own.pc || waits) continue;
    own.mask |= other.mask;
    drop(warp, k);
    if (k < group) group--;
    k--;
  }
}

void Block::drop(Warp& warp, uint32_t group) {
  warp.leave(warp.groups[group].frame);
  warp.groups.erase(warp.groups.begin() + group);
}

void Block::give_way(Warp& warp, Group& group) {
  group.tired = true;
  tired_ |= 1u << warp.number;
  spinning_ = true;
}

// It has looked for long at what others have not changed: until somebody writes, looking again is of no use.
void Block::fall_asleep(Warp& warp, Group& group) {
  group.tired = true;
  for (const Group& other : warp.groups)
    if (other.state == State::Ready && !other.tired) return;
  if (slept_at_ != *lanes_.writes) asleep_ = 0, slept_at_ = *lanes_.writes;
  asleep_ |= 1u << warp.number;
}

// Instructions that concern this group alone, up to the place `stop` or one that is more than that.
Block::Step Block::straight(Warp& warp, Group& g, uint32_t stop, uint32_t& left) {
  const Program& program = *g.frame->program;
  const Instruction* const code = program.code.data();
  const uint32_t all = g.mask;
  uint32_t pc = g.pc;
  uint64_t done = 0;
  Step how = Step::Next;
  for (; pc != stop && code[pc].kind <= Kind::Memory; pc++) {
    const Instruction& i = code[pc];
    uint32_t mask = all;
    if (i.guard >= 0) mask &= predicate(lanes_, static_cast<uint32_t>(i.guard)) ^ (i.negated ? kAll : 0);
    if (left-- == 0) {
      give_way(warp, g);
      how = Step::Stop;
      break;
    }
    if (i.kind == Kind::Plain) {
      if (!mask) continue;
      done += static_cast<uint32_t>(__builtin_popcount(mask));
      lanes_.mask = mask;
      i.run(lanes_, i);
      if (lanes_.fault == Fault::None) continue;
      fail(lanes_.fault, &i, &program);
      how = Step::Stop;
      break;
    }
    if (!mask) {
      g.passed = false;
      continue;
    }
    if (i.kind == Kind::Memory && !g.passed && schedule_.yields()) {
      g.passed = true;
      how = Step::Stop;
      break;
    }
    g.passed = false;
    done += static_cast<uint32_t>(__builtin_popcount(mask));
    lanes_.mask = mask;
    const uint64_t writes = *lanes_.writes;
    if (lanes_.holding && i.mode != kWeak && !goes_on(i)) lanes_.holding->settle(*lanes_.put_off, mask);
    i.run(lanes_, i);
    if (lanes_.holding) lanes_.holding->settle_passed();
    if (lanes_.fault != Fault::None) {
      fail(lanes_.fault, &i, &program);
      how = Step::Stop;
      break;
    }
    if (lanes_.held | lanes_.later) {
      pc++, how = Step::Stop;
      break;
    }
    if (lanes_.news || writes != *lanes_.writes || (lanes_.holding && goes_on(i))) {
      g.looks = 0, lanes_.news = false;
    } else if (++g.looks >= kLooks) {
      g.looks = kLooks - 1;
      fall_asleep(warp, g);
      pc++, how = Step::Stop;
      break;
    }
  }
  g.pc = pc;
  outcome_.instructions += done;
  if (lanes_.held | lanes_.later) set_apart(warp, static_cast<uint32_t>(&g - warp.groups.data()));
  return how;
}

void Block::run_group(Warp& warp, uint32_t group) {
  spinning_ = false;
  look_at(warp);
  merge(warp, group);
  bind(warp.groups[group].frame);
  uint32_t left = kTurn;
  uint32_t stop = around(warp, group).stop;
  while (straight(warp, warp.groups[group], stop, left) == Step::Next) {
    Group& g = warp.groups[group];
    if (g.pc == stop) {
      merge(warp, group);
      stop = around(warp, group).stop;
      continue;
    }
    const Instruction& i = g.frame->program->code[g.pc];
    uint32_t mask = g.mask;
    if (i.guard >= 0) mask &= predicate(lanes_, static_cast<uint32_t>(i.guard)) ^ (i.negated ? kAll : 0);
    if (left-- == 0) return give_way(warp, g);
    outcome_.instructions += static_cast<uint32_t>(__builtin_popcount(mask));
    g.passed = false;
    uint32_t before = g.pc;
    if (i.kind == Kind::Branch && !mask) {
      g.pc++;  // nobody's place has changed but its own, by one
      continue;
    }
    if (i.kind == Kind::Branch && mask == g.mask) g.pc = static_cast<uint32_t>(i.imm);
    else if (step(warp, group, i, mask) == Step::Stop) return;
    stop = kNever;
    if (warp.groups.size() == 1) continue;
    Around others = around(warp, group);
    if (others.behind && warp.groups[group].pc != before + 1) return;
    stop = others.stop;
  }
}

Block::Step Block::step(Warp& warp, uint32_t& group, const Instruction& i, uint32_t mask) {
  switch (i.kind) {
    case Kind::Branch: return jump(warp, group, mask, static_cast<uint32_t>(i.imm));
    case Kind::Indexed: return indexed(warp, group, i, mask);
    case Kind::Call: return call(warp, group, i, mask);
    case Kind::Return: return warp.groups[group].frame->caller ? back(warp, group, mask) : leave(warp, group, mask);
    case Kind::Exit: return leave(warp, group, mask);
    case Kind::Trap:
      if (mask) return fail(Fault::Trap, &i, warp.groups[group].frame->program), Step::Stop;
      warp.groups[group].pc++;
      return Step::Next;
    case Kind::Yield:
      warp.groups[group].pc++;
      give_way(warp, warp.groups[group]);
      return Step::Stop;
    case Kind::Barrier: return barrier(warp, group, i, mask);
    default: return meeting(warp, group, i, mask);
  }
}

void Block::fail(Fault fault, const Instruction* i, const Program* program) {
  static const char* const words[] = {"",
                                      "an access outside of what was allocated",
                                      "an access that is not aligned",
                                      "a trap",
                                      "every thread waits",
                                      "no end within the instructions allowed",
                                      "calls too deep",
                                      "a write to memory that kernels may only read",
                                      "a failed assertion",
                                      "an operand that the instruction does not have",
                                      "a texture or surface object that is none, or is over memory that is freed"};
  outcome_.fault = fault;
  outcome_.message = std::string(words[static_cast<int>(fault)]) + " in " + program->name;
  if (i) outcome_.message += ", line " + std::to_string(i->line);
  if (lanes_.fault != Fault::None) {
    char hex[32];
    snprintf(hex, sizeof hex, ", address 0x%llx", static_cast<unsigned long long>(lanes_.fault_address));
    outcome_.message += hex;
  }
}

}  // namespace vgpu
