// VGPU_CHECK=races: two accesses to one place by two threads, one of them a write, that nothing puts in an order: no
// barrier of the block or the warp, and no fence (or `release`) before what one thread publishes and after (or `acquire`)
// what the other reads (happens-before, Lamport 1978).  Atomic, volatile and ordered accesses do not race with each other.
#pragma once
#include <map>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "core/observer.h"

namespace vgpu {

class Races : public Observer {
 public:
  void begin(const Launch&) override;
  void touch(const Lanes&, const Instruction&, const Touch&) override;
  void fence(const Lanes&) override;
  void barrier(uint32_t block) override;
  void meeting(const Lanes&, uint32_t mask) override;
  void end(const Launch&, const Outcome&) override;

 private:
  // What a thread knows to be over: a block's time before this barrier, a thread's before this release.
  struct Known {
    std::map<uint64_t, uint64_t> blocks, threads;
    void join(const Known& other);
  };
  struct Thread {
    Known known, read, published;
    uint64_t releases = 0;
    bool fenced = false;
  };  // since its last barrier
  struct Block {
    Known known, published;
    uint64_t barriers = 0;
    std::vector<uint64_t> threads;
  };
  struct Stamp {
    uint64_t thread = 0, block = 0, barriers = 0, releases = 0, instance = 0;  // instance 0: none
    uint32_t line = 0;
    Touch::What what = Touch::Read;
    bool strong = false;
    uint8_t bytes = 0;  // of the four, a bit each
  };
  struct Place {
    Stamp write;
    std::vector<Stamp> reads;
  };
  struct Race {
    Stamp first, second;
    Location at;
    uint64_t times = 0;
  };

  Thread& thread(const Lanes& w, uint64_t number);
  bool before(const Stamp& one, const Stamp& now) const;
  void compare(const Lanes& w, const Stamp& one, const Stamp& now, const uint8_t* at);
  void word(const Lanes& w, const uint8_t* at, Stamp now);
  void order(const Lanes& w, uint64_t number, const Touch& t, const uint8_t* at);
  void publish(const Lanes& w, uint64_t number, Thread& own);

  std::unordered_map<uint64_t, Thread> threads_;
  std::unordered_map<uint64_t, Block> blocks_;
  std::unordered_map<uint64_t, Place> places_;
  std::unordered_map<uint64_t, Known> published_;  // at the places of strong accesses
  std::map<std::tuple<uint32_t, uint32_t>, Race> races_;
  uint64_t instance_ = 0;
};

}  // namespace vgpu
