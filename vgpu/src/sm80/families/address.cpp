// Computes the host addresses of memory instructions from registers, and from the windows of shared and local memory.
#include "address.h"

#include "sm80/launch_bank.h"

namespace vgpu::sm80 {
namespace {

// Replaces addresses in the windows by host addresses; an address behind the memory's end is a fault.
bool to_host_addresses(WarpContext& warp, uint64_t address[kWarpSize], uint32_t bytes) {
  bool is_ok = true;
  for_each_lane(warp.active_mask, [&](uint32_t l) {
    const bool shared = is_in_shared_window(address[l]);
    if (!shared && !is_in_local_window(address[l])) return;
    const uint64_t offset = address[l] - (shared ? kSharedWindowBegin : kLocalWindowBegin);
    const uint64_t size = shared ? warp.shared_bytes : warp.local_bytes;
    if (offset + bytes > size) {
      warp.set_fault(KernelFault::OutOfBounds, address[l]), is_ok = false;
      return;
    }
    const uint8_t* begin = shared ? warp.shared : warp.local + size_t(l) * warp.local_bytes;
    address[l] = reinterpret_cast<uint64_t>(begin) + offset;
  });
  return is_ok;
}

// The addresses from kOutsideBegin on, of outside functions, follow the windows.
bool is_in_window(uint64_t address) { return address - kSharedWindowBegin < kOutsideBegin - kSharedWindowBegin; }

}  // namespace

bool is_in_shared_window(uint64_t address) { return address - kSharedWindowBegin < kWindowBytes; }
bool is_in_local_window(uint64_t address) { return address - kLocalWindowBegin < kWindowBytes; }

void generic_addresses(WarpContext& warp, const Instruction& i, uint64_t address[kWarpSize]) {
  const uint32_t* base = lane_words(warp, i.a);
  const uint64_t offset = static_cast<uint64_t>(i.imm);
  VGPU_INDEPENDENT
  for (uint32_t l = 0; l < kWarpSize; l++) address[l] = pair_of(base, l) + offset;
}

bool find_addresses(WarpContext& warp, const Instruction& i, Space space, uint32_t bytes, uint8_t* host_addresses[kWarpSize],
                    bool writes) {
  if (space == Space::Global)
    return check_addresses(warp, lane_words(warp, i.a), static_cast<uint64_t>(i.imm), bytes, host_addresses, writes);
  if (space == Space::Generic) {
    alignas(64) uint64_t address[kWarpSize];
    generic_addresses(warp, i, address);
    if (lanes_where([&](uint32_t l) { return is_in_window(address[l]); }) & warp.active_mask &&
        !to_host_addresses(warp, address, bytes))
      return false;
    return check_addresses(warp, address, bytes, host_addresses, writes);
  }
  const uint32_t *base = lane_words(warp, i.a), *uniform_offset = lane_words(warp, i.b);
  const uint32_t offset = static_cast<uint32_t>(i.imm), shift = i.vector_registers[kFlags];
  alignas(64) uint32_t offsets[kWarpSize];
  VGPU_INDEPENDENT
  for (uint32_t l = 0; l < kWarpSize; l++) offsets[l] = (base[l] << shift) + uniform_offset[l] + offset;
  return check_offsets(warp, space == Space::Shared ? AccessSpace::Shared : AccessSpace::Local, offsets, bytes, host_addresses);
}

// AsyncTo, AsyncFrom: the destination and the source of LDGSTS (cp.async).
void select_address(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  i.b = d.constant(0), i.vector_registers[kFlags] = 0;
  for (const Operand& operand : c.row->operands) {
    if (operand.kind != OperandKind::Address || operand.address == AddressKind::AsyncTo) continue;
    i.a = d.read_register(c.bits(24, 8));
    i.imm = operand.address == AddressKind::AsyncFrom ? int64_t(c.bits(32, 12)) : c.encoding.signed_bits(40, 24);
    const bool short_address = operand.address == AddressKind::Shared || operand.address == AddressKind::Local;
    if (operand.at && short_address && c.bit(91)) i.b = d.read_uniform(c.bits(operand.at, 6));
    if (operand.address == AddressKind::Shared && c.bits(78, 2)) i.vector_registers[kFlags] = c.bits(78, 2) + 1;  // x4, x8, x16
    const bool wide = operand.address == AddressKind::Atomic ? c.bit(70) : c.bit(90);
    const bool has_width = operand.address == AddressKind::Global || operand.address == AddressKind::Reduction ||
                           operand.address == AddressKind::Atomic;
    if (has_width && !wide && c.bits(24, 8) != kRZ) throw Unsupported("an address of 32 bits");
  }
}

uint8_t order_of(const Decoded& c) {
  const std::string_view order = c.modifier(77);
  return order.empty() || order == "CONSTANT" ? kWeak : kStrong;
}

// First performs late atomics at these addresses: deferred ones, whose lanes have continued.
void prepare_access(WarpContext& warp, const Instruction& i, AccessKind kind, uint32_t bytes,
                    uint8_t* const addresses[kWarpSize], bool contiguous, RegisterValues values) {
  if (warp.deferred) warp.deferred->settle_at(warp, addresses, bytes);
  if (!warp.observer) return;
  MemoryAccess access = {kind, i.variant, OrderSensitivity::Nothing, bytes, addresses, nullptr, 0, values};
  access.contiguous = contiguous;
  notify_access(warp, i, access);
}

}  // namespace vgpu::sm80
