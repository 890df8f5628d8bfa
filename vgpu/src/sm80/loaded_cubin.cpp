// Allocates the variables of a cubin, applies its relocations, and decodes its functions at their first use.
#include "loaded_cubin.h"

#include <algorithm>
#include <cstring>

#include "launch_bank.h"
#include "outside_functions.h"

namespace vgpu::sm80 {
namespace {

constexpr uint32_t kTargetBegin = 34;  // the first bit of a call's target, which is as wide as kTargetMask
constexpr uint64_t kTargetHighMask = kTargetMask >> (64 - kTargetBegin);
constexpr const char *kConstants = ".nv.constant3", *kAddresses = ".nv.constant4";

// Returns whether the known attributes describe all parameters; a launch could not copy the others.
bool describes_parameters(const Cubin::Function& kernel) {
  if (kernel.parameters.empty()) return !kernel.parameter_bytes;
  const Cubin::Parameter& last = kernel.parameters.back();
  return last.offset + last.size == kernel.parameter_bytes;
}

}  // namespace

LoadedCubin::Memory::~Memory() {
  for (uint8_t* allocation : allocations) memory.deallocate(allocation);
}

LoadedCubin::LoadedCubin(std::string image, DeviceMemory& memory)
    : image_(std::move(image)), cubin_(read_cubin(image_)), layout_(cubin_), memory_(memory) {
  name_ = "sm_" + std::to_string(cubin_.arch);
  if (static_cast<int>(cubin_.arch) != kArchitecture)
    throw Unsupported("machine code of " + name_ + ", and this device reads that of sm_80");
  for (const Cubin::Function& definition : cubin_.functions) functions_[definition.name] = &definition;
  allocate_storages();
  relocate();
  for (const Cubin::Variable& definition : cubin_.variables)
    variables_[definition.name] = {reinterpret_cast<uint64_t>(memory_.allocations[definition.storage]) + definition.offset,
                                   definition.size};
}

// A storage is a section in device memory, of variables or of a constant bank.
void LoadedCubin::allocate_storages() {
  for (const Cubin::Storage& storage : cubin_.storages) {
    auto* memory = static_cast<uint8_t*>(memory_.memory.allocate(std::max<uint64_t>(storage.size, 8), /*written=*/true));
    if (!memory) throw Unsupported("no memory for the variables of " + storage.name);
    memory_.allocations.push_back(memory);
    std::copy(storage.initial.begin(), storage.initial.end(), memory);
  }
}

void LoadedCubin::relocate() {
  for (const Cubin::Relocation& entry : cubin_.relocations) {
    const uint64_t address = find_address(entry.to);
    std::memcpy(memory_.allocations[entry.storage] + entry.offset, &address, sizeof address);
  }
  for (size_t k = 0; k < cubin_.storages.size(); k++) {
    const Cubin::Storage& entry = cubin_.storages[k];
    uint8_t* memory = memory_.allocations[k];
    if (entry.name == kConstants) banks_.variables = memory, banks_.variable_bytes = static_cast<uint32_t>(entry.size);
    if (entry.name == kAddresses) banks_.addresses.assign(memory, memory + entry.size);
    if (entry.name == kConstants || entry.name == kAddresses) memory_.memory.protect(memory);
  }
}

const DecodedFunction* LoadedCubin::program(const std::string& name) {
  const auto decoded = programs_.find(name);
  if (decoded != programs_.end()) return decoded->second.get();
  const auto entry = functions_.find(name);
  if (entry == functions_.end()) return nullptr;
  const Cubin::Function& function = *entry->second;
  if (function.is_kernel && !describes_parameters(function))
    throw Unsupported(name + ": machine code that does not describe all of its parameters");
  auto program = std::make_unique<DecodedFunction>(decode(function));
  number_instructions(*program), mark_frequent_atomics(*program);
  return (programs_[name] = std::move(program)).get();
}

DecodedFunction LoadedCubin::decode(const Cubin::Function& function) const {
  const std::map<uint64_t, const Cubin::Function*> callees = layout_.callees_of(function);
  if (!callees.empty()) return decode_with(function, callees);
  const std::string code = link_code(function, 0);
  Cubin::Function linked = function;
  linked.code = code;
  return FunctionDecoder(linked, banks_).run();
}

DecodedFunction LoadedCubin::decode_with(const Cubin::Function& kernel,
                                         const std::map<uint64_t, const Cubin::Function*>& callees) const {
  Cubin::Function linked = kernel;
  std::map<uint64_t, std::string> linked_callees;
  std::vector<LinkedPart> parts = {{kernel.name, 0, 0, {}}};  // the branch to the kernel
  const auto add_part = [&](uint64_t offset, const Cubin::Function& function) {
    parts.push_back(
        {function.name, static_cast<size_t>(offset / kEncodingBytes), static_cast<uint32_t>(offset), function.source_lines});
  };
  for (const auto& [offset, callee] : callees) {
    if (!callee->banks.empty())
      throw Unsupported(callee->name + ": machine code of a device function with constants of its own");
    linked_callees[offset] = link_code(*callee, offset);
    linked.registers = std::max(linked.registers, callee->registers);
    add_part(offset, *callee);
  }
  add_part(layout_.kernel_offset(), kernel);
  const std::string code = layout_.device_code(linked_callees) + link_code(kernel, layout_.kernel_offset());
  linked.code = code, linked.has_callees = true;
  DecodedFunction program = FunctionDecoder(linked, banks_).run();
  program.parts = std::move(parts);
  return program;
}

// Returns 0 if it has no address: a function that is not supported, or a kernel.
uint64_t LoadedCubin::find_address(const Cubin::Reference& to) const {
  if (to.kind == Cubin::Reference::Outside) return outside_address(to.name);
  if (to.kind == Cubin::Reference::ToStorage) return reinterpret_cast<uint64_t>(memory_.allocations[to.storage]) + to.addend;
  const uint64_t offset = layout_.offset_of(to.name);
  return offset ? offset + to.addend : 0;
}

// begin: the offset of the function in the code that it is linked into.
uint64_t LoadedCubin::address_of(const Cubin::Function& function, const Cubin::CodeRelocation& relocation,
                                 uint64_t begin) const {
  const Cubin::Reference& to = relocation.to;
  if (const uint64_t address = find_address(to)) return address;
  if (to.kind == Cubin::Reference::Outside) throw Unsupported(function.name + ": machine code that calls " + to.name);
  // The return address of a call in a kernel.
  if (to.name == function.name && to.addend && relocation.field != Cubin::CodeRelocation::Target) return begin + to.addend;
  throw Unsupported(function.name + ": machine code that takes the address of " + to.name);
}

std::string LoadedCubin::link_code(const Cubin::Function& function, uint64_t begin) const {
  std::string code(function.code);
  for (const Cubin::CodeRelocation& relocation : function.relocations) {
    if (relocation.field == Cubin::CodeRelocation::Unknown)
      throw Unsupported(function.name + ": machine code that is not linked");
    const uint64_t address = address_of(function, relocation, begin);
    uint64_t words[2];
    std::memcpy(words, code.data() + relocation.offset, sizeof words);
    if (relocation.field == Cubin::CodeRelocation::Target) {
      if (words[0] >> kTargetBegin || words[1] & kTargetHighMask)
        throw Unsupported(function.name + ": a call's target with an addend");
      const uint64_t target = address & kTargetMask;
      words[0] |= target << kTargetBegin, words[1] |= target >> (64 - kTargetBegin);
    } else {
      if (words[0] >> 32) throw Unsupported(function.name + ": half of an address with an addend");
      words[0] |= (relocation.field == Cubin::CodeRelocation::LowWord ? address : address >> 32) << 32;
    }
    std::memcpy(code.data() + relocation.offset, words, sizeof words);
  }
  return code;
}

const KernelSignature* LoadedCubin::signature(const std::string& kernel) {
  const auto entry = functions_.find(kernel);
  if (entry == functions_.end() || !entry->second->is_kernel) return nullptr;
  const auto [result, is_new] = signatures_.try_emplace(kernel);
  if (!is_new) return &result->second;
  const Cubin::Function& source = *entry->second;
  for (const Cubin::Parameter& parameter : source.parameters)
    result->second.parameters.push_back({parameter.offset, parameter.size});
  result->second.parameter_bytes = source.parameter_bytes;
  result->second.max_threads = source.max_threads;
  std::copy_n(source.required_block, 3, result->second.required_block);
  return &result->second;
}

const ModuleVariable* LoadedCubin::variable(const std::string& name) const {
  const auto entry = variables_.find(name);
  return entry == variables_.end() ? nullptr : &entry->second;
}

std::vector<std::string> LoadedCubin::entries() const {
  std::vector<std::string> names;
  for (const Cubin::Function& function : cubin_.functions)
    if (function.is_kernel) names.push_back(function.name);
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<uint8_t> LoadedCubin::parameter_block(const Launch& launch) const {
  const DecodedFunction& kernel = *launch.program;
  const std::vector<uint8_t>& parameters = launch.parameters;
  std::vector<uint8_t> bank(std::max<size_t>((kernel.parameter_bytes + 3) / 4 * 4, kReservedShared + 4));
  std::copy(parameters.begin(), parameters.end(),
            bank.begin() + static_cast<ptrdiff_t>(kernel.parameter_bytes - parameters.size()));
  const auto write = [&](uint32_t offset, const auto& value) { std::memcpy(bank.data() + offset, &value, sizeof value); };
  for (uint32_t k = 0; k < 3; k++) write(kBlockSize + 4 * k, launch.block[k]), write(kGridSize + 4 * k, launch.grid[k]);
  write(kSharedWindow, kSharedWindowBegin);
  write(kLocalWindow, kLocalWindowBegin);
  write(kStackTop, kernel.local_bytes);
  write(kDynamicSharedBytes, launch.dynamic_shared);
  write(kMultiprocessorCount, launch.multiprocessors);
  write(kGridWorkspaceHigh, static_cast<uint32_t>(launch.grid_workspace >> 32));
  write(kGridWorkspaceLow, static_cast<uint32_t>(launch.grid_workspace));
  return bank;
}

}  // namespace vgpu::sm80
