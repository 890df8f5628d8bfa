#include "block.h"

#include <algorithm>

namespace vgpu {
namespace {

constexpr uint32_t kTurn = 20000;  // instructions of a group before others may go
constexpr uint32_t kNever = ~0u;

uint32_t align_up(uint32_t value, uint32_t to) { return (value + to - 1) / to * to; }

void fill(uint8_t* registers, Special which, uint32_t value) {
  std::fill_n(reinterpret_cast<uint32_t*>(registers + special_offset(which)), kLanes, value);
}

uint8_t* sixteen(std::vector<uint8_t>& bytes) {
  return reinterpret_cast<uint8_t*>((reinterpret_cast<uintptr_t>(bytes.data()) + 63) & ~uintptr_t(63));
}

}  // namespace

Block::Block(const Launch& launch, Schedule& schedule, const Memory& memory)
    : launch_(launch), schedule_(schedule), parameters_(launch.parameters.size() + 64) {
  threads_ = launch.block[0] * launch.block[1] * launch.block[2];
  warps_.resize((threads_ + kLanes - 1) / kLanes);
  for (uint32_t k = 0; k < warps_.size(); k++) warps_[k].number = k;
  dynamic_at_ = align_up(launch.program->shared_bytes, 16);
  charge_.set(sizeof *this + dynamic_at_ + launch.dynamic_shared + launch.parameters.size() + warps_.size() * sizeof(Warp));
  shared_.resize(dynamic_at_ + launch.dynamic_shared + 64);
  std::copy(launch.parameters.begin(), launch.parameters.end(), sixteen(parameters_));
  lanes_.shared = sixteen(shared_);
  lanes_.shared_bytes = dynamic_at_ + launch.dynamic_shared;
  lanes_.memory = &memory;
  lanes_.schedule = &schedule;
}

void Block::begin(uint32_t number) {
  number_ = number;
  live_ = threads_;
  std::fill(std::begin(barriers_), std::end(barriers_), Barrier());
  std::fill_n(lanes_.shared, lanes_.shared_bytes, 0);
  for (Warp& warp : warps_) {
    uint32_t lanes = std::min(kLanes, threads_ - warp.number * kLanes);
    warp.alive = lanes == kLanes ? kAll : (1u << lanes) - 1;
    warp.tired = false;
    warp.groups.clear();
    Frame* frame = warp.enter(*launch_.program);
    frame->holders = 1;
    special_registers(warp, frame->aligned());
    warp.groups.push_back({frame, 0, warp.alive});
  }
}

void Block::special_registers(Warp& warp, uint8_t* registers) const {
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
  const uint32_t id[3] = {number_ % g[0], number_ / g[0] % g[1], number_ / g[0] / g[1]};
  for (uint32_t k = 0; k < 3; k++) {
    fill(registers, static_cast<Special>(kNtidX + k), b[k]);
    fill(registers, static_cast<Special>(kCtaidX + k), id[k]);
    fill(registers, static_cast<Special>(kNctaidX + k), g[k]);
  }
  fill(registers, kWarpid, warp.number);
  fill(registers, kNwarpid, static_cast<uint32_t>(warps_.size()));
  fill(registers, kNsmid, 1);
  fill(registers, kDynamicShared, dynamic_at_);
  fill(registers, kDynamicSharedBytes, launch_.dynamic_shared);
  fill(registers, kTotalSharedBytes, dynamic_at_ + launch_.dynamic_shared);
}

void Block::bind(Frame* frame) {
  lanes_.frame = frame->aligned();
  lanes_.own_parameters = frame->caller != nullptr;
  lanes_.parameters = lanes_.own_parameters ? frame->parameters.data() : sixteen(parameters_);
  lanes_.parameter_bytes = lanes_.own_parameters ? frame->program->parameter_bytes
                                                 : static_cast<uint32_t>(launch_.parameters.size());
  lanes_.local = frame->local.data(), lanes_.local_bytes = frame->program->local_bytes;
  lanes_.scratch = frame->scratch.data(), lanes_.scratch_bytes = frame->program->scratch_bytes;
  lanes_.shares.clear();
  for (Frame* one = frame; one; one = one->caller) {
    if (one->program->local_bytes) lanes_.shares.push_back({one->local.data(), one->program->local_bytes});
    if (one->program->scratch_bytes) lanes_.shares.push_back({one->scratch.data(), one->program->scratch_bytes});
    if (one->caller) lanes_.shares.push_back({one->parameters.data(), one->program->parameter_bytes});
  }
}

void Block::turn() {
  std::vector<uint32_t> able;
  for (int pass = 0; pass < 2 && able.empty(); pass++) {
    for (Warp& warp : warps_) {
      if (pass) warp.tired = false;
      if (warp.ready() && !warp.tired) able.push_back(warp.number);
    }
  }
  if (able.empty()) {
    for (Warp& warp : warps_) if (!warp.groups.empty() && meet_apart(warp)) return;
    return fail(Fault::Deadlock, nullptr, launch_.program);
  }
  Warp& warp = warps_[able[schedule_.pick(static_cast<uint32_t>(able.size()))]];
  run_group(warp, leader(warp));
  outcome_.atomics += lanes_.atomics, lanes_.atomics = 0;
}

// The group that the others wait for: the deepest call, and there the least place; now and then another, as threads of a
// warp are independent.
uint32_t Block::leader(const Warp& warp) {
  std::vector<uint32_t> able;
  for (int pass = 0; pass < 2 && able.empty(); pass++)
    for (uint32_t k = 0; k < warp.groups.size(); k++)
      if (warp.groups[k].state == State::Ready && (pass || !warp.groups[k].tired)) able.push_back(k);
  if (!schedule_.serial() && able.size() > 1 && schedule_.pick(4) == 0)
    return able[schedule_.pick(static_cast<uint32_t>(able.size()))];
  return *std::min_element(able.begin(), able.end(), [&](uint32_t a, uint32_t b) {
    const Group &x = warp.groups[a], &y = warp.groups[b];
    return x.frame->depth != y.frame->depth ? x.frame->depth > y.frame->depth : x.pc < y.pc;
  });
}

// The nearest place before this group at which another one waits to go on with it.
uint32_t Block::stop_before(const Warp& warp, uint32_t group) const {
  const Group& own = warp.groups[group];
  uint32_t stop = kNever;
  for (uint32_t k = 0; k < warp.groups.size(); k++)
    if (k != group && warp.groups[k].frame == own.frame && warp.groups[k].state != State::Barrier &&
        warp.groups[k].pc >= own.pc)
      stop = std::min(stop, warp.groups[k].pc);
  return stop;
}

// With the groups at its very place; `group` is where it is afterwards.
void Block::merge(Warp& warp, uint32_t& group) {
  for (uint32_t k = 0; k < warp.groups.size(); k++) {
    Group &own = warp.groups[group], &other = warp.groups[k];
    if (k == group || other.frame != own.frame || other.pc != own.pc || other.state == State::Barrier) continue;
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

void Block::run_group(Warp& warp, uint32_t group) {
  spinning_ = false;
  merge(warp, group);
  bind(warp.groups[group].frame);
  uint32_t left = kTurn;
  uint32_t stop = stop_before(warp, group);
  while (outcome_.fault == Fault::None) {
    Group& g = warp.groups[group];
    if (g.pc == stop) {
      merge(warp, group);
      stop = stop_before(warp, group);
      continue;
    }
    const Program& program = *g.frame->program;
    const Instruction& i = program.code[g.pc];
    uint32_t mask = g.mask;
    if (i.guard >= 0) {
      uint32_t p = predicate(lanes_, static_cast<uint32_t>(i.guard));
      mask &= i.negated ? ~p : p;
    }
    if (left-- == 0) {
      g.tired = warp.tired = spinning_ = true;
      return;
    }
    outcome_.instructions += static_cast<uint32_t>(__builtin_popcount(mask));
    if (i.kind == Kind::Memory && mask && !g.passed && schedule_.yields()) {
      g.passed = true;
      return;
    }
    g.passed = false;
    if (i.kind <= Kind::Memory) {
      if (mask) {
        lanes_.mask = mask;
        i.run(lanes_, i);
        if (lanes_.fault != Fault::None) return fail(lanes_.fault, &i, &program);
      }
      g.pc++;
      continue;
    }
    uint32_t before = g.pc;
    if (step(warp, group, i, mask) == Step::Stop) return;
    if (warp.groups.size() > 1) {
      // Whoever is behind goes first, so that the lanes come together again.
      const Group& own = warp.groups[group];
      if (own.pc != before + 1)
        for (const Group& other : warp.groups)
          if (&other != &own && other.state == State::Ready && !other.tired && other.frame == own.frame && other.pc < own.pc)
            return;
      stop = stop_before(warp, group);
    } else {
      stop = kNever;
    }
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
      warp.groups[group].tired = warp.tired = spinning_ = true;
      return Step::Stop;
    case Kind::Barrier: return barrier(warp, group, i, mask);
    default: return meeting(warp, group, i, mask);
  }
}

void Block::fail(Fault fault, const Instruction* i, const Program* program) {
  static const char* const words[] = {"", "an access outside of what was allocated", "an access that is not aligned", "a trap",
                                      "every thread waits", "no end within the instructions allowed", "calls too deep"};
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
