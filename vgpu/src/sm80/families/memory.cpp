// Loads, stores, constants, asynchronous copies and fences.
#include <cstring>

#include "address.h"
#include "select.h"

namespace vgpu::sm80 {
namespace {

// Copy the vectors of kWords words of all lanes, which lie one behind the other in memory.  A local copy shows compilers that
// memory and registers do not overlap, so that they vectorize.
template <uint32_t kWords> void copy_to_registers(const uint8_t* source, uint32_t* registers) {
  alignas(64) uint32_t words[kWarpSize * kWords];
  std::memcpy(words, source, sizeof words);
  for (uint32_t k = 0; k < kWords; k++)
    for (uint32_t l = 0; l < kWarpSize; l++) registers[k * kWarpSize + l] = words[l * kWords + k];
}
template <uint32_t kWords> void copy_from_registers(const uint32_t* registers, uint8_t* destination) {
  alignas(64) uint32_t words[kWarpSize * kWords];
  for (uint32_t k = 0; k < kWords; k++)
    for (uint32_t l = 0; l < kWarpSize; l++) words[l * kWords + k] = registers[k * kWarpSize + l];
  std::memcpy(destination, words, sizeof words);
}

// Loads vectors of kWords elements of type T.
template <class T, uint32_t kWords, Space kSpace> void load(WarpContext& warp, const Instruction& i) {
  uint8_t* addresses[kWarpSize];
  if (!find_addresses(warp, i, kSpace, sizeof(T) * kWords, addresses)) return;
  const bool contiguous = sizeof(T) == 4 && is_contiguous(warp.active_mask, addresses, sizeof(T) * kWords);
  if (kSpace == Space::Local) notify_local_access(warp, i, AccessKind::Read, sizeof(T) * kWords, addresses, {});
  else prepare_access(warp, i, AccessKind::Read, sizeof(T) * kWords, addresses, contiguous);
  uint32_t* d = lane_words(warp, i.d);
  const bool is_observed = i.kind != InstructionKind::Plain;  // such loads let the interpreter recognize loops that wait
  alignas(64) uint32_t old_values[kWarpSize * kWords];
  if (is_observed) std::memcpy(old_values, d, sizeof old_values);
  if (contiguous) {
    copy_to_registers<kWords>(addresses[0], d);
  } else {
    for_each_lane(warp.active_mask, [=, &addresses](uint32_t l) {
      for (uint32_t k = 0; k < kWords; k++) {
        T value;
        std::memcpy(&value, addresses[l] + k * sizeof(T), sizeof value);
        d[k * kWarpSize + l] = static_cast<uint32_t>(value);
      }
    });
  }
  if (is_observed) warp.result_changed |= std::memcmp(old_values, d, sizeof old_values) != 0;
}

template <class T, uint32_t kWords, Space kSpace> void store(WarpContext& warp, const Instruction& i) {
  uint8_t* addresses[kWarpSize];
  if (!find_addresses(warp, i, kSpace, sizeof(T) * kWords, addresses, true)) return;
  const RegisterValues values = register_values(warp, i.c, kWords);
  const bool contiguous = sizeof(T) == 4 && is_contiguous(warp.active_mask, addresses, sizeof(T) * kWords);
  if (kSpace == Space::Local) {
    notify_local_access(warp, i, AccessKind::Write, sizeof(T) * kWords, addresses, values);
  } else {
    prepare_access(warp, i, AccessKind::Write, sizeof(T) * kWords, addresses, contiguous, values);
    ++*warp.visible_writes;
  }
  const uint32_t* registers = lane_words(warp, i.c);
  if (contiguous) {
    copy_from_registers<kWords>(registers, addresses[0]);
    return;
  }
  for_each_lane(warp.active_mask, [=, &addresses](uint32_t l) {
    for (uint32_t k = 0; k < kWords; k++) {
      const T value = static_cast<T>(registers[k * kWarpSize + l]);
      std::memcpy(addresses[l] + k * sizeof(T), &value, sizeof value);
    }
  });
}

template <Space kSpace, bool kLoads> Execute access_function(std::string_view type) {
  const auto function_for = [](auto value, auto count) -> Execute {
    using T = decltype(value);
    constexpr uint32_t kWords = decltype(count)::value;
    return kLoads ? load<T, kWords, kSpace> : store<T, kWords, kSpace>;
  };
  const std::integral_constant<uint32_t, 1> single;
  if (type == "U8") return function_for(uint8_t(), single);
  if (type == "S8") return function_for(int8_t(), single);
  if (type == "U16") return function_for(uint16_t(), single);
  if (type == "S16") return function_for(int16_t(), single);
  if (type.empty()) return function_for(uint32_t(), single);
  if (type == "64") return function_for(uint32_t(), std::integral_constant<uint32_t, 2>());
  return type == "128" ? function_for(uint32_t(), std::integral_constant<uint32_t, 4>()) : nullptr;
}

uint8_t access_bytes(std::string_view type) {
  if (type == "64") return 8;
  if (type == "128") return 16;
  return type == "U8" || type == "S8" ? 1 : type == "U16" || type == "S16" ? 2 : 4;
}

template <Space kSpace> bool select_load(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  select_address(d, c, i);
  i.variant = order_of(c), i.result_unused = c.bits(16, 8) == kRZ;
  if (c.modifier(77) == "CONSTANT") i.schedule_source = ScheduleSource::StaleRead;
  if (i.variant != kWeak) i.kind = InstructionKind::SchedulingPoint;
  return (i.execute = access_function<kSpace, true>(c.modifier(73))) != nullptr;
}

template <Space kSpace> bool select_store(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  select_address(d, c, i);
  i.c = d.read_register(c.bits(32, 8)), i.variant = order_of(c);
  if (kSpace == Space::Global || kSpace == Space::Generic) i.kind = InstructionKind::SchedulingPoint;
  return (i.execute = access_function<kSpace, false>(c.modifier(73))) != nullptr;
}

// Returns the offset of a load from a constant bank.  Its 16 bits in the instruction are signed (CUDA 11's ptxas counts back from a
// register), but more than 32 KiB of parameters need them unsigned.
uint32_t constant_offset(uint32_t base, int32_t offset, uint32_t size) {
  const uint32_t signed_sum = base + static_cast<uint32_t>(offset);
  return signed_sum < size ? signed_sum : base + static_cast<uint16_t>(offset);
}

// Loads from a constant bank at the offset imm plus a register.  c: the bank's size in bytes; vector_registers: its address, in two
// words; 0: bank 0.
template <class T, uint32_t kWords> void load_constant(WarpContext& warp, const Instruction& i) {
  const uint32_t* base = lane_words(warp, i.a);
  const uint8_t* bank = reinterpret_cast<const uint8_t*>(i.vector_registers[0] | uint64_t(i.vector_registers[1]) << 32);
  if (!bank) bank = warp.parameters;
  const uint32_t size = i.c;
  uint32_t *d = lane_words(warp, i.d), results[kWarpSize * kWords];
  for_each_lane(warp.active_mask, [&](uint32_t l) {
    const uint32_t offset = constant_offset(base[l], i.imm, size);
    for (uint32_t k = 0; k < kWords; k++) {
      T value = 0;
      if (offset > size || size - offset < sizeof(T) * kWords) warp.set_fault(KernelFault::OutOfBounds, offset);
      else std::memcpy(&value, bank + offset + k * sizeof(T), sizeof value);
      results[k * kWarpSize + l] = static_cast<uint32_t>(value);
    }
  });
  for_each_lane(warp.active_mask, [&](uint32_t l) {
    for (uint32_t k = 0; k < kWords; k++) d[k * kWarpSize + l] = results[k * kWarpSize + l];
  });
}

// Sets the address and the size of a bank; returns false if it does not exist.
bool select_bank(FunctionDecoder& d, uint32_t bank, Instruction& i) {
  const std::string_view own = d.own_bank(bank);
  const uint8_t* begin = nullptr;
  if (bank == 0) i.c = d.parameter_block_bytes();
  else if (bank == 3) begin = d.banks().variables, i.c = d.banks().variable_bytes;
  else if (bank == 4) begin = d.banks().addresses.data(), i.c = static_cast<uint32_t>(d.banks().addresses.size());
  else begin = reinterpret_cast<const uint8_t*>(own.data()), i.c = static_cast<uint32_t>(own.size());
  const uint64_t address = reinterpret_cast<uint64_t>(begin);
  i.vector_registers[0] = static_cast<uint32_t>(address), i.vector_registers[1] = static_cast<uint32_t>(address >> 32);
  return bank == 0 || begin;
}

Execute constant_function(std::string_view type) {
  if (type == "U8") return load_constant<uint8_t, 1>;
  if (type == "S8") return load_constant<int8_t, 1>;
  if (type == "U16") return load_constant<uint16_t, 1>;
  if (type == "S16") return load_constant<int16_t, 1>;
  if (type.empty()) return load_constant<uint32_t, 1>;
  return type == "64" ? load_constant<uint32_t, 2> : nullptr;
}

// Copies words of a bank that are stored as registers of the frame.
template <uint32_t kWords> void copy_constant(WarpContext& warp, const Instruction& i) {
  const uint32_t* source = lane_words(warp, i.b);
  for (uint32_t k = 0; k < kWords; k++)
    write_lane_words(warp, i.d + k * kWarpRegisterBytes, [=](uint32_t l) { return source[k * kWarpSize + l]; });
}

// LDGSTS writes zeros for lanes whose predicate is false.  With .ZFILL, an address behind a multiple of the size reads that many
// bytes less, from the multiple on, as ptxas encodes the source size of cp.async.
template <uint32_t kBytes> void copy_async(WarpContext& warp, const Instruction& i) {
  uint8_t* destinations[kWarpSize];
  const uint32_t *base = lane_words(warp, i.d), offset = i.vector_registers[kSecondRead], copy_mask = read_predicate(warp, i.e);
  uint32_t offsets[kWarpSize], source_bytes[kWarpSize];
  for (uint32_t l = 0; l < kWarpSize; l++) offsets[l] = base[l] + offset;
  if (!check_offsets(warp, AccessSpace::Shared, offsets, kBytes, destinations)) return;
  notify_schedule_source(warp, i, ScheduleSource::AsynchronousCopy);
  alignas(64) uint64_t sources[kWarpSize];
  generic_addresses(warp, i, sources);
  for (uint32_t l = 0; l < kWarpSize; l++) {
    const uint32_t missing = i.variant ? sources[l] % kBytes : 0;
    sources[l] -= missing;
    source_bytes[l] = copy_mask >> l & 1 ? kBytes - missing : 0;
  }
  copy_asynchronously(warp, i, kBytes, sources, source_bytes, destinations);
}

// All accesses are in order here, except late atomics: deferred ones, whose lanes have continued.
void fence(WarpContext& warp, const Instruction&) {
  if (warp.deferred) warp.deferred->settle(*warp.deferrals, warp.active_mask);
  if (warp.observer) warp.observer->on_fence(warp);
}

void query_shared(WarpContext& warp, const Instruction& i) {
  uint64_t address[kWarpSize];
  generic_addresses(warp, i, address);
  const uint32_t shared = lanes_where([&](uint32_t l) { return is_in_shared_window(address[l]); });
  write_predicate(warp, i.vector_registers[kFirstWritten], shared);
  write_lane_words(warp, i.d, [=](uint32_t l) { return shared >> l & 1; });
}

void do_nothing(WarpContext&, const Instruction&) {}

}  // namespace

bool select_load_global(FunctionDecoder& d, const Decoded& c, Instruction& i) { return select_load<Space::Global>(d, c, i); }
bool select_load_generic(FunctionDecoder& d, const Decoded& c, Instruction& i) { return select_load<Space::Generic>(d, c, i); }
bool select_store_global(FunctionDecoder& d, const Decoded& c, Instruction& i) { return select_store<Space::Global>(d, c, i); }
bool select_store_generic(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  return select_store<Space::Generic>(d, c, i);
}
bool select_load_shared(FunctionDecoder& d, const Decoded& c, Instruction& i) { return select_load<Space::Shared>(d, c, i); }
bool select_store_shared(FunctionDecoder& d, const Decoded& c, Instruction& i) { return select_store<Space::Shared>(d, c, i); }
bool select_load_local(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  i.count = access_bytes(c.modifier(73));
  return select_load<Space::Local>(d, c, i);
}
bool select_store_local(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  i.count = access_bytes(c.modifier(73));
  return select_store<Space::Local>(d, c, i);
}

bool select_load_constant(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  const uint32_t bank = c.bits(54, 5);
  const bool uniform = c.row->uniform_guard;
  i.a = d.constant(0), i.imm = static_cast<int16_t>(c.bits(38, 16));
  for (const Operand& operand : c.row->operands) {
    if (operand.address == AddressKind::Constant && operand.kind == OperandKind::Address) i.a = d.read_register(c.bits(24, 8));
    if (operand.address == AddressKind::IndexedUniformConstant) i.a = d.read_uniform(c.bits(24, 6));
  }
  if (c.modifier(78) != "" && !uniform) return false;
  const std::string_view width = c.modifier(73);
  if (i.a == d.constant(0) && (width.empty() || width == "64")) {
    Source word;
    word.kind = SourceKind::Constant, word.bank = bank, word.offset = static_cast<int32_t>(c.bits(38, 16));
    i.b = width.empty() ? d.read(word) : d.read_pair(word, WideImmediate::UpperHalf);
    i.execute = width.empty() ? copy_constant<1> : copy_constant<2>;
    return true;
  }
  i.execute = constant_function(width);
  return i.execute && select_bank(d, bank, i);
}

bool select_copy_async(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  select_address(d, c, i);
  i.d = d.read_register(c.bits(16, 8));
  i.vector_registers[kSecondRead] = static_cast<uint32_t>(c.encoding.signed_bits(44, 20));
  i.variant = c.modifier(82) == "ZFILL";
  const std::string_view type = c.modifier(73);
  i.execute = type == "128" ? copy_async<16> : type == "64" ? copy_async<8> : copy_async<4>;
  return true;
}

bool select_fence(FunctionDecoder&, const Decoded&, Instruction& i) { return i.execute = fence, true; }
bool select_nothing(FunctionDecoder&, const Decoded&, Instruction& i) { return i.execute = do_nothing, true; }

bool select_query_space(FunctionDecoder& d, const Decoded& c, Instruction& i) {
  select_address(d, c, i);
  return i.execute = query_shared, true;
}

}  // namespace vgpu::sm80
