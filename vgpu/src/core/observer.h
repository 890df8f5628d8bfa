// Who looks on while a launch runs: none in most runs, and then it costs one test an instruction.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

namespace vgpu {

struct Instruction;
struct Lanes;
struct Launch;
struct Outcome;

// How far an access is meant for other threads.  Strong: atomic, volatile or relaxed, two of these are no race; and what the
// words `acquire` and `release` add to that.
enum Order : uint8_t { kWeak = 0, kStrong = 1, kAcquires = 2, kReleases = 4 };

// What one instruction of a warp does to memory that others see, just before it does it.
struct Touch {
  enum What : uint8_t { Read, Write, Atomic };
  // By what the order of atomics may show: nothing, a sum's rounding, who comes last, the old value that each gets.
  enum Shows : uint8_t { Nothing, Rounding, Last, Old };
  What what;
  uint8_t order;  // of Order
  Shows shows;
  uint32_t bytes;
  uint8_t* const* at;    // of each lane
  const uint8_t* lanes;  // in the order in which they come
  uint32_t count;
  bool strong() const { return order != kWeak; }
};

class Observer {
 public:
  virtual ~Observer() = default;
  virtual void begin(const Launch&) {}
  virtual void touch(const Lanes&, const Instruction&, const Touch&) = 0;
  virtual void fence(const Lanes&) {}                  // of the active lanes
  virtual void barrier(uint32_t /* block */) {}        // all its threads have met
  virtual void meeting(const Lanes&, uint32_t /* mask */) {}  // lanes of a warp have
  virtual void end(const Launch&, const Outcome&) {}
  virtual void stood_in(const char* /* call */, uint64_t /* launch: the next one's number */) {}
};

// Several of them, in turn.
class Observers : public Observer {
 public:
  void add(std::unique_ptr<Observer> one) { all_.push_back(std::move(one)); }
  bool none() const { return all_.empty(); }
  void begin(const Launch& launch) override {
    for (auto& one : all_) one->begin(launch);
  }
  void touch(const Lanes& w, const Instruction& i, const Touch& t) override {
    for (auto& one : all_) one->touch(w, i, t);
  }
  void fence(const Lanes& w) override {
    for (auto& one : all_) one->fence(w);
  }
  void barrier(uint32_t block) override {
    for (auto& one : all_) one->barrier(block);
  }
  void meeting(const Lanes& w, uint32_t mask) override {
    for (auto& one : all_) one->meeting(w, mask);
  }
  void end(const Launch& launch, const Outcome& outcome) override {
    for (auto& one : all_) one->end(launch, outcome);
  }
  void stood_in(const char* call, uint64_t launch) override {
    for (auto& one : all_) one->stood_in(call, launch);
  }

 private:
  std::vector<std::unique_ptr<Observer>> all_;
};

// Where an address lies, in words that are the same in every process.
struct Location {
  enum Space : uint8_t { None, Shared, Global };  // None: the lane's own
  Space space = None;
  uint64_t allocation = 0;  // its number; of shared memory the block's
  uint64_t offset = 0;
};
bool is_shared(const Lanes& w, const uint8_t* at);  // its block's
Location locate(const Lanes& w, const uint8_t* at);

// Tells the observer, with the active lanes in the order of their numbers where none is given.
void touched(const Lanes& w, const Instruction& i, Touch touch);

// The number of a lane's thread in the grid.
uint64_t thread_of(const Lanes& w, uint32_t lane);

}  // namespace vgpu
