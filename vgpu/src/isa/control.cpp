// Branches, calls, the block's barriers, and what only orders memory (here every access is in order).
#include <cstdlib>

#include "../machine/observer.h"
#include "families.h"
#include "types.h"

namespace vgpu {
namespace {

// Every access is in order here: a fence is there for who looks on alone.
bool checked() {
  static const bool on = std::getenv("VGPU_CHECK") != nullptr;
  return on;
}
void fence(Lanes& w, const Instruction&) {
  if (w.observer) w.observer->fence(w);
}

bool decode_call(Decoder& d, const Statement& s, Instruction& i) {
  // call (results), name, (arguments);  each of these but the name may be missing.
  CallSite site;
  std::vector<Operand> results, arguments;
  size_t k = 0;
  if (k < s.operands.size() && s.operands[k].kind == Operand::Vector) results = s.operands[k++].parts;
  if (k >= s.operands.size() || s.operands[k].kind != Operand::Name) d.refuse(s, "a call through a pointer");
  site.callee = std::string(s.operands[k++].text);
  if (k < s.operands.size() && s.operands[k].kind == Operand::Vector) arguments = s.operands[k].parts;
  const ptx::Function* callee = d.symbols().function(site.callee);
  if (!callee || !callee->defined) d.refuse(s, "a call of what this module does not define");
  if (callee->parameters.size() != arguments.size() || callee->results.size() != results.size())
    d.refuse(s, "a call with other parameters");
  auto connect = [&](const std::vector<Operand>& given, const std::vector<ptx::Parameter>& wanted, bool into) {
    std::vector<CallSite::Piece> pieces;
    for (size_t n = 0; n < given.size(); n++) {
      const Symbol* symbol = d.symbol(std::string(given[n].text));
      if (!symbol || symbol->space != ptx::Space::Param || !symbol->dynamic)
        d.refuse(s, "an argument that is no parameter");
      uint32_t here = static_cast<uint32_t>(symbol->address), there = wanted[n].offset;
      pieces.push_back({into ? here : there, into ? there : here, std::min(symbol->size, wanted[n].size)});
    }
    return pieces;
  };
  site.arguments = connect(arguments, callee->parameters, true);
  site.results = connect(results, callee->results, false);
  i.kind = Kind::Call;
  i.imm = d.call(std::move(site));
  d.emit(i);
  return true;
}

// mode: 0 sync, 1 arrive, 2 red.popc, 3 red.and, 4 red.or.  a: the barrier; b: threads, with `count` 2.  c: the predicate,
// imm: is it inverted?
bool decode_barrier(Decoder& d, const Statement& s, Instruction& i) {
  if (s.has("warp")) {
    i.kind = Kind::Meeting;
    i.b = d.exact(s.operands.at(0), "b32");
    d.emit(i);
    return true;
  }
  bool reduces = s.has("red");
  size_t k = 0;
  i.kind = Kind::Barrier;
  i.mode = !reduces ? (s.has("arrive") ? 1 : 0) : s.has("popc") ? 2 : s.has("and") ? 3 : 4;
  if (reduces) i.d = i.mode == 2 ? d.exact(s.operands.at(k++), "u32") : d.predicate(s.operands.at(k++));
  if (s.operands.size() <= k) return false;
  i.a = d.exact(s.operands[k++], "u32");
  size_t left = s.operands.size() - k;
  i.count = 1;
  if (left == (reduces ? 2u : 1u)) i.b = d.exact(s.operands[k++], "u32"), i.count = 2;
  if (reduces) i.c = d.predicate(s.operands.at(k)), i.imm = s.operands[k].inverted;
  d.emit(i);
  return true;
}

}  // namespace

bool decode_control(Decoder& d, const Statement& s, Instruction& i) {
  if ((s.op == "membar" || s.op == "fence") && checked()) {
    i.run = fence;
    d.emit(i);
    return true;
  }
  if (s.op == "membar" || s.op == "fence" || s.op == "pmevent" || s.op == "griddepcontrol") return true;
  if (s.op == "call") return decode_call(d, s, i);
  if (s.op == "bar" || s.op == "barrier") return decode_barrier(d, s, i);
  if (s.op == "bra") {
    if (s.operands.size() != 1) return false;
    i.kind = Kind::Branch;
    d.jump(i, s.operands[0].text);
    return true;
  }
  if (s.op == "brx") {
    if (s.operands.size() != 2) return false;
    i.kind = Kind::Indexed;
    i.a = d.exact(s.operands[0], "u32");
    i.imm = d.table(s.operands[1].text);
  } else {
    i.kind = s.op == "ret" ? Kind::Return : s.op == "exit" ? Kind::Exit : s.op == "nanosleep" ? Kind::Yield : Kind::Trap;
  }
  d.emit(i);
  return true;
}

}  // namespace vgpu
