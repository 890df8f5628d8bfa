// Where a memory instruction's lanes go.  Of a core's Instruction: a, the register with the address, or the first of a pair;
// b, a uniform register that is added; imm, an offset; vector_registers[kFlags], by how much a shared address is shifted.
#pragma once
#include "operands.h"

namespace vgpu::sm80 {

enum class Space : uint8_t { Global, Generic, Shared, Local };

// Host addresses of the active lanes; false, with the fault set, where one may not be touched.
bool find_addresses(WarpContext& warp, const Instruction& i, Space space, uint32_t bytes, uint8_t* at[kWarpSize],
                    bool writes = false);

// The lanes' generic addresses, of pairs of registers.
void generic_addresses(WarpContext& warp, const Instruction& i, uint64_t address[kWarpSize]);
bool is_in_shared_window(uint64_t address);
bool is_in_local_window(uint64_t address);

// Fills in a, b, imm and the shift from what the row says of its address.
void select_address(FunctionDecoder& d, const Decoded& c, Instruction& i);

// The order of an access that a row's modifier names; CONSTANT is weak, whatever others say is strong.
uint8_t order_of(const Decoded& c);

// Atomics that come late come before an access to the same place, and an observer is told of it.
void announce(WarpContext& warp, const Instruction& i, AccessKind kind, uint32_t bytes, uint8_t* const at[kWarpSize],
              RegisterValues values = {});

}  // namespace vgpu::sm80
