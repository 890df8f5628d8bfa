// Finds how values flow through the instructions of a PTX statement.  What is not known to be followed is ValueFlow::Other.
#include "register_flows.h"

#include <algorithm>

#include "ptx/families/address.h"

namespace vgpu {
namespace {

constexpr uint32_t kWordBytes = 4;

// Whether the family's instructions compute each lane's results from nothing but the lane's registers.
bool computes(DecodeFunction family) {
  static const DecodeFunction families[] = {decode_carry, decode_integer, decode_bits,    decode_float, decode_half,
                                            decode_video, decode_compare, decode_convert, decode_move};
  return std::find(std::begin(families), std::end(families), family) != std::end(families);
}

void add_register(std::vector<uint32_t>& registers, uint32_t offset) {
  if (is_frame_register(offset)) registers.push_back(offset);
}

// passed_reads: how many of the last reads are what the flow passes on: here all operands behind the mask of lanes (i.b), for a
// store the stored registers behind its address.
RegisterFlow flow_of_shuffle(const Instruction& i, const std::vector<uint32_t>& writes) {
  RegisterFlow flow = {ValueFlow::Shuffle, {}, 0, writes};
  add_register(flow.reads, i.b);
  const size_t mask = flow.reads.size();
  for (uint32_t operand : {i.a, i.c, i.e}) add_register(flow.reads, operand);
  flow.passed_reads = static_cast<uint32_t>(flow.reads.size() - mask);
  return flow;
}

// Of a store to any memory but that of parameters, in which values are not followed.
RegisterFlow flow_of_store(const Instruction& i) {
  RegisterFlow flow = {ValueFlow::Store, {}, 0, {}};
  if (i.e) add_register(flow.reads, i.a);
  const size_t address = flow.reads.size();
  for (uint32_t k = 0; k < i.count; k++) add_register(flow.reads, i.vector_registers[k]);
  flow.passed_reads = static_cast<uint32_t>(flow.reads.size() - address);
  return flow;
}

// Returns the registers that a load writes, one for each 4 bytes in memory; {} for a vector of smaller elements.
std::vector<uint32_t> loaded_registers(const Statement& s, const Instruction& i) {
  const uint32_t bytes = std::min(ptx::size_of(s.type()), 8u);  // b128: two registers
  if (bytes < kWordBytes && i.count > 1) return {};
  std::vector<uint32_t> registers;
  for (uint32_t k = 0; k < i.count; k++)
    registers.insert(registers.end(), std::max(bytes / kWordBytes, 1u), i.vector_registers[k]);
  return registers;
}

RegisterFlow flow_of(const Statement& s, DecodeFunction family, const Instruction& i, const std::vector<uint32_t>& reads,
                     const std::vector<uint32_t>& writes) {
  if (computes(family)) return {ValueFlow::Lanewise, reads, 0, writes};
  if (s.op == "shfl") return flow_of_shuffle(i, writes);
  if (s.op == "st" && access_space_of(s) != AccessSpace::Param) return flow_of_store(i);
  if (s.op == "ld" || s.op == "ldu") return {ValueFlow::Other, reads, 0, loaded_registers(s, i)};
  return {ValueFlow::Other, reads, 0, {}};
}

}  // namespace

void set_flows(const Statement& s, DecodeFunction family, const Instruction* instructions, RegisterFlow* flows, size_t count,
               const std::vector<uint32_t>& reads, const std::vector<uint32_t>& writes) {
  // Flows that are set already, such as those of predicates' inversions, are kept.
  const auto is_open = [](const RegisterFlow& flow) { return flow.flow == ValueFlow::Other; };
  const bool is_single = std::count_if(flows, flows + count, is_open) == 1;
  for (size_t k = 0; k < count; k++)
    if (is_open(flows[k]))
      flows[k] = is_single ? flow_of(s, family, instructions[k], reads, writes) : RegisterFlow{ValueFlow::Other, reads, 0, {}};
}

}  // namespace vgpu
