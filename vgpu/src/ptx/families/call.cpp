// Calls: of what the module defines, through a pointer, and of the device's own functions.
#include "call.h"

#include <algorithm>
#include <cstring>

#include "families.h"
#include "system_calls.h"
#include "types.h"

namespace vgpu {
namespace {

// A call's operands: call (results), target, (arguments), prototype;  each of these but the target may be missing.
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

// Between a register, a or d, and what lies at imm in a lane's share of the scratch space or of the parameters.
enum Area { kScratch, kParameters };
uint8_t* share(const WarpContext& warp, Area area, uint32_t lane) {
  if (area == kScratch) return warp.scratch + size_t(lane) * warp.scratch_bytes;
  return warp.parameters + (warp.has_lane_parameters ? size_t(lane) * warp.parameter_bytes : 0);
}
template <class T, Area kArea> void load(WarpContext& warp, const Instruction& i) {
  T* d = lane_values<T>(warp, i.d);
  for_each_lane(warp.active_mask, [&](uint32_t l) { std::memcpy(&d[l], share(warp, kArea, l) + i.imm, sizeof(T)); });
}
template <class T, Area kArea> void store(WarpContext& warp, const Instruction& i) {
  const T* a = lane_values<T>(warp, i.a);
  for_each_lane(warp.active_mask, [&](uint32_t l) { std::memcpy(share(warp, kArea, l) + i.imm, &a[l], sizeof(T)); });
}
template <Area kArea> void emit_load(Decoder& d, Instruction i, uint32_t bytes, uint32_t into, uint32_t from) {
  i.d = into, i.imm = from;
  i.execute = for_size(bytes, [](auto tag) -> Execute { return load<typename decltype(tag)::type, kArea>; });
  d.emit(i);
}
template <Area kArea> void emit_store(Decoder& d, Instruction i, uint32_t bytes, uint32_t from, uint32_t into) {
  i.a = from, i.imm = into;
  i.execute = for_size(bytes, [](auto tag) -> Execute { return store<typename decltype(tag)::type, kArea>; });
  d.emit(i);
}

// What a call hands over or gets back: a .param variable, or a register (or a literal) by way of the scratch space.
struct Actual { uint32_t at, size; };

const Symbol& parameter_variable(Decoder& d, const Statement& s, const Operand& o) {
  const Symbol* symbol = d.symbol(std::string(o.text));
  if (!symbol || symbol->space != ptx::StateSpace::Param || !symbol->dynamic) d.reject(s, "an argument that is no parameter");
  return *symbol;
}

Actual argument(Decoder& d, const Statement& s, const Operand& o, const ptx::Parameter& formal, const Instruction& call) {
  if (o.kind == Operand::Name) {
    const Symbol& own = parameter_variable(d, s, o);
    return {static_cast<uint32_t>(own.address), own.size};
  }
  if (formal.type.empty()) d.reject(s, "a register for a parameter that is no number");
  const uint32_t at = d.scratch_memory(formal.size);
  emit_store<kScratch>(d, call, formal.size, d.exact_operand(o, formal.type), at);
  return {at, formal.size};
}

// Results in registers are fetched behind the call: `fetched` says which.
struct Fetched { uint32_t size, into, from; };
Actual result(Decoder& d, const Statement& s, const Operand& o, const ptx::Parameter& formal, std::vector<Fetched>& fetched) {
  const bool unwanted = o.text == "_";
  if (o.kind == Operand::Name && !unwanted) {
    const Symbol& own = parameter_variable(d, s, o);
    return {static_cast<uint32_t>(own.address), own.size};
  }
  if (formal.type.empty() && !unwanted) d.reject(s, "a register for a result that is no number");
  const uint32_t at = d.scratch_memory(formal.size);
  if (!unwanted) fetched.push_back({formal.size, d.result(o, formal.type), at});
  return {at, formal.size};
}

struct Actuals {
  std::vector<Actual> arguments, results;
  std::vector<Fetched> fetched;
};
Actuals actuals_of(Decoder& d, const Statement& s, const Parts& parts, const ptx::Function& callee, const Instruction& call) {
  if (callee.parameters.size() != parts.arguments.size() || callee.results.size() != parts.results.size())
    d.reject(s, "a call with other parameters");
  Actuals all;
  for (size_t n = 0; n < parts.arguments.size(); n++)
    all.arguments.push_back(argument(d, s, parts.arguments[n], callee.parameters[n], call));
  for (size_t n = 0; n < parts.results.size(); n++)
    all.results.push_back(result(d, s, parts.results[n], callee.results[n], all.fetched));
  return all;
}

// Where the caller's pieces lie among what the callee declares.
CallSite site_of(const Actuals& actuals, const ptx::Function& callee) {
  CallSite site;
  for (size_t n = 0; n < actuals.arguments.size(); n++) {
    const Actual& own = actuals.arguments[n];
    const ptx::Parameter& theirs = callee.parameters[n];
    site.arguments.push_back({own.at, theirs.offset, std::min(own.size, theirs.size)});
  }
  for (size_t n = 0; n < actuals.results.size(); n++) {
    const Actual& own = actuals.results[n];
    const ptx::Parameter& theirs = callee.results[n];
    site.results.push_back({theirs.offset, own.at, std::min(own.size, theirs.size)});
  }
  site.parameter_bytes = callee.parameter_bytes;
  return site;
}

bool select_system_call(const Parts& parts, const Actuals& actuals, Instruction& i) {
  std::vector<uint32_t> arguments, results;
  for (const Actual& one : actuals.arguments) arguments.push_back(one.at);
  for (const Actual& one : actuals.results) results.push_back(one.at);
  return decode_system_call(std::string(parts.target.text), arguments, results, i);
}

}  // namespace

void load_parameters(Decoder& d) {
  for (const ptx::Parameter& one : d.function().parameters) {
    if (!one.in_register) continue;
    Operand own;
    own.kind = Operand::Register, own.text = one.name;
    emit_load<kParameters>(d, Instruction(), one.size, d.result(own, one.type), one.offset);
  }
}

void store_results(Decoder& d, const Instruction& returning) {
  for (const ptx::Parameter& one : d.function().results) {
    if (!one.in_register) continue;
    Operand own;
    own.kind = Operand::Register, own.text = one.name;
    emit_store<kParameters>(d, returning, one.size, d.exact_operand(own, one.type), one.offset);
  }
}

bool decode_call(Decoder& d, const Statement& s, Instruction& i) {
  if (!s.allows_only({"uni"}, 0)) return false;
  const Parts parts = parts_of(s);
  const Instruction guarded = i;
  const bool by_pointer = parts.target.kind == Operand::Register;
  const ptx::Function* callee =
      by_pointer ? d.prototype(parts.prototype) : d.symbols().function(std::string(parts.target.text));
  if (!callee && by_pointer) d.reject(s, "a call through a pointer without a prototype");
  if (!callee) d.reject(s, ("a call of what this module does not define, " + std::string(parts.target.text)).c_str());
  const Actuals actuals = actuals_of(d, s, parts, *callee, guarded);
  if (by_pointer || callee->defined) {
    CallSite site = site_of(actuals, *callee);
    if (by_pointer) i.a = d.exact_operand(parts.target, "u64");
    else site.callee = callee->name;
    i.kind = InstructionKind::Call;
    i.imm = d.call(std::move(site));
  } else if (!select_system_call(parts, actuals, i)) {
    d.reject(s, ("a call of what this module does not define, " + std::string(parts.target.text)).c_str());
  }
  d.emit(i);
  for (const Fetched& one : actuals.fetched) emit_load<kScratch>(d, guarded, one.size, one.into, one.from);
  return true;
}

}  // namespace vgpu
