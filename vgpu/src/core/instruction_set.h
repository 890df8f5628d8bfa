// The contract between the core and an instruction set: what a set decodes its code to, and, by the headers below, what
// its instructions may ask of the core.  A set includes this header of core/ and no other (tests/vgpu/test_layers.py);
// vgpu/README.md, "An instruction set", says what it has to supply.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "access.h"
#include "convergence.h"
#include "deferred_atomics.h"
#include "device_heap.h"
#include "device_output.h"
#include "error.h"
#include "lanes.h"
#include "memory.h"
#include "observer.h"
#include "schedule.h"
#include "special_registers.h"
#include "texture.h"
#include "warp_context.h"

namespace vgpu {

// Does what the instruction says for the active lanes (WarpContext::active_mask); a fault is left in WarpContext::fault.
using Execute = void (*)(WarpContext&, const Instruction&);

// What the interpreter has to do besides, or instead of, calling `execute`.
enum class InstructionKind : uint8_t {
  Plain,    // execute
  Load,             // execute; it reads what others may have written meanwhile
  SchedulingPoint,  // execute; others may see it, so a schedule may let another warp go first
  Branch,   // imm: the target
  IndexedBranch,  // a: the index; imm: the table of targets
  Call,     // imm: the site; a: the function's address, where the site names none
  Return,
  Exit,
  Trap,
  Yield,    // others go first, as far as there are any
  Barrier,  // of the block; a: its number; b: threads, where count is 2; variant: a BarrierMode; c: the predicate (with e inverted), d: the result
  WarpSync,  // execute, as soon as all lanes that b names have come
  ConditionalBranch,  // imm: the target; c: a predicate that must hold besides the guard, or with e must not
  ConditionalExit,  // likewise
  ComputedBranch,  // a: a register of 32 bits; the target is that and imm, divided by e, the bytes of an instruction
  DivergenceBranch,  // imm: the target; a: names lanes, or with e all others; variant: a DivergenceTest
  LeaveWarpSync,  // execute, which takes lanes out of sets that others wait for at a WarpSync
};

// Who comes to a barrier waits, or only arrives; or waits for how many predicates hold, whether all do, or any.
enum DivergenceTest : uint8_t { kIfDiverged, kIfConverged };

enum BarrierMode : uint8_t { kBarrierSync, kBarrierArrive, kBarrierCount, kBarrierAll, kBarrierAny };

// What a schedule, and not the program, decides of an instruction's result.  DependentLaunch: the next launch may begin
// before this one has ended.  StaleRead: of what the same launch has written.
enum class ScheduleSource : uint8_t {
  None,
  Clock,
  Processor,  // on which multiprocessor, in which of its places, in which grid
  ActiveLanes,
  InactiveLane,  // a value of a lane that takes no part
  PartialVote,  // at a barrier, of some of a block's threads
  Heap,
  Output,
  DependentLaunch,
  StaleRead,
  AsynchronousCopy,  // it is over at some time before it is waited for
};

// Registers are byte offsets into a warp's frame: 32 lanes of their type one after the other, or, of a predicate, one bit
// a lane.
struct Instruction {
  Execute execute = nullptr;
  InstructionKind kind = InstructionKind::Plain;
  bool negated = false;  // the guard
  uint8_t count = 1;  // of v
  uint8_t variant = 0;  // the family's own
  int32_t guard = -1;  // a predicate register
  uint32_t d = 0, a = 0, b = 0, c = 0, e = 0;
  uint32_t vector_registers[4] = {0, 0, 0, 0};
  int64_t imm = 0;
  uint32_t line = 0;  // of the module's text
  // For analyses, as far as the set knows it.
  bool result_unused = false;  // no other instruction names the registers that it writes
  ScheduleSource source = ScheduleSource::None;
  // Of a compare-and-swap: the update that its loop makes of memory, with the operand in vector_registers; None: it is no
  // such loop.
  AtomicOperation update = AtomicOperation::None;
  ValueType update_type = ValueType::Unsigned;
};

// Where `call` takes its arguments from and puts its results, in the caller's scratch space.
struct CallSite {
  std::string callee;  // empty: called through a pointer
  uint32_t parameter_bytes = 0;  // that the pieces were laid out for
  struct ArgumentCopy { uint32_t from, to, size; };
  std::vector<ArgumentCopy> arguments, results;
};

// A function ready to run.
struct DecodedFunction {
  std::string name;
  std::vector<Instruction> code;
  std::vector<std::vector<uint32_t>> branch_tables;
  std::vector<CallSite> calls;
  std::vector<std::string> address_taken;  // functions whose addresses it takes
  // Its instructions say what a proof needs: unused results, sources that a schedule decides, update loops.
  bool is_provable = false;
  // Lanes that are together do each instruction at once, before any of them does the next one: its compiler relies on that.
  bool runs_in_lockstep = false;
  uint32_t register_bytes = 0;  // of one warp's frame; the special ones come first
  std::vector<uint8_t> constants;  // what the frame holds behind the registers, the same for every warp
  // Words behind the registers that each launch brings: of its parameters, or of a variable that kernels only read.
  struct LaunchConstant {
    uint32_t to;  // in the frame: the word for 32 lanes
    uint32_t parameter;  // bytes
    const uint8_t* variable;  // nullptr: of the parameters
  };
  std::vector<LaunchConstant> launch_constants;
  uint32_t parameter_bytes = 0, local_bytes = 0, scratch_bytes = 0, shared_bytes = 0;
  uint32_t shared_guards = 0;  // of the shared bytes those that lie between variables and are nobody's (VGPU_CHECK=memcheck)
  struct Variable {
    std::string name;
    uint32_t begin, end;
  };
  std::vector<Variable> shared_variables;
  uint32_t declared_shared() const { return shared_bytes - shared_guards; }
  const char* position = "line";  // what Instruction::line counts: lines of a text, or bytes of machine code ("offset")
  uint32_t local_align = 16, shared_align = 16;  // of each lane's local variables; of the block's shared ones
};

// The functions of a loaded module, decoded when they are first asked for.  Unsupported: one cannot be decoded.
class Functions {
 public:
  virtual ~Functions() = default;
  virtual const DecodedFunction* program(const std::string& name) = 0;  // nullptr: no function of that name
  virtual const DecodedFunction* program_at(uint64_t address) = 0;  // of a function whose address was taken; nullptr: none
};

}  // namespace vgpu
