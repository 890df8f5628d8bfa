// A block that is under way: its warps, its shared memory, its barriers.
#pragma once
#include <memory>
#include <vector>

#include "launch.h"
#include "warp.h"

namespace vgpu {

constexpr uint32_t kBarriers = 16;
constexpr uint32_t kNever = ~0u;  // no place

class Block {
 public:
  Block(const Launch& launch, Schedule& schedule, const Memory& memory, uint64_t& writes, Holding* holding);

  void begin(uint32_t number);  // anew, as block `number` of the grid

  // Runs one group until it yields, waits, ends or has run for long.
  void turn();

  uint64_t warps() const { return warps_.size(); }
  bool done() const { return live_ == 0; }
  uint32_t number() const { return lanes_.block; }
  bool asleep() const { return held_up() || (asleep_ && !(ready_ & ~asleep_) && slept_at_ == *lanes_.writes); }
  bool spinning() const { return spinning_; }  // the last turn ended because it was long
  Outcome& outcome() { return outcome_; }
  void settle_shared();  // what comes late to its shared memory, before that is another's

 private:
  struct Barrier { uint32_t arrived = 0, wanted = 0, holding = 0, values = 0; };
  enum class Step : uint8_t { Next, Stop };
  struct Around {
    uint32_t stop = kNever;
    bool behind = false;
  };

  void special_registers(const Warp& warp, uint8_t* registers) const;
  void bind(Frame* frame);
  bool held_up() const;  // nobody goes on before one that is held
  void go_on(Holding& holding);
  void set_apart(Warp& warp, uint32_t group);
  uint32_t able();
  uint32_t leader(Warp& warp);
  Around around(const Warp& warp, uint32_t group) const;
  void merge(Warp& warp, uint32_t& group);
  void run_group(Warp& warp, uint32_t group);
  Step straight(Warp& warp, Group& group, uint32_t stop, uint32_t& left);
  void give_way(Warp& warp, Group& group);
  void fall_asleep(Warp& warp, Group& group);
  void note(const Warp& warp);
  void look_at(const Warp& warp);
  Step step(Warp& warp, uint32_t& group, const Instruction& i, uint32_t mask);
  Step jump(Warp& warp, uint32_t group, uint32_t taken, uint32_t target);
  Step indexed(Warp& warp, uint32_t group, const Instruction& i, uint32_t mask);
  Step call(Warp& warp, uint32_t group, const Instruction& i, uint32_t mask);
  const Program* pointed(Warp& warp, uint32_t group, const Instruction& i, uint32_t& mask);
  Step back(Warp& warp, uint32_t group, uint32_t mask);
  Step leave(Warp& warp, uint32_t group, uint32_t mask);
  Step barrier(Warp& warp, uint32_t group, const Instruction& i, uint32_t mask);
  Step meeting(Warp& warp, uint32_t group, const Instruction& i, uint32_t mask);
  void split(Warp& warp, uint32_t group, uint32_t mask, uint32_t pc);
  void drop(Warp& warp, uint32_t group);
  void release(uint32_t barrier);
  void check_barriers();
  void meet(uint32_t lanes);
  bool meet_apart(Warp& warp);
  void fail(Fault fault, const Instruction* i, const Program* program);

  const Launch& launch_;
  Schedule& schedule_;
  Outcome outcome_;
  Lanes lanes_;
  std::vector<Warp> warps_;
  std::vector<PutOff> put_off_;  // of each warp
  std::vector<uint8_t> shared_, parameters_;
  uint32_t threads_, live_ = 0, dynamic_at_ = 0;
  uint32_t held_ = 0;  // lanes that wait with their atomics
  Barrier barriers_[kBarriers];
  // A bit for each warp: it can go on; it ran for long; it waits for somebody to write, and nobody did since.
  uint32_t ready_ = 0, tired_ = 0, asleep_ = 0;
  uint64_t slept_at_ = 0;
  bool spinning_ = false;
  Charge charge_;
};

}  // namespace vgpu
