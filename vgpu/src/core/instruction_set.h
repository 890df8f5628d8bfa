// The interface between the core, which interprets kernels on the CPU, and an instruction set (PTX, machine code): the decoded
// form of functions that a set supplies, and by the included headers the services of the core.
// A set includes only this header and error.h of core/ (tests/vgpu/test_layers.py);
// vgpu/README.md, "An instruction set", lists what a set has to supply.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "access.h"
#include "asynchronous_copy.h"
#include "convergence.h"
#include "deferred_atomics.h"
#include "device_heap.h"
#include "device_output.h"
#include "error.h"
#include "lanes.h"
#include "memory.h"
#include "observer.h"
#include "register_flow.h"
#include "schedule.h"
#include "special_registers.h"
#include "texture.h"
#include "warp_context.h"

namespace vgpu {

// Executes an instruction for the active lanes (WarpContext::active_mask), and sets WarpContext::fault on a fault.
using Execute = void (*)(WarpContext&, const Instruction&);

// What the interpreter does for an instruction besides, or instead of, calling `execute`.
enum class InstructionKind : uint8_t {
  Plain,  // execute
  Load,  // execute; it reads memory that other threads may write
  SchedulingPoint,  // execute; other threads may see its effect, so the schedule may run another warp before it
  Branch,  // imm: the target; variant: a BranchRole
  IndexedBranch,  // a: the index; imm: number of the branch table
  Call,  // imm: number of the call site; a: the function's address, if the site has no callee
  Return,
  Exit,
  Trap,
  Yield,  // lets other convergence groups (lanes at one program counter) and other warps run first
  // A barrier of the block.  a: its number; count: a BarrierThreads; b: the number of threads; variant: a BarrierMode; c: the
  // predicate, which is inverted if e is set; d: the result.
  Barrier,
  WarpSync,  // execute, as soon as all lanes in the mask b have arrived
  ConditionalBranch,  // imm: the target; c: a second predicate besides the guard, which is inverted if e is set
  ConditionalExit,  // c and e as for ConditionalBranch
  ComputedBranch,  // the target is (a + imm) / e; a: a 32-bit register; e: bytes of an instruction; variant: a BranchRole
  DivergenceBranch,  // imm: the target; a: a mask of lanes, which is inverted if e is set; variant: a DivergenceTest
  LeaveWarpSync,  // execute, which removes lanes from the sets that others wait for at a WarpSync
};

// Of a Branch or ComputedBranch, as its variant: whether it calls a subroutine of the same function, or returns from one to the
// instruction behind the call.
enum BranchRole : uint8_t { kJump, kSubroutineCall, kSubroutineReturn };

// Whether a DivergenceBranch is taken if lanes of its mask that have not exited are in other groups, or if none are.
enum DivergenceTest : uint8_t { kIfDiverged, kIfConverged };

// bar.sync, bar.arrive, and bar.red with .popc, .and and .or.
enum BarrierMode : uint8_t { kBarrierSync, kBarrierArrive, kBarrierCount, kBarrierAll, kBarrierAny };

// Who takes part: all threads, as many as b says, or as many as a says above its low 16 bits, which are the barrier's number.
enum BarrierThreads : uint8_t { kAllThreads = 1, kSomeThreads, kNumberAndThreads };

// WarpSync: whether the lanes go on without others that reach the same instructions, until the next control flow.
enum WarpSyncMode : uint8_t { kWithOthers, kExclusive };

// Why the schedule, and not the program, determines an instruction's result.  DependentLaunch: the next launch may begin before
// this one has ended.  StaleRead: a read by a non-coherent cache of memory that the same launch has written.
enum class ScheduleSource : uint8_t {
  None,
  Clock,
  Processor,  // %smid, %warpid, %gridid and the like
  ActiveLanes,
  InactiveLane,  // the value of an inactive lane
  PartialBarrierVote,  // a barrier's vote in which not all of the block's threads take part
  Heap,  // malloc and free
  Print,  // printf
  DependentLaunch,
  StaleRead,
  AsynchronousCopy,  // completes at any time before the program waits for it
};

// Whether an atomic returns the old value to a register that another instruction names.
enum class OldValue : uint8_t { NoAtomic, Used, Unused };

// One decoded instruction.  Registers are byte offsets into a warp's call frame: 32 consecutive values of the register's type, or
// for a predicate a mask with one bit for each lane.
struct Instruction {
  Execute execute = nullptr;
  InstructionKind kind = InstructionKind::Plain;
  bool negated = false;  // the guard is inverted
  uint8_t count = 1;  // of vector_registers
  uint8_t variant = 0;  // its meaning depends on `kind` and `execute`
  int32_t guard = -1;  // a predicate register; -1: none
  uint32_t d = 0, a = 0, b = 0, c = 0, e = 0;
  uint32_t vector_registers[4] = {0, 0, 0, 0};
  int64_t imm = 0;
  uint32_t line = 0;  // in the module's text, or offset of the machine code
  uint32_t position = 0;  // its number among all decoded instructions (core/code_position.h); 0: none
  bool is_frequent = false;  // of an atomic whose old value is used: it is in a loop, or one of many
  // For analyses:
  bool block_scope = false;  // of an atomic: it is atomic only for threads of its block
  OldValue old_value = OldValue::NoAtomic;
  bool result_unused = false;  // no other instruction names the registers that it writes
  ScheduleSource schedule_source = ScheduleSource::None;
  // Of a compare-and-swap in an update loop, which repeats it until it succeeds (ptx/update_loop.h): the operation of the loop,
  // whose operand is in vector_registers; None: it is not in such a loop.
  AtomicOperation update = AtomicOperation::None;
  ValueType update_type = ValueType::Unsigned;
};

// Whether a lane may continue before its atomic (deferred_atomics.h): it is relaxed, and its old value is unused.
inline bool is_deferrable(const Instruction& i) { return i.old_value == OldValue::Unused && i.variant == kStrong; }

// The arguments and results of a call, in the caller's scratch space.
struct CallSite {
  std::string callee;  // empty: called through a pointer
  uint32_t parameter_bytes = 0;  // of the callee, as the caller declares it
  struct ArgumentCopy { uint32_t from, to, size; };
  std::vector<ArgumentCopy> arguments, results;
};

// A line of a source file, as the compiler noted it in the code.
struct SourceLine {
  std::string file;
  uint32_t line = 0;
};

// A function whose code is part of another one's, with which it was linked.
struct LinkedPart {
  std::string name;
  size_t begin;  // its first instruction
  uint32_t first_line;  // what Instruction::line counts from there
  std::map<uint32_t, std::vector<SourceLine>> source_lines;  // as DecodedFunction::source_lines
};

// A decoded function.
struct DecodedFunction {
  std::string name;
  std::vector<LinkedPart> parts;  // in the order of their code; empty: all of the code is the function's own
  std::vector<Instruction> code;
  std::vector<std::vector<uint32_t>> branch_tables;
  std::vector<CallSite> calls;
  std::vector<std::string> address_taken;  // functions whose addresses this one takes
  // Whether its instructions have the fields for analyses: unused results, schedule sources, update loops.
  bool is_provable = false;
  // Whether converged lanes execute each instruction in lockstep, as its compiler assumes.
  bool runs_in_lockstep = false;
  RegisterFlows flows;  // of its instructions; empty: not known
  uint32_t register_bytes = 0;  // of one warp's call frame; special registers come first
  std::vector<uint8_t> constants;  // stored in each frame behind the registers
  // A word behind the registers that each launch sets: of its parameters, or of a variable that kernels only read.
  struct LaunchConstant {
    uint32_t to;  // offset in the frame, of the word for 32 lanes
    uint32_t parameter;  // offset in the parameters
    const uint8_t* variable;  // the word's address; nullptr: it is a parameter
  };
  std::vector<LaunchConstant> launch_constants;
  uint32_t parameter_bytes = 0, local_bytes = 0, scratch_bytes = 0, shared_bytes = 0;
  uint32_t shared_guards = 0;  // bytes of the guard gaps between shared variables (VGPU_CHECK=memcheck)
  struct Variable {
    std::string name;
    uint32_t begin, end;
  };
  std::vector<Variable> shared_variables;
  uint32_t declared_shared() const { return shared_bytes - shared_guards; }
  bool contains(const Instruction& i) const { return &i >= code.data() && &i < code.data() + code.size(); }
  const char* position_unit = "line";  // of Instruction::line: "line" of a text, or "offset" in machine code
  // Source lines by the first Instruction::line of their code: that of the instruction, and those at which it was inlined.
  std::map<uint32_t, std::vector<SourceLine>> source_lines;
  uint32_t local_align = 16, shared_align = 16;  // alignment of local and shared variables
};

// Numbers the instructions of a function (Instruction::position) before its first use.
constexpr uint32_t kMaxCodePosition = 1 << 27;
void number_instructions(DecodedFunction& function);

// Sets Instruction::is_frequent in a decoded function.
void mark_frequent_atomics(DecodedFunction& function);

// The functions of a loaded module, which are decoded at their first use; throws Unsupported if one cannot be decoded.
class Functions {
 public:
  virtual ~Functions() = default;
  virtual const DecodedFunction* program(const std::string& name) = 0;  // nullptr: no such function
  virtual const DecodedFunction* program_at(
      uint64_t address) = 0;  // of a function whose address was taken; nullptr: no such function
};

}  // namespace vgpu
