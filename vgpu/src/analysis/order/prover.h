// VGPU_CHECK=order: does one observed launch show that every schedule leaves the same bytes, for this input?  See phase.h for
// how, rules/ for what is accepted, and reason.h for what ends a proof.
#pragma once
#include <set>
#include <string>

#include "../launch_report.h"
#include "block_clock.h"
#include "core/launch.h"
#include "core/observer.h"
#include "findings.h"
#include "phase.h"
#include "reason.h"
#include "shadow.h"

namespace vgpu {

// What a copy or fill does to memory, besides what a kernel does: bytes of `pattern`, again and again, or those at `from`.
struct Transfer {
  uint64_t to = 0, from = 0, bytes = 0;  // to or from 0: the host's own
  uint32_t value = 0, value_bytes = 0;   // of a fill
};

class OrderProver : public Observer, public PhaseObserver, public LaunchVerdicts {
 public:
  // capacity: bytes of its own.  report: gets what is not of a launch; without one, stderr gets all that is not proved.
  OrderProver(StreamOrder& order, DeviceMemory& memory, uint64_t capacity, LaunchReport* report);

  void on_launch_begin(const Launch&) override;
  void on_access(const WarpContext&, const Instruction&, const MemoryAccess&) override;
  void on_block_barrier(const WarpContext&, bool whole) override;
  void on_warp_sync(const WarpContext&, uint32_t mask) override;
  void on_convergence(const WarpContext& warp) override { step_in_lockstep(warp); }
  void on_function_entry(const DecodedFunction&) override;
  void on_schedule_source(const Instruction&, ScheduleSource) override;
  void on_launch_end(const Launch&, const LaunchResult&) override;
  void on_fallback(const char* call, uint64_t launch) override;

  // Just before it is done; launch: the next one's number.
  void on_transfer(StreamOrder::Operation operation, const Transfer& transfer, uint64_t launch);
  // What a program on the host may base a decision on.
  void on_host_source(const char* what, uint64_t launch);

  std::string verdict() const override { return verdict_; }

 private:
  void on_unproved(Reason reason, uint32_t line, uint32_t other_line) override {
    findings_.add(reason_name(reason), line, other_line);
  }
  void on_rule(Rule rule) override { findings_.add(rule); }

  struct Range {
    uint64_t begin = 0, end = 0;
    uint8_t* written = nullptr;
  };
  // A place: which line it lies in, at which byte of it, and what is known to be written there (nullptr: all is).
  struct Place {
    ShadowLine* line = nullptr;
    uint32_t offset = 0;
    uint8_t* written = nullptr;
  };

  void begin_operation(StreamOrder::Operation operation);
  bool find(const WarpContext& warp, BlockClock& block, uint8_t* at, Place& place);  // false: the lane's own memory
  bool find_global(uint8_t* at, Place& place);
  void observe(const WarpContext& warp, BlockClock& block, const Instruction& i, const MemoryAccess& t);
  void step_in_lockstep(const WarpContext& warp);
  PlaceAccess describe(const Instruction& i, const MemoryAccess& t) const;
  void access_lane(const WarpContext& warp, BlockClock& block, const Instruction& i, const MemoryAccess& t, const Accessor& now,
                   PlaceAccess access, uint32_t lane);
  bool access_rows(const WarpContext& warp, BlockClock& block, const MemoryAccess& t, Accessor now, PlaceAccess access);
  bool access_row(const Place& place, const Accessor& now, PlaceAccess& access, const uint8_t* at, const uint8_t* value);
  void access_element(const Place& place, const Accessor& now, PlaceAccess access, const uint8_t* current, uint32_t bytes,
                      const uint8_t* value);
  void access_word(const Place& place, uint32_t offset, uint32_t bytes, const Accessor& now, PlaceAccess access,
                   const uint8_t* start);
  void transfer_side(uint64_t at, const Transfer& transfer, const Accessor& now, bool writes);
  void tell_before(uint64_t launch, const Findings& findings, const char* what);

  StreamOrder& stream_order_;
  DeviceMemory& memory_;
  HappensBefore order_;
  Phases phases_;
  ShadowMemory shadow_;
  BlockClocks blocks_;
  LaunchReport* report_;
  StreamOrder::Operation operation_ = 0;
  Range recent_;
  bool full_ = false;  // some of the shadow is lost
  Findings findings_;  // of the operation under way
  std::set<const DecodedFunction*> entered_;
  std::string verdict_;
};

}  // namespace vgpu
