// Addresses of memory instructions.  Fields of Instruction: a is the register with the address, or the first of a pair; b a uniform
// register that is added; imm an offset; vector_registers[kFlags] the shift of a shared address.
#pragma once
#include "operands.h"

namespace vgpu::sm80 {

enum class Space : uint8_t { Global, Generic, Shared, Local };

// Computes the host addresses of the active lanes; returns false, and sets the fault, if an access is not permitted.
bool find_addresses(WarpContext& warp, const Instruction& i, Space space, uint32_t bytes, uint8_t* at[kWarpSize],
                    bool writes = false);

// Computes the lanes' generic addresses from pairs of registers.
void generic_addresses(WarpContext& warp, const Instruction& i, uint64_t address[kWarpSize]);
bool is_in_shared_window(uint64_t address);
bool is_in_local_window(uint64_t address);

// Sets a, b, imm and the shift from the address operand of the row.
void select_address(FunctionDecoder& d, const Decoded& c, Instruction& i);

// Returns the memory order of the row's modifier: weak for none and for CONSTANT, strong for others.
uint8_t order_of(const Decoded& c);

// Prepares an access: performs late atomics (deferred ones, whose lanes have continued) at its addresses, and notifies the
// observer, which is an analysis.  contiguous: is_contiguous() of the addresses.
void prepare_access(WarpContext& warp, const Instruction& i, AccessKind kind, uint32_t bytes, uint8_t* const at[kWarpSize],
                    bool contiguous, RegisterValues values = {});

}  // namespace vgpu::sm80
