// Calls of functions of the module, through pointers, and of functions that the device provides.
#include "call.h"

#include <algorithm>
#include <cstring>

#include "families.h"
#include "system_calls.h"
#include "types.h"

namespace vgpu {
namespace {

// The operands of `call (results), target, (arguments), prototype;`, of which all but the target are optional.
struct Parts {
  std::vector<Operand> results, arguments;
  Operand target;
  std::string_view prototype;
};

Parts parts_of(const Statement& s) {
  Parts parts;
  size_t k = 0;
  if (s.operands.at(k).kind == Operand::Vector) parts.results = s.operands[k++].parts;
  parts.target = s.operands.at(k++);
  if (k < s.operands.size() && s.operands[k].kind == Operand::Vector) parts.arguments = s.operands[k++].parts;
  if (k < s.operands.size()) parts.prototype = s.operands[k].text;
  return parts;
}

// Copies between a register, a or d, and the offset imm in a lane's scratch space, which holds arguments and results of calls,
// or in its function's parameters, which all lanes of a kernel share.
enum Area { kScratch, kParameters };
uint8_t* lane_memory(const WarpContext& warp, Area area, uint32_t lane) {
  if (area == kScratch) return warp.scratch + size_t(lane) * warp.scratch_bytes;
  return warp.parameters + (warp.has_lane_parameters ? size_t(lane) * warp.parameter_bytes : 0);
}
template <class T, Area kArea> void load(WarpContext& warp, const Instruction& i) {
  T* d = lane_values<T>(warp, i.d);
  for_each_lane(warp.active_mask, [&](uint32_t l) { std::memcpy(&d[l], lane_memory(warp, kArea, l) + i.imm, sizeof(T)); });
}
template <class T, Area kArea> void store(WarpContext& warp, const Instruction& i) {
  const T* a = lane_values<T>(warp, i.a);
  for_each_lane(warp.active_mask, [&](uint32_t l) { std::memcpy(lane_memory(warp, kArea, l) + i.imm, &a[l], sizeof(T)); });
}
template <Area kArea> void emit_load(Decoder& d, Instruction i, uint32_t bytes, uint32_t result, uint32_t offset) {
  i.d = result, i.imm = offset;
  i.execute = for_size(bytes, [](auto tag) -> Execute { return load<typename decltype(tag)::type, kArea>; });
  d.emit(i);
}
template <Area kArea> void emit_store(Decoder& d, Instruction i, uint32_t bytes, uint32_t source, uint32_t offset) {
  i.a = source, i.imm = offset;
  i.execute = for_size(bytes, [](auto tag) -> Execute { return store<typename decltype(tag)::type, kArea>; });
  d.emit(i);
}

// An argument or a result of a call in the scratch space: a .param variable, or a copy of a register or literal.
struct Actual { uint32_t offset, size; };

bool fits_register(const ptx::Parameter& formal) { return !formal.type.empty() && formal.size <= 8; }

const Symbol& parameter_variable(Decoder& d, const Statement& s, const Operand& o) {
  const Symbol* symbol = d.symbol(std::string(o.text));
  if (!symbol || symbol->space != ptx::StateSpace::Param || !symbol->in_scratch)
    d.reject(s, "an argument that is no parameter");
  return *symbol;
}

Actual argument(Decoder& d, const Statement& s, const Operand& o, const ptx::Parameter& formal, const Instruction& call) {
  if (o.kind == Operand::Name) {
    const Symbol& variable = parameter_variable(d, s, o);
    if (variable.size != formal.size) d.reject(s, "an argument of another size");
    return {static_cast<uint32_t>(variable.address), variable.size};
  }
  if (!fits_register(formal)) d.reject(s, "a register for a parameter that is no number");
  const uint32_t offset = d.scratch_memory(formal.size);
  emit_store<kScratch>(d, call, formal.size, d.source(o, formal.type), offset);
  return {offset, formal.size};
}

// Results in registers are copied from the scratch space after the call.
struct ResultCopy { uint32_t size, register_offset, scratch_offset; };
Actual result(Decoder& d, const Statement& s, const Operand& o, const ptx::Parameter& formal, std::vector<ResultCopy>& copies) {
  const bool is_unused = o.text == "_";
  if (o.kind == Operand::Name && !is_unused) {
    const Symbol& variable = parameter_variable(d, s, o);
    return {static_cast<uint32_t>(variable.address), variable.size};
  }
  if (!fits_register(formal) && !is_unused) d.reject(s, "a register for a result that is no number");
  const uint32_t offset = d.scratch_memory(formal.size);
  if (!is_unused) copies.push_back({formal.size, d.result(o, formal.type), offset});
  return {offset, formal.size};
}

struct Actuals {
  std::vector<Actual> arguments, results;
  std::vector<ResultCopy> result_copies;
};
Actuals actuals_of(Decoder& d, const Statement& s, const Parts& parts, const ptx::Function& callee, const Instruction& call) {
  if (callee.parameters.size() != parts.arguments.size() || callee.results.size() != parts.results.size())
    d.reject(s, "a call with other parameters");
  Actuals actuals;
  for (size_t n = 0; n < parts.arguments.size(); n++)
    actuals.arguments.push_back(argument(d, s, parts.arguments[n], callee.parameters[n], call));
  for (size_t n = 0; n < parts.results.size(); n++)
    actuals.results.push_back(result(d, s, parts.results[n], callee.results[n], actuals.result_copies));
  return actuals;
}

// Maps the caller's arguments and results to the callee's parameters.
CallSite site_of(const Actuals& actuals, const ptx::Function& callee) {
  CallSite site;
  for (size_t n = 0; n < actuals.arguments.size(); n++) {
    const Actual& actual = actuals.arguments[n];
    const ptx::Parameter& formal = callee.parameters[n];
    site.arguments.push_back({actual.offset, formal.offset, std::min(actual.size, formal.size)});
  }
  for (size_t n = 0; n < actuals.results.size(); n++) {
    const Actual& actual = actuals.results[n];
    const ptx::Parameter& formal = callee.results[n];
    site.results.push_back({formal.offset, actual.offset, std::min(actual.size, formal.size)});
  }
  site.parameter_bytes = callee.parameter_bytes;
  return site;
}

bool select_system_call(const Parts& parts, const Actuals& actuals, Instruction& i) {
  std::vector<uint32_t> arguments, results;
  for (const Actual& actual : actuals.arguments) arguments.push_back(actual.offset);
  for (const Actual& actual : actuals.results) results.push_back(actual.offset);
  return decode_system_call(std::string(parts.target.text), arguments, results, i);
}

}  // namespace

void load_parameters(Decoder& d) {
  for (const ptx::Parameter& parameter : d.function().parameters) {
    if (!parameter.in_register) continue;
    Operand operand;
    operand.kind = Operand::Register, operand.text = parameter.name;
    emit_load<kParameters>(d, Instruction(), parameter.size, d.result(operand, parameter.type), parameter.offset);
  }
}

void store_results(Decoder& d, const Instruction& returning) {
  for (const ptx::Parameter& result : d.function().results) {
    if (!result.in_register) continue;
    Operand operand;
    operand.kind = Operand::Register, operand.text = result.name;
    emit_store<kParameters>(d, returning, result.size, d.source(operand, result.type), result.offset);
  }
}

bool decode_call(Decoder& d, const Statement& s, Instruction& i) {
  if (!s.allows_only({"uni"}, /*types=*/0)) return false;
  const Parts parts = parts_of(s);
  const Instruction guarded = i;  // the statement's guard and line, for copies before and behind the call
  const bool by_pointer = parts.target.kind == Operand::Register;
  const ptx::Function* callee =
      by_pointer ? d.prototype(parts.prototype) : d.symbols().function(std::string(parts.target.text));
  if (!callee && by_pointer) d.reject(s, "a call through a pointer without a prototype");
  if (!callee) d.reject(s, ("a call of what this module does not define, " + std::string(parts.target.text)).c_str());
  const Actuals actuals = actuals_of(d, s, parts, *callee, guarded);
  if (by_pointer || callee->defined) {
    CallSite site = site_of(actuals, *callee);
    if (by_pointer) i.a = d.source(parts.target, "u64");
    else site.callee = callee->name;
    i.kind = InstructionKind::Call;
    i.imm = d.call(std::move(site));
  } else if (!select_system_call(parts, actuals, i)) {
    d.reject(s, ("a call of what this module does not define, " + std::string(parts.target.text)).c_str());
  }
  d.emit(i);
  for (const ResultCopy& copy : actuals.result_copies)
    emit_load<kScratch>(d, guarded, copy.size, copy.register_offset, copy.scratch_offset);
  return true;
}

}  // namespace vgpu
