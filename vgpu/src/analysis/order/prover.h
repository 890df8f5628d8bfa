// VGPU_CHECK=order: proves from one observed launch that every schedule leaves the same bytes in memory, for this input.  phase.h
// has the method, rules/ what it accepts, and unproved_reason.h what ends a proof.
#pragma once
#include <map>
#include <set>
#include <string>

#include "../launch_report.h"
#include "block_clock.h"
#include "core/launch.h"
#include "core/observer.h"
#include "core/written_bytes.h"
#include "findings.h"
#include "location_history.h"
#include "phase.h"
#include "shadow.h"
#include "unproved_reason.h"

namespace vgpu {

// A copy or a fill.  A copy writes the bytes at `from`, a fill repeats the `value_bytes` low bytes of `value`.
struct Transfer {
  uint64_t to = 0, from = 0, bytes = 0;  // to or from 0: host memory
  uint32_t value = 0, value_bytes = 0;  // of a fill; value_bytes 0: a copy
};

constexpr uint64_t kMaxExploredThreads = 1024;  // of a launch whose accesses are kept for exploration (location_history.h)

class OrderProver : public Observer, public PhaseObserver, public LaunchVerdicts {
 public:
  // capacity: limit of the shadow memory in bytes.  report: receives findings of copies and fills; nullptr: all findings are
  // printed to stderr.
  OrderProver(StreamOrder& order, DeviceMemory& memory, uint64_t capacity, LaunchReport* report);

  void on_launch_begin(const Launch&) override;
  void on_access(const WarpContext&, const Instruction&, const MemoryAccess&) override;
  void on_local_access(const WarpContext&, const Instruction&, const MemoryAccess&) override;
  void on_block_barrier(const WarpContext&, bool all_threads) override;
  void on_warp_sync(const WarpContext&, uint32_t mask) override;
  void on_convergence(const WarpContext& warp) override { step_in_lockstep(warp); }
  void on_function_entry(const WarpContext&, const DecodedFunction&) override;
  void on_schedule_source(const Instruction&, ScheduleSource) override;
  void on_shuffle(const WarpContext&, const Instruction&, const ShuffleSources&) override;
  bool follows_values(const WarpContext& warp) override { return !blocks_.of(warp).unspecified[warp.warp].empty(); }
  void on_instruction(const WarpContext&, const Instruction&, uint32_t group_mask) override;
  void on_launch_end(const Launch&, const LaunchResult&) override;
  void on_fallback(const char* call, uint64_t launch) override;

  // Called just before the transfer.  launch: number of the next launch.
  void on_transfer(StreamOrder::Operation operation, const Transfer& transfer, uint64_t launch);
  // Called when a stream allocates memory at this address (cudaMallocAsync).
  // A stream frees the memory in [begin, end).
  void on_free(StreamOrder::Operation operation, uint64_t begin, uint64_t end, uint64_t launch);
  void on_allocation(StreamOrder::Operation operation, uint64_t address) {
    begin_operation(operation), allocations_[address] = operation;
  }
  // Called when the host reads a value on which its decisions may depend, such as the time of an event.
  void on_host_source(const char* source, uint64_t launch);

  std::string verdict() const override { return verdict_; }

 private:
  void on_unproved(UnprovedReason reason, uint32_t position, uint32_t other_position) override;
  void on_rule(Rule rule) override { findings_.add(rule); }

  struct Range {
    uint64_t begin = 0, end = 0;
    WrittenBytes written;
    bool contains(uint64_t address) const { return address >= begin && address < end; }
  };
  // An address, in which space, its shadow line, the offset in this, and the written bytes there.
  struct ShadowLocation {
    ShadowLine* line = nullptr;
    uint32_t offset = 0;
    WrittenBytes written;
    uint32_t space = 0;  // LocationNumber::space
    uint64_t address = 0;  // in shared memory the offset
    ShadowLocation operator+(uint32_t bytes) const {  // in the same line
      return {line, offset + bytes, written + bytes, space, address + bytes};
    }
  };

  void begin_operation(StreamOrder::Operation operation);
  void enter_function(const DecodedFunction& function);
  bool find(const WarpContext& warp, BlockClock& block, uint8_t* address,
            ShadowLocation& location);  // returns false for the lane's own memory
  void store_unspecified(const ShadowLocation& location, const Accessor& now, LaneAccess access, uint32_t parts,
                         uint32_t part_bytes, const uint8_t* current, uint32_t bytes);
  void report_unspecified(const UnspecifiedValues::Origin& origin, uint32_t position);
  void access_own_memory(const WarpContext& warp, BlockClock& block, const Instruction& i, const MemoryAccess& t,
                         uint32_t lane);
  void check_allocation(uint64_t begin);
  bool find_global(uint8_t* pointer, ShadowLocation& location);
  void observe(const WarpContext& warp, BlockClock& block, const Instruction& i, const MemoryAccess& t);
  void keep_history(const WarpContext& warp, BlockClock& block, const Instruction& i, const MemoryAccess& t, Accessor now);
  void keep_access(const WarpContext& warp, BlockClock& block, uint8_t* address, RecordedAccess access, const Accessor& now,
                   const Instruction& i, bool is_loop);
  void set_current(const ShadowLocation& location, uint32_t bytes);
  void step_in_lockstep(const WarpContext& warp);
  LaneAccess describe(const Instruction& i, const MemoryAccess& t) const;
  bool join_updates(const WarpContext& warp, BlockClock& block, const MemoryAccess& t, const Accessor& now, LaneAccess& access,
                    uint32_t lane);
  void access_lane(const WarpContext& warp, BlockClock& block, const Instruction& i, const MemoryAccess& t, const Accessor& now,
                   LaneAccess access, uint32_t turn);
  bool describe_atomic(const WarpContext& warp, const Instruction& i, const MemoryAccess& t, uint32_t lane,
                       WrittenBytes written, LaneAccess& access, uint8_t* value);
  bool follow_unwritten(const WarpContext& warp, const Instruction& i, uint32_t lane, uint32_t begin, WrittenBytes written,
                        uint32_t bytes);
  bool access_lines(const WarpContext& warp, BlockClock& block, const Instruction& i, const MemoryAccess& t, Accessor& now,
                    LaneAccess& access);
  void prefetch_next(const Instruction& i, uint64_t address);
  bool access_line(const ShadowLocation& location, const Accessor& now, LaneAccess& access, const uint8_t* address,
                   const uint8_t* value);
  void access_element(const ShadowLocation& location, const Accessor& now, LaneAccess access, const uint8_t* current,
                      uint32_t bytes, const uint8_t* value);
  void access_word(const ShadowLocation& location, uint32_t offset, uint32_t bytes, const Accessor& now, LaneAccess access,
                   const uint8_t* start);
  // Adds the accesses to the source of a transfer, or (writes) to its destination.
  void transfer_side(uint64_t address, const Transfer& transfer, const Accessor& now, bool writes);
  void report_before(uint64_t launch, const Findings& findings, const char* operation);

  StreamOrder& stream_order_;
  DeviceMemory& memory_;
  HappensBefore order_;
  Phases phases_;
  ShadowMemory shadow_;
  BlockClocks blocks_;
  LaunchReport* report_;
  StreamOrder::Operation operation_ = 0;
  LocationHistories histories_;
  // What is accessed now, if histories are kept.
  uint32_t current_space_ = 0, current_bytes_ = 0;
  uint64_t current_address_ = 0;
  Range ranges_[2];  // of the allocations that were found last
  Range* recent_ = ranges_;  // the one that was accessed last
  std::map<uint64_t, StreamOrder::Operation> allocations_;  // by address: the last allocation there by a stream
  // The last global address of an instruction.
  struct Visit {
    const Instruction* instruction = nullptr;
    uint64_t address = 0;
  };
  static constexpr uint32_t kVisits = 16;
  Visit visits_[kVisits];
  bool full_ = false;  // the capacity is used up, so that shadow memory is incomplete
  Findings findings_;  // of the current operation
  std::set<const DecodedFunction*> entered_;  // functions of this launch whose code was searched for schedule sources
  const DecodedFunction* kernel_ = nullptr;
  BranchRegions regions_;  // of kernel_
  std::string verdict_;
};

}  // namespace vgpu
