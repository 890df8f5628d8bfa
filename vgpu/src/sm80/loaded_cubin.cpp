// Places the variables of a module of machine code, resolves its relocations, and decodes its functions when asked.
#include "loaded_cubin.h"

#include <algorithm>
#include <cstring>

#include "launch_bank.h"
#include "outside_functions.h"

namespace vgpu::sm80 {
namespace {

constexpr uint32_t kTargetBegin = 34;  // the first bit of a call's target, which has as many as kTargetMask
constexpr uint64_t kTargetHighMask = kTargetMask >> (64 - kTargetBegin);
constexpr const char *kConstants = ".nv.constant3", *kAddresses = ".nv.constant4";

// Would a launch copy all of them?  Those that an unknown attribute described would be zeros.
bool describes_parameters(const Cubin::Function& kernel) {
  if (kernel.parameters.empty()) return !kernel.parameter_bytes;
  const Cubin::Parameter& last = kernel.parameters.back();
  return last.offset + last.size == kernel.parameter_bytes;
}

}  // namespace

LoadedCubin::Memory::~Memory() {
  for (uint8_t* at : places) memory.deallocate(at);
}

LoadedCubin::LoadedCubin(std::string image, DeviceMemory& memory)
    : image_(std::move(image)), cubin_(read_cubin(image_)), memory_(memory) {
  name_ = "sm_" + std::to_string(cubin_.arch);
  if (static_cast<int>(cubin_.arch) != kArchitecture)
    throw Unsupported("machine code of " + name_ + ", and this device reads that of sm_80");
  for (const Cubin::Function& one : cubin_.functions) functions_[one.name] = &one;
  place_storages();
  relocate();
  for (const Cubin::Variable& one : cubin_.variables)
    variables_[one.name] = {reinterpret_cast<uint64_t>(memory_.places[one.storage]) + one.offset, one.size};
}

void LoadedCubin::place_storages() {
  for (const Cubin::Storage& one : cubin_.storages) {
    auto* at = static_cast<uint8_t*>(memory_.memory.allocate(std::max<uint64_t>(one.size, 8), true));
    if (!at) throw Unsupported("no memory for the variables of " + one.name);
    memory_.places.push_back(at);
    std::copy(one.initial.begin(), one.initial.end(), at);
  }
}

void LoadedCubin::relocate() {
  for (const Cubin::Relocation& one : cubin_.relocations) {
    uint64_t address = 0;
    if (one.is_outside) address = outside_address(one.name);
    else address = reinterpret_cast<uint64_t>(memory_.places[one.target]) + one.addend;
    std::memcpy(memory_.places[one.storage] + one.offset, &address, sizeof address);
  }
  for (size_t k = 0; k < cubin_.storages.size(); k++) {
    const Cubin::Storage& one = cubin_.storages[k];
    uint8_t* at = memory_.places[k];
    if (one.name == kConstants) banks_.variables = at, banks_.variable_bytes = static_cast<uint32_t>(one.size);
    if (one.name == kAddresses) banks_.addresses.assign(at, at + one.size);
    if (one.name == kConstants || one.name == kAddresses) memory_.memory.protect(at);
  }
}

const DecodedFunction* LoadedCubin::program(const std::string& name) {
  const auto known = programs_.find(name);
  if (known != programs_.end()) return known->second.get();
  const auto found = functions_.find(name);
  if (found == functions_.end()) return nullptr;
  Cubin::Function function = *found->second;
  if (function.is_kernel && !describes_parameters(function))
    throw Unsupported(name + ": machine code that does not describe all of its parameters");
  const std::string code = linked(function);
  function.code = code;
  return (programs_[name] = std::make_unique<DecodedFunction>(FunctionDecoder(function, banks_).run())).get();
}

uint64_t LoadedCubin::address_in(const Cubin::Function& of, const Cubin::CodeRelocation& one) const {
  if (one.kind == Cubin::CodeRelocation::OfStorage) return reinterpret_cast<uint64_t>(memory_.places[one.target]) + one.addend;
  if (one.kind == Cubin::CodeRelocation::Outside) {
    if (const uint64_t address = outside_address(one.name)) return address;
    throw Unsupported(of.name + ": machine code that calls " + one.name);
  }
  // Where a call that leads outside returns to: nobody reads it here.
  if (one.name == of.name && one.addend && one.field != Cubin::CodeRelocation::Target) return one.addend;
  throw Unsupported(of.name + ": machine code that takes the address of " + one.name);
}

std::string LoadedCubin::linked(const Cubin::Function& of) const {
  std::string code(of.code);
  for (const Cubin::CodeRelocation& one : of.relocations) {
    if (one.field == Cubin::CodeRelocation::Unknown) throw Unsupported(of.name + ": machine code that is not linked");
    const uint64_t address = address_in(of, one);
    uint64_t words[2];
    std::memcpy(words, code.data() + one.offset, sizeof words);
    if (one.field == Cubin::CodeRelocation::Target) {
      if (words[0] >> kTargetBegin || words[1] & kTargetHighMask)
        throw Unsupported(of.name + ": a call's target with an addend");
      const uint64_t target = address & kTargetMask;
      words[0] |= target << kTargetBegin, words[1] |= target >> (64 - kTargetBegin);
    } else {
      if (words[0] >> 32) throw Unsupported(of.name + ": half of an address with an addend");
      words[0] |= (one.field == Cubin::CodeRelocation::LowWord ? address : address >> 32) << 32;
    }
    std::memcpy(code.data() + one.offset, words, sizeof words);
  }
  return code;
}

const KernelSignature* LoadedCubin::signature(const std::string& kernel) {
  const auto found = functions_.find(kernel);
  if (found == functions_.end() || !found->second->is_kernel) return nullptr;
  const auto [made, added] = signatures_.try_emplace(kernel);
  if (!added) return &made->second;
  const Cubin::Function& from = *found->second;
  for (const Cubin::Parameter& one : from.parameters) made->second.parameters.push_back({one.offset, one.size});
  made->second.parameter_bytes = from.parameter_bytes;
  made->second.most_threads = from.most_threads;
  std::copy_n(from.required_block, 3, made->second.required_block);
  return &made->second;
}

const ModuleVariable* LoadedCubin::variable(const std::string& name) const {
  const auto found = variables_.find(name);
  return found == variables_.end() ? nullptr : &found->second;
}

std::vector<std::string> LoadedCubin::entries() const {
  std::vector<std::string> names;
  for (const Cubin::Function& one : cubin_.functions)
    if (one.is_kernel) names.push_back(one.name);
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<uint8_t> LoadedCubin::parameter_block(const DecodedFunction& kernel, std::vector<uint8_t> parameters,
                                                  const uint32_t grid[3], const uint32_t block[3]) const {
  std::vector<uint8_t> bank(std::max<size_t>((kernel.parameter_bytes + 3) / 4 * 4, kStackTop + 4));
  std::copy(parameters.begin(), parameters.end(),
            bank.begin() + static_cast<ptrdiff_t>(kernel.parameter_bytes - parameters.size()));
  const auto write = [&](uint32_t at, const auto& value) { std::memcpy(bank.data() + at, &value, sizeof value); };
  for (uint32_t k = 0; k < 3; k++) write(kBlockSize + 4 * k, block[k]), write(kGridSize + 4 * k, grid[k]);
  write(kSharedWindow, kSharedWindowBegin);
  write(kLocalWindow, kLocalWindowBegin);
  write(kStackTop, kernel.local_bytes);
  return bank;
}

}  // namespace vgpu::sm80
