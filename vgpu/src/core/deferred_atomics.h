// Atomics that let another one at their address go first: each lane's is a choice, and waits until one was done there.  So
// the order of two neighbours can change, and nothing else need; before several that wait, one goes past them all.
//
// A lane that wants the old value waits with its atomic.  One that does not goes on, and its atomic comes late, but before
// whatever orders it: the lane's next strong access or fence, its block's barrier, its own access to the same place.
#pragma once
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "warp_context.h"

namespace vgpu {

struct Instruction;
class Schedule;

class DeferredAtomics {
 public:
  struct Entry {
    uint64_t arrival;
    uint32_t block, warp, lane;
  };
  // Does a lane's atomic on these values, where it is due.
  using Perform = void (*)(WarpContext& warp, const Instruction& i, uint8_t* at, uint32_t lane, uint64_t b, uint64_t c);

  explicit DeferredAtomics(Schedule& schedule) : schedule_(schedule) {}

  // Which of `count` lanes in their `order` come now; how many.  The others are warp.held, and warp.later: behind one after
  // which somebody else is next.
  uint32_t select_arriving(WarpContext& warp, uint8_t* const* at, uint8_t* order, uint32_t count);
  // The same for atomics whose old value nobody wants: all lanes go on.  `b` and `c`: each lane's values, of `bytes`.
  void arrive_or_defer(WarpContext& warp, const Instruction& i, uint8_t* const* at, const uint8_t* order, uint32_t count,
                       const uint8_t* b, const uint8_t* c, uint32_t bytes, Perform perform);

  bool has_waiting() const { return !waiting_.empty() || late_count_; }
  const Entry* next() const { return next_.empty() ? nullptr : &next_.front(); }  // whose turn it is before all others
  Entry pop_next();
  void release_all();  // all: nobody else can go on

  // Those that come late, at last: of these lanes, at the places of an access, at addresses that one has gone past, all.
  void settle(DeferralList& own, uint32_t lanes);
  void settle_at(const WarpContext& warp, uint8_t* const* at, uint32_t bytes);
  void settle_passed();
  void settle_all();
  void settle_shared(DeferralList& own, const WarpContext& warp);  // of a warp that ends, in its block's shared memory

 private:
  struct Late {
    uint8_t* at;  // null: done
    const Instruction* i;
    Perform perform;
    uint64_t b, c, arrival;
    uint8_t* shared;
    uint32_t block, warp, lane, next;
  };

  bool on_atomic_done(uint8_t* at);
  Late& defer(WarpContext& warp, uint32_t lane, uint8_t* at);
  void settle_address(uint8_t* at, const WarpContext* of = nullptr, uint32_t lane = 0);
  void perform(uint32_t slot);
  template <class F> void settle_if(const uint8_t* at, F wanted);
  bool alive(const DeferralList::Entry& one) const { return late_[one.slot].at && late_[one.slot].arrival == one.arrival; }
  uint32_t& bucket(const uint8_t* at);

  Schedule& schedule_;
  std::unordered_map<const uint8_t*, std::vector<Entry>> waiting_;  // at each address, in the order in which they came
  std::deque<Entry> next_;
  uint64_t arrivals_ = 0;
  std::vector<Late> late_;          // in no order
  std::vector<uint32_t> free_;      // of these
  std::vector<uint32_t> buckets_;   // the first of those whose addresses are alike, in the order in which they came
  std::vector<uint8_t*> passed_;
  uint32_t late_count_ = 0;
  WarpContext proxy_;                     // those that come late run as these
};

}  // namespace vgpu
