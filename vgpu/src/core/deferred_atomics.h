// Deferred atomics: an atomic that lets another one at its address execute first.  Whether a lane's atomic is deferred is a
// scheduling decision.  It waits until another atomic was executed at its address, so one decision can exchange two
// neighboring atomics and nothing else; if several wait at an address, the next atomic overtakes all of them.  A waiting
// atomic also executes if nothing can overtake it: no thread that could use its memory can continue.
//
// A lane whose atomic returns the old value is suspended with it (waiting).  Otherwise the lane continues, and its atomic is
// performed later (late), but before anything that orders it: the lane's next strong access or fence, a barrier of its block,
// or the lane's own access to the same address.
#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

#include "address_table.h"
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

  // Reduces `order`, which has `count` lanes, to those that execute the atomic now, in their order, and returns their number.
  // The others go to warp.deferred_mask, or to warp.blocked_mask if an atomic of another warp must execute before theirs.
  uint32_t select_arriving(WarpContext& warp, uint8_t* const* addresses, uint8_t* order, uint32_t count);
  // The same for atomics whose old value is unused: all lanes continue.  `b` and `c`: each lane's operands, of `bytes`.
  void arrive_or_defer(WarpContext& warp, const Instruction& i, uint8_t* const* addresses, const uint8_t* order, uint32_t count,
                       const uint8_t* b, const uint8_t* c, uint32_t bytes, Perform perform);

  bool has_waiting() const { return waiting_.size() || waiting_shared_.size() || late_.size(); }
  const Entry* next() const { return next_.empty() ? nullptr : &next_.front(); }  // executes before all others
  // Removes the next entry, and those after it that may execute together with it: later ones of these lanes of its warp.
  // Returns their lanes.
  uint32_t pop_next(uint32_t lanes);
  void release_all();  // lets all waiting atomics execute, since no other thread can continue
  void release_shared(uint32_t block);  // those in the block's shared memory, since no other thread of the block can continue

  // Perform late atomics: of these lanes, at the addresses of an access, at addresses where another atomic was executed, all.
  // own: a warp's late atomics.
  void settle(DeferralList& own, uint32_t lanes);
  void settle_at(const WarpContext& warp, uint8_t* const* addresses, uint32_t bytes);
  void settle_passed();
  void settle_all();
  void settle_shared(DeferralList& own, const WarpContext& warp);  // of a warp whose block has ended, in shared memory

 private:
  struct Late {
    const Instruction* i;
    Perform perform;
    uint64_t b, c, arrival;
    uint8_t* shared;
    uint32_t block, warp, lane;
  };
  // Some lanes of an instruction, in order.
  struct AddressLanes {
    uint8_t lanes[kWarpSize];
    uint32_t count = 0;
    uint64_t filter = 0;  // bits of the lanes' addresses, so that most searches end at once
    static uint64_t bit(const uint8_t* address) { return uint64_t(1) << (reinterpret_cast<uint64_t>(address) / 4 % 64); }
    void add(uint8_t lane, const uint8_t* address) { lanes[count++] = lane, filter |= bit(address); }
    bool has(uint8_t* const* addresses, const uint8_t* address) const {
      return filter & bit(address) && std::any_of(lanes, lanes + count, [=](uint8_t l) { return addresses[l] == address; });
    }
    template <class F> void take_at(uint8_t* const* addresses, const uint8_t* address, F f);
  };

  void wait(WarpContext& warp, uint8_t* address, uint32_t lane);
  bool release_waiting(const WarpContext& warp, uint8_t* address);
  AddressTable<Entry>& waiting_at(const WarpContext& warp, const uint8_t* address) {
    return is_shared(warp, address) ? waiting_shared_ : waiting_;
  }
  bool note_passed(uint8_t* address);
  Late& defer(WarpContext& warp, uint32_t lane, uint8_t* address);
  void settle_address(uint8_t* address);
  void perform_late(uint32_t slot);
  void perform_removed();
  void release_removed(AddressTable<Entry>& table);
  template <class P> void release_if(AddressTable<Entry>& table, P predicate);
  bool is_pending(const DeferralList::Entry& entry) const {
    return late_.address(entry.slot) && late_[entry.slot].arrival == entry.arrival;
  }

  Schedule& schedule_;
  AddressTable<Entry> waiting_, waiting_shared_;  // in global and in shared memory
  std::deque<Entry> next_;
  uint64_t arrivals_ = 0;
  AddressTable<Late> late_;
  std::vector<uint32_t> slots_;  // removed from a table, empty between calls
  std::vector<uint8_t*> passed_;  // addresses with late atomics where another atomic was executed
  WarpContext proxy_;  // the context in which late atomics are performed
};

}  // namespace vgpu
