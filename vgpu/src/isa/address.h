// Where an instruction's operand lies, lane by lane, and whether it may be touched.
#pragma once
#include "../machine/lanes.h"
#include "../machine/observer.h"
#include "decoder.h"

namespace vgpu {

enum class Where : uint8_t { Generic, Shared, Local, Param, Scratch };

constexpr std::string_view kSpacesOfAccesses = "global|const|shared|shared::cta|local|param|param::entry|param::func";

// The space that a statement's words name; Generic for global and const ones, too.
Where where_of(const Statement& s);

// What its words say of its order among other threads' accesses.
uint8_t order_of(const Statement& s);

// Sets a (the base register, or what stands for it), e (its width in bytes, 0: none) and imm.  The space may change: a
// parameter that a body declares lies in the scratch space, and a variable's name says where a generic address points to.
void decode_address(Decoder& d, const Statement& s, const Operand& o, Where& where, Instruction& i);

// Host addresses of the active lanes for an access of `bytes`; false, with the fault set, where one may not be touched.
bool addresses(Lanes& w, const Instruction& i, Where where, uint32_t bytes, uint8_t* at[kLanes], bool writes = false);

// May the lane touch this generic address: the device's, in the block's shared memory or in the lane's own?
bool reachable(Lanes& w, uint32_t lane, uint64_t address, uint32_t bytes, bool writes = false);

}  // namespace vgpu
