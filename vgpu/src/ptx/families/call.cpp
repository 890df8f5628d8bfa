// Calls: of what the module defines, through a pointer, and of the device's own functions.
#include <algorithm>

#include "families.h"
#include "system_calls.h"

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

const Symbol& argument(Decoder& d, const Statement& s, const Operand& o) {
  const Symbol* symbol = d.symbol(std::string(o.text));
  if (!symbol || symbol->space != ptx::Space::Param || !symbol->dynamic) d.refuse(s, "an argument that is no parameter");
  return *symbol;
}

// Where the caller's pieces lie among what the callee declares.
CallSite site_of(Decoder& d, const Statement& s, const Parts& parts, const ptx::Function& callee) {
  if (callee.parameters.size() != parts.arguments.size() || callee.results.size() != parts.results.size())
    d.refuse(s, "a call with other parameters");
  CallSite site;
  for (size_t n = 0; n < parts.arguments.size(); n++) {
    const Symbol& own = argument(d, s, parts.arguments[n]);
    const ptx::Parameter& theirs = callee.parameters[n];
    site.arguments.push_back({static_cast<uint32_t>(own.address), theirs.offset, std::min(own.size, theirs.size)});
  }
  for (size_t n = 0; n < parts.results.size(); n++) {
    const Symbol& own = argument(d, s, parts.results[n]);
    const ptx::Parameter& theirs = callee.results[n];
    site.results.push_back({theirs.offset, static_cast<uint32_t>(own.address), std::min(own.size, theirs.size)});
  }
  site.parameter_bytes = callee.parameter_bytes;
  return site;
}

bool decode_system(Decoder& d, const Statement& s, const Parts& parts, Instruction& i) {
  std::vector<uint32_t> arguments, results;
  for (const Operand& one : parts.arguments) arguments.push_back(static_cast<uint32_t>(argument(d, s, one).address));
  for (const Operand& one : parts.results) results.push_back(static_cast<uint32_t>(argument(d, s, one).address));
  return decode_system_call(std::string(parts.target.text), arguments, results, i);
}

}  // namespace

bool decode_call(Decoder& d, const Statement& s, Instruction& i) {
  if (!s.only({"uni"}, 0)) return false;
  Parts parts = parts_of(s);
  CallSite site;
  if (parts.target.kind == Operand::Register) {
    const ptx::Function* prototype = d.prototype(parts.prototype);
    if (!prototype) d.refuse(s, "a call through a pointer without a prototype");
    site = site_of(d, s, parts, *prototype);
    i.a = d.exact(parts.target, "u64");
  } else {
    const ptx::Function* callee = d.symbols().function(std::string(parts.target.text));
    if (callee && !callee->defined && decode_system(d, s, parts, i)) return d.emit(i), true;
    if (!callee || !callee->defined)
      d.refuse(s, ("a call of what this module does not define, " + std::string(parts.target.text)).c_str());
    site = site_of(d, s, parts, *callee);
    site.callee = callee->name;
  }
  i.kind = InstructionKind::Call;
  i.imm = d.call(std::move(site));
  d.emit(i);
  return true;
}

}  // namespace vgpu
