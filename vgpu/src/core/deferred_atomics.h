// Deferred atomics: an atomic that lets another one at its address execute first.  Whether a lane's atomic is deferred is a
// scheduling decision.  It waits until another atomic was executed at its address, so one decision can exchange two
// neighboring atomics and nothing else; if several wait at an address, the next atomic overtakes all of them.  A waiting
// atomic also executes if nothing can overtake it: no thread that could use its memory can continue.
//
// A lane whose atomic returns the old value is suspended with it (waiting).  If a thread executes such atomics often
// (Instruction::is_frequent), the other lanes of its warp wait for it, and fewer are suspended: lanes that were split each time
// would end one by one.  Otherwise the lane continues, and its atomic is performed later (late), but before anything that orders
// it: the lane's next strong access or fence, a barrier of its block, or the lane's own access to the same address.
#pragma once
#include <cstdint>
#include <vector>

#include "address_table.h"
#include "warp_context.h"

namespace vgpu {

class Block;
struct Instruction;
class Schedule;

class DeferredAtomics {
 public:
  // Lanes of a warp that wait with one execution of an atomic.
  struct Suspension {
    uint64_t arrival;
    Block* block;
    uint32_t warp;
    uint32_t waiting, released;  // lanes; the released ones may execute
  };
  // Performs a lane's atomic with the operands b and c.
  using Perform = void (*)(WarpContext& warp, const Instruction& i, uint8_t* address, uint32_t lane, uint64_t b, uint64_t c);

  explicit DeferredAtomics(Schedule& schedule) : schedule_(schedule) {}

  // The active lanes arrive in ascending order.  Writes those that execute the atomic now, in their order, to `order`, and
  // returns their number.  The others go to warp.deferred_mask, or to warp.blocked_mask if an atomic of another warp must execute
  // before theirs.
  uint32_t select_arriving(WarpContext& warp, const Instruction& i, uint8_t* const* addresses, uint8_t order[kWarpSize]);
  // The same for atomics whose old value is unused: all lanes continue.  `b` and `c`: each lane's operands, of `bytes`.
  void arrive_or_defer(WarpContext& warp, const Instruction& i, uint8_t* const* addresses, const uint8_t* b, const uint8_t* c,
                       uint32_t bytes, Perform perform);

  bool has_waiting() const { return waiting_.size() || waiting_shared_.size() || late_.size(); }
  // The suspension whose released lanes execute before all other lanes; nullptr: there is none.
  const Suspension* next() const { return released_.empty() ? nullptr : &suspensions_[released_.back()]; }
  uint32_t pop_next();  // returns released lanes of the next suspension, which execute together; they are no longer in it
  void release_all();  // lets all waiting atomics execute, since no other thread can continue
  // The same for those in the block's shared memory, since no other thread of the block can continue.
  void release_shared(const Block& block);

  // Perform late atomics: of these lanes, at the addresses of an access, at addresses where another atomic was executed, all.
  // own: a warp's late atomics.
  void settle(DeferralList& own, uint32_t lanes);
  void settle_at(const WarpContext& warp, uint8_t* const* addresses, uint32_t bytes);
  void settle_passed() {
    if (!passed_.empty()) settle_at_passed();
  }
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
  struct Waiting { uint32_t suspension, lane; };
  // Some lanes of an instruction.
  struct AddressLanes {
    uint32_t lanes = 0;
    uint64_t filter = 0;  // bits of the lanes' addresses, so that most searches end at once
    static uint64_t bit(const uint8_t* address) { return uint64_t(1) << (reinterpret_cast<uint64_t>(address) / 4 % 64); }
    void add_if(bool condition, uint32_t lane, const uint8_t* address) {
      lanes |= uint32_t(condition) << lane, filter |= condition ? bit(address) : 0;
    }
    uint32_t at(uint8_t* const* addresses, const uint8_t* address) const;  // the lanes with this address
  };

  static bool have_distinct_addresses(uint32_t lanes, uint8_t* const* addresses);
  uint32_t overtaking_lanes(const WarpContext& warp, uint8_t* const* addresses, uint32_t lanes);
  void suspend(WarpContext& warp, uint8_t* const* addresses, uint32_t waiting, uint32_t released);
  void arrive(WarpContext& warp, const Instruction& i, uint8_t* address, uint32_t lane, uint64_t b, uint64_t c,
              Perform perform);
  bool release_waiting(const WarpContext& warp, uint8_t* address);
  AddressTable<Waiting>& waiting_at(const WarpContext& warp, const uint8_t* address) {
    return is_shared(warp, address) ? waiting_shared_ : waiting_;
  }
  bool note_passed(uint8_t* address);
  Late& defer(WarpContext& warp, uint32_t lane, uint8_t* address);
  void settle_address(uint8_t* address);
  void settle_at_passed();
  void perform_late(uint32_t slot);
  void sort_removed();
  void perform_removed();
  void release(uint32_t suspension, uint32_t lanes);
  void enqueue(uint32_t suspension);
  void release_removed(AddressTable<Waiting>& table);
  template <class P> void release_if(AddressTable<Waiting>& table, P predicate);
  bool is_pending(const DeferralList::Entry& entry) const { return late_.generation(entry.slot) == entry.generation; }

  Schedule& schedule_;
  AddressTable<Waiting> waiting_, waiting_shared_;  // in global and in shared memory
  std::vector<Suspension> suspensions_;
  std::vector<uint32_t> free_suspensions_;
  std::vector<uint32_t> released_;  // suspensions with released lanes, the earliest last: atomics at an address stay in order
  uint64_t arrivals_ = 0;
  AddressTable<Late> late_;
  int64_t late_begin_ = 0, late_end_ = 0;  // contains the addresses of late atomics
  std::vector<uint32_t> slots_;  // removed from a table, empty between calls
  std::vector<uint8_t*> passed_;  // addresses with late atomics where another atomic was executed
  WarpContext proxy_;  // the context in which late atomics are performed
};

}  // namespace vgpu
