// mov, cvta and isspacep, of values, addresses of variables, and special registers.
#include <map>

#include "address.h"
#include "families.h"
#include "ptx/special_registers.h"
#include "types.h"

namespace vgpu {
namespace {

template <class T> void copy(WarpContext& warp, const Instruction& i) {
  T *d = lane_values<T>(warp, i.d), *a = lane_values<T>(warp, i.a);
  assign_lanes(warp.active_mask, d, [=](uint32_t l) { return a[l]; });
}
// Copies a special register to a wider register.
void widen(WarpContext& warp, const Instruction& i) {
  uint64_t* d = lane_values<uint64_t>(warp, i.d);
  const uint32_t* a = lane_values<uint32_t>(warp, i.a);
  assign_lanes(warp.active_mask, d, [=](uint32_t l) { return a[l]; });
}
void narrow(WarpContext& warp, const Instruction& i) {
  uint16_t* d = lane_values<uint16_t>(warp, i.d);
  const uint32_t* a = lane_values<uint32_t>(warp, i.a);
  for_each_lane(warp.active_mask, [=](uint32_t l) { d[l] = static_cast<uint16_t>(a[l]); });
}
void copy_predicate(WarpContext& warp, const Instruction& i) { write_predicate(warp, i.d, predicate(warp, i.a)); }

// Packs elements of type W to a D; the first one is the lowest.
template <class D, class W> void pack(WarpContext& warp, const Instruction& i) {
  D* d = lane_values<D>(warp, i.d);
  for_each_lane(warp.active_mask, [&](uint32_t l) {
    D result = 0;
    for (uint32_t k = 0; k < i.count; k++) result |= D(lane_values<W>(warp, i.vector_registers[k])[l]) << (8 * sizeof(W) * k);
    d[l] = result;
  });
}
template <class D, class W> void unpack(WarpContext& warp, const Instruction& i) {
  const D* a = lane_values<D>(warp, i.a);
  for_each_lane(warp.active_mask, [&](uint32_t l) {
    D value = a[l];
    for (uint32_t k = 0; k < i.count; k++)
      lane_values<W>(warp, i.vector_registers[k])[l] = static_cast<W>(value >> (8 * sizeof(W) * k));
  });
}
Execute pack_function(uint32_t bytes, uint32_t count, bool packs) {
  if (bytes == 4 && count == 2) return packs ? pack<uint32_t, uint16_t> : unpack<uint32_t, uint16_t>;
  if (bytes == 8 && count == 2) return packs ? pack<uint64_t, uint32_t> : unpack<uint64_t, uint32_t>;
  if (bytes == 8 && count == 4) return packs ? pack<uint64_t, uint16_t> : unpack<uint64_t, uint16_t>;
  return nullptr;
}

bool decode_parts(Decoder& d, const Statement& s, Instruction& i) {
  bool packs = s.operands[1].kind == Operand::Vector;
  const Operand &vector = s.operands[packs ? 1 : 0], &single = s.operands[packs ? 0 : 1];
  uint32_t bytes = ptx::size_of(s.type()), count = static_cast<uint32_t>(vector.parts.size());
  i.execute = pack_function(bytes, count, packs);
  if (!i.execute || s.type()[0] != 'b') return false;
  i.count = static_cast<uint8_t>(count);
  std::string_view part = bytes / count == 2 ? "b16" : "b32";
  for (uint32_t k = 0; k < count; k++)
    i.vector_registers[k] = packs ? d.source(vector.parts[k], part) : d.result(vector.parts[k], part, /*allows_sink=*/true);
  if (packs) i.d = d.result(single, s.type());
  else i.a = d.source(single, s.type());
  d.emit(i);
  return true;
}

// Reads a clock, which increases with each reading.  variant 1: the upper half.
template <class T> void clock(WarpContext& warp, const Instruction& i) {
  T* d = lane_values<T>(warp, i.d);
  warp.clock += 8;
  T value = static_cast<T>(i.variant ? warp.clock >> 32 : warp.clock);
  for_each_lane(warp.active_mask, [=](uint32_t l) { d[l] = value; });
}

// The space of a variable, in Instruction::variant; a generic address is the base of the space plus an offset.
enum : uint8_t { kShared, kLocal, kParam, kGlobal };
uint64_t base_of(const WarpContext& warp, uint8_t space, uint32_t lane) {
  auto to_address = [](const uint8_t* p) { return reinterpret_cast<uint64_t>(p); };
  switch (space) {
    case kShared: return to_address(warp.shared);
    case kLocal: return to_address(warp.local) + uint64_t(lane) * warp.local_bytes;
    default: return to_address(warp.parameters) + (warp.has_lane_parameters ? uint64_t(lane) * warp.parameter_bytes : 0);
  }
}
template <bool kTo> void generic(WarpContext& warp, const Instruction& i) {  // kTo: from generic to the space
  uint64_t* d = lane_values<uint64_t>(warp, i.d);
  const uint64_t* a = lane_values<uint64_t>(warp, i.a);
  for_each_lane(warp.active_mask, [&](uint32_t l) {
    uint64_t base = base_of(warp, i.variant, l);
    d[l] = kTo ? a[l] - base : a[l] + base;
  });
}
void is_in_space(WarpContext& warp, const Instruction& i) {
  const uint64_t* a = lane_values<uint64_t>(warp, i.a);
  set_predicate(warp, i.d, [&](uint32_t l) {
    auto is_within = [&](uint8_t space, uint32_t bytes) { return a[l] - base_of(warp, space, l) < bytes; };
    bool shared = is_within(kShared, warp.shared_bytes), local = false;
    for (const PerLaneMemory& memory : warp.per_lane_memory)
      local |= a[l] - (reinterpret_cast<uint64_t>(memory.base) + uint64_t(l) * memory.bytes_per_lane) < memory.bytes_per_lane;
    return i.variant == kShared ? shared : i.variant == kLocal ? local : !shared && !local;
  });
}

uint8_t space_of(const Statement& s) {
  return s.has("shared") || s.has("shared::cta") ? kShared : s.has("local") ? kLocal : kParam;
}

constexpr std::string_view kSpaces = "global|const|shared|shared::cta|local|param|param::entry";

// Returns whether a variable is in the state space of this name, such as "shared::cta".
bool is_variable_in(const Symbol* symbol, std::string_view name) {
  static const std::map<std::string_view, ptx::StateSpace> spaces = {{"global", ptx::StateSpace::Global},
                                                                     {"const", ptx::StateSpace::Const},
                                                                     {"shared", ptx::StateSpace::Shared},
                                                                     {"local", ptx::StateSpace::Local},
                                                                     {"param", ptx::StateSpace::Param}};
  auto space = spaces.find(name.substr(0, name.find(':')));
  return symbol && space != spaces.end() && space->second == symbol->space;
}

bool decode_cvta(Decoder& d, const Statement& s, Instruction& i) {
  std::string_view t = s.type();
  bool to_space = s.has("to"), is_global = s.has("global") || s.has("const");
  if (!s.allows_only({"to", kSpaces}) || t != "u64" || s.operands.size() != 2) return false;
  if (to_space && s.qualifiers[0] != "to") return false;
  i.d = d.result(s.operands[0], t);
  const Operand& source = s.operands[1];
  if (source.kind == Operand::Name) {
    if (to_space || !is_variable_in(d.symbol(std::string(source.text)), s.qualifier_of(kSpaces))) return false;
    return decode_variable_address(d, source, i, !is_global);
  }
  i.a = d.source(source, t);
  i.variant = space_of(s);
  i.execute = is_global || i.variant == kLocal ? copy<uint64_t> : to_space ? generic<true> : generic<false>;
  d.emit(i);
  return true;
}

bool decode_function(Decoder& d, const Operand& o, Instruction& i) {
  const ptx::Function* function = d.symbols().function(std::string(o.text));
  if (!function || !function->defined) return false;
  i.a = d.constant(d.take_address(*function), 8);
  i.execute = copy<uint64_t>;
  d.emit(i);
  return true;
}

}  // namespace

// Emits the address of a variable, in its own space or generic.  A local address is always generic, since a function may get that
// of its caller's variable, and each call has local memory of its own.
bool decode_variable_address(Decoder& d, const Operand& o, Instruction& i, bool as_generic) {
  const Symbol* symbol = d.symbol(std::string(o.text));
  if (!symbol) return decode_function(d, o, i);
  if (symbol->in_scratch) return false;  // an argument of a call has no address, as for ptxas
  if (symbol->space == ptx::StateSpace::Local) as_generic = true;
  bool is_global = symbol->space == ptx::StateSpace::Global || symbol->space == ptx::StateSpace::Const;
  uint64_t offset = symbol->address + static_cast<uint64_t>(o.offset);
  if (symbol->space == ptx::StateSpace::Shared && symbol->dynamic) {
    i.a = special_offset(kDynamicShared);
    i.execute = widen;
    Instruction first = i;
    d.emit(first);
    i.a = i.d;
  } else {
    i.a = d.constant(offset, 8);
    i.execute = copy<uint64_t>;
    if (is_global || !as_generic) return d.emit(i), true;
  }
  if (!as_generic) return true;
  i.variant = symbol->space == ptx::StateSpace::Shared ? kShared : symbol->space == ptx::StateSpace::Local ? kLocal : kParam;
  i.execute = generic<false>;
  d.emit(i);
  return true;
}

namespace {

bool decode_isspacep(Decoder& d, const Statement& s, Instruction& i) {
  if (!s.allows_only({"global|shared|shared::cta|local"}, /*types=*/0) || s.qualifiers.empty()) return false;
  i.d = d.predicate_result(s.operands[0]);
  i.a = d.source(s.operands[1], "u64");
  i.variant = s.has("shared") || s.has("shared::cta") ? kShared : s.has("local") ? kLocal : kGlobal;
  i.execute = is_in_space;
  d.emit(i);
  return true;
}

bool is_clock(std::string_view name) {
  return is_in_group("%clock|%clock64|%clock_hi|%globaltimer|%globaltimer_lo|%globaltimer_hi", name);
}

bool decode_clock(Decoder& d, std::string_view name, uint32_t width, Instruction& i) {
  if (width != (name == "%clock64" || name == "%globaltimer" ? 8 : 4)) return false;
  i.variant = name.substr(name.size() - 3) == "_hi";
  i.execute = width == 8 ? clock<uint64_t> : clock<uint32_t>;
  i.schedule_source = ScheduleSource::Clock;
  d.emit(i);
  return true;
}

// Emits a variable's address; only shared variables have 32-bit ones.  A 16-bit register takes the lower half.
bool decode_name(Decoder& d, const Operand& source, uint32_t width, Instruction& i) {
  if (width == 8) return decode_variable_address(d, source, i, false);
  const Symbol* symbol = d.symbol(std::string(source.text));
  if (!symbol || symbol->in_scratch || (width == 4 ? symbol->space == ptx::StateSpace::Global : symbol->dynamic)) return false;
  i.a = symbol->dynamic ? special_offset(kDynamicShared)
                        : d.constant(symbol->address + static_cast<uint64_t>(source.offset), width);
  i.execute = width == 4 ? Execute(copy<uint32_t>) : copy<uint16_t>;
  d.emit(i);
  return true;
}

// Returns whether mov may read a special register as this type: with its own width, and some with 16 or 64 bits.
bool may_read(const SpecialSource& special, std::string_view type) {
  const uint32_t width = ptx::size_of(type);
  return type[0] != 'f' && (width == special.width || (width == 2 && special.narrow) || (width == 8 && special.wide));
}

// Decodes `mov.v4.u32 {a, b, c, d}, %tid`, or from another vector, or from one value for all elements.  Values are copied to
// temporary registers first, since source and destination may overlap.
bool decode_vector(Decoder& d, const Statement& s, Instruction& i) {
  const std::string_view t = s.type();
  const uint32_t width = ptx::size_of(t), count = s.has("v4") ? 4 : 2;
  const Operand &destination = s.operands[0], &source = s.operands[1];
  if (!s.allows_only({"v2|v4"}) || destination.kind != Operand::Vector || destination.parts.size() != count ||
      width * count > 16)
    return false;
  i.execute = for_size(width, [](auto tag) -> Execute { return copy<typename decltype(tag)::type>; });
  const bool is_special = is_special_vector(source.text), is_vector = source.kind == Operand::Vector;
  if (is_special  ? count != 4 || width != 4 || t[0] == 'f'
      : is_vector ? source.parts.size() != count
                  : source.kind == Operand::Name)
    return false;
  static const std::string_view letters[] = {".x", ".y", ".z", ".w"};
  uint32_t copies[4];
  for (uint32_t k = 0; k < count; k++) {
    Operand element = is_vector ? source.parts[k] : source;
    const std::string name = std::string(source.text) + std::string(letters[k]);
    if (is_special) element.kind = Operand::Register, element.text = name;
    i.d = copies[k] = d.scratch_register(width);
    const RegisterSlot slot = d.source_slot(element, t);
    if (slot.width != width || (slot.sort == Sort::Special && t[0] == 'f')) return false;
    i.a = slot.offset;
    d.emit(i);
  }
  for (uint32_t k = 0; k < count; k++) {
    if (destination.parts[k].text == "_") continue;
    i.a = copies[k], i.d = d.result(destination.parts[k], t);
    d.emit(i);
  }
  return true;
}

bool decode_predicate(Decoder& d, const Statement& s, Instruction& i) {
  const Operand& source = s.operands[1];
  const bool is_cluster_query = source.text == "%is_explicit_cluster";  // launches have no clusters
  i.d = d.predicate_result(s.operands[0]), i.execute = copy_predicate;
  i.a = is_cluster_query ? d.constant(source.inverted ? kFullMask : 0, 4) : d.predicate(source);
  d.emit(i);
  return true;
}

// Returns nullptr if a register of this width takes no copy: only special registers of 4 bytes are widened or narrowed.
Execute copy_function(const RegisterSlot& slot, uint32_t width) {
  if (slot.width == width) return for_size(width, [](auto tag) -> Execute { return copy<typename decltype(tag)::type>; });
  if (slot.sort != Sort::Special || slot.width != 4) return nullptr;
  return width == 8 ? widen : width == 2 ? narrow : nullptr;
}

}  // namespace

bool decode_move(Decoder& d, const Statement& s, Instruction& i) {
  if (s.op == "cvta") return decode_cvta(d, s, i);
  if (s.operands.size() != 2) return false;
  if (s.op == "isspacep") return decode_isspacep(d, s, i);
  if (s.has("v2") || s.has("v4")) return decode_vector(d, s, i);
  if (!s.allows_only({})) return false;
  std::string_view t = s.type();
  const Operand& source = s.operands[1];
  if (s.operands[0].kind == Operand::Vector || source.kind == Operand::Vector) return decode_parts(d, s, i);
  if (t == "pred") return decode_predicate(d, s, i);
  i.d = d.result(s.operands[0], t);
  uint32_t width = ptx::size_of(t);
  if (is_clock(source.text)) return t[0] != 'f' && decode_clock(d, source.text, width, i);
  if (source.kind == Operand::Name) return t[0] != 'f' && decode_name(d, source, width, i);
  RegisterSlot slot = d.source_slot(source, t);
  if (slot.sort == Sort::Special && !may_read(*special_register_of(source.text), t)) return false;
  i.a = slot.offset, i.execute = copy_function(slot, width);
  if (!i.execute) return false;
  d.emit(i);
  return true;
}

}  // namespace vgpu
