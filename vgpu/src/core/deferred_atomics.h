// Deferred atomics: an atomic that lets another one at its address execute first.  Whether a lane's atomic is deferred is a
// scheduling decision.  It waits until another atomic was executed at its address, so one decision can exchange two
// neighboring atomics and nothing else; if several wait at an address, the next atomic overtakes all of them.
//
// A lane whose atomic returns the old value is suspended with it (waiting).  Otherwise the lane continues, and its atomic is
// performed later (late), but before anything that orders it: the lane's next strong access or fence, a barrier of its block,
// or the lane's own access to the same address.
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
  // Performs a lane's atomic with the operands b and c.
  using Perform = void (*)(WarpContext& warp, const Instruction& i, uint8_t* address, uint32_t lane, uint64_t b, uint64_t c);

  explicit DeferredAtomics(Schedule& schedule) : schedule_(schedule) {}

  // Reduces `order`, which has `count` lanes, to those that execute the atomic now, and returns their number.  The others go to
  // warp.deferred_mask, or to warp.blocked_mask if an atomic before them must let a waiting one execute next.
  uint32_t select_arriving(WarpContext& warp, uint8_t* const* addresses, uint8_t* order, uint32_t count);
  // The same for atomics whose old value is unused: all lanes continue.  `b` and `c`: each lane's operands, of `bytes`.
  void arrive_or_defer(WarpContext& warp, const Instruction& i, uint8_t* const* addresses, const uint8_t* order, uint32_t count,
                       const uint8_t* b, const uint8_t* c, uint32_t bytes, Perform perform);

  bool has_waiting() const { return !waiting_.empty() || late_count_; }
  const Entry* next() const { return next_.empty() ? nullptr : &next_.front(); }  // executes before all others
  Entry pop_next();
  void release_all();  // lets all waiting atomics execute, since no other thread can continue

  // Perform late atomics: of these lanes, at the addresses of an access, at addresses where another atomic was executed, all.
  void settle(DeferralList& own, uint32_t lanes);
  void settle_at(const WarpContext& warp, uint8_t* const* addresses, uint32_t bytes);
  void settle_passed();
  void settle_all();
  void settle_shared(DeferralList& own, const WarpContext& warp);  // of a warp whose block has ended, in shared memory

 private:
  struct Late {
    uint8_t* address;  // nullptr: already performed
    const Instruction* i;
    Perform perform;
    uint64_t b, c, arrival;
    uint8_t* shared;
    uint32_t block, warp, lane, next;
  };

  bool on_atomic_done(uint8_t* address);
  Late& defer(WarpContext& warp, uint32_t lane, uint8_t* address);
  void settle_address(uint8_t* address, const WarpContext* warp = nullptr, uint32_t lane = 0);
  void perform(uint32_t slot);
  template <class F> void settle_if(const uint8_t* address, F predicate);
  bool is_pending(const DeferralList::Entry& entry) const {
    return late_[entry.slot].address && late_[entry.slot].arrival == entry.arrival;
  }
  uint32_t& bucket(const uint8_t* address);

  Schedule& schedule_;
  std::unordered_map<const uint8_t*, std::vector<Entry>> waiting_;  // by address, in order of arrival
  std::deque<Entry> next_;
  uint64_t arrivals_ = 0;
  std::vector<Late> late_;  // unordered
  std::vector<uint32_t> free_;  // unused slots of late_
  std::vector<uint32_t> buckets_;  // hash table of addresses: the first slot of each list, which is in order of arrival
  std::vector<uint8_t*> passed_;  // addresses where another atomic was executed
  uint32_t late_count_ = 0;
  WarpContext proxy_;  // the context in which late atomics are performed
};

}  // namespace vgpu
