// mov, cvta and isspacep, of values, addresses of variables, and special registers.
#include <algorithm>
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

// Packs elements of type T, in registers of type W, to a D; the first one is the lowest.
template <class D, class T, class W = T> void pack(WarpContext& warp, const Instruction& i) {
  D* d = lane_values<D>(warp, i.d);
  for_each_lane(warp.active_mask, [&](uint32_t l) {
    D result = 0;
    for (uint32_t k = 0; k < i.count; k++)
      result =
          static_cast<D>(result | D(static_cast<T>(lane_values<W>(warp, i.vector_registers[k])[l])) << (8 * sizeof(T) * k));
    d[l] = result;
  });
}
template <class D, class T, class W = T> void unpack(WarpContext& warp, const Instruction& i) {
  const D* a = lane_values<D>(warp, i.a);
  for_each_lane(warp.active_mask, [&](uint32_t l) {
    D value = a[l];
    for (uint32_t k = 0; k < i.count; k++)
      lane_values<W>(warp, i.vector_registers[k])[l] = static_cast<T>(value >> (8 * sizeof(T) * k));
  });
}
Execute pack_function(uint32_t bytes, uint32_t count, bool packs) {
  if (bytes == 2 && count == 2) return packs ? pack<uint16_t, uint8_t, uint16_t> : unpack<uint16_t, uint8_t, uint16_t>;
  if (bytes == 4 && count == 4) return packs ? pack<uint32_t, uint8_t, uint16_t> : unpack<uint32_t, uint8_t, uint16_t>;
  if (bytes == 4 && count == 2) return packs ? pack<uint32_t, uint16_t> : unpack<uint32_t, uint16_t>;
  if (bytes == 8 && count == 2) return packs ? pack<uint64_t, uint32_t> : unpack<uint64_t, uint32_t>;
  if (bytes == 8 && count == 4) return packs ? pack<uint64_t, uint16_t> : unpack<uint64_t, uint16_t>;
  return nullptr;
}

// Returns the register of a part, of 1, 2 or 4 bytes; bytes are in registers that are declared so.
uint32_t part_register(Decoder& d, const Operand& part, uint32_t bytes, bool packs) {
  if (bytes > 1) {
    const std::string_view type = bytes == 2 ? "b16" : "b32";
    return packs ? d.source(part, type) : d.result(part, type, /*allows_sink=*/true);
  }
  if (packs && part.kind == Operand::Literal) return d.constant(d.bits(part, "b8"), 2);
  if (!packs && part.text == "_") return d.scratch_register(2);
  const RegisterSlot slot = packs ? d.source_slot(part, "b8") : d.result_slot(part, "b8");
  return slot.is_byte ? slot.offset : 0;
}

// Returns whether a mov to these parts writes none of them.
bool is_dropped(const Operand& parts) {
  return std::all_of(parts.parts.begin(), parts.parts.end(), [](const Operand& part) { return part.text == "_"; });
}

bool decode_parts(Decoder& d, const Statement& s, Instruction& i) {
  bool packs = s.operands[1].kind == Operand::Vector;
  const Operand &vector = s.operands[packs ? 1 : 0], &single = s.operands[packs ? 0 : 1];
  uint32_t bytes = ptx::size_of(s.type()), count = static_cast<uint32_t>(vector.parts.size());
  i.execute = pack_function(bytes, count, packs);
  if (!i.execute || s.type()[0] != 'b' || (!packs && is_dropped(vector))) return false;
  i.count = static_cast<uint8_t>(count);
  for (uint32_t k = 0; k < count; k++) {
    i.vector_registers[k] = part_register(d, vector.parts[k], bytes / count, packs);
    if (!i.vector_registers[k]) return false;
  }
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

// The space of isspacep, in Instruction::variant; imm: the module's ConstantRanges.
enum : uint8_t { kIsShared, kIsLocal, kIsParam, kIsConst, kIsGlobal };
bool is_constant_address(const Instruction& i, uint64_t address) {
  const auto& ranges = *reinterpret_cast<const ConstantRanges*>(i.imm);
  return std::any_of(ranges.begin(), ranges.end(),
                     [=](const auto& range) { return range.first <= address && address < range.second; });
}
bool is_local_address(const WarpContext& warp, uint32_t lane, uint64_t address) {
  return std::any_of(warp.per_lane_memory.begin(), warp.per_lane_memory.end(), [=](const PerLaneMemory& memory) {
    return address - (reinterpret_cast<uint64_t>(memory.base) + uint64_t(lane) * memory.bytes_per_lane) < memory.bytes_per_lane;
  });
}
// A kernel's parameters are in the global space, too; constants are not.
void is_in_space(WarpContext& warp, const Instruction& i) {
  const uint64_t* a = lane_values<uint64_t>(warp, i.a);
  set_predicate(warp, i.d, [&](uint32_t l) {
    const bool is_shared = a[l] - base_of(warp, kShared, l) < warp.shared_bytes;
    switch (i.variant) {
      case kIsShared: return is_shared;
      case kIsLocal: return is_local_address(warp, l, a[l]);
      case kIsParam: return a[l] - base_of(warp, kParam, l) < warp.parameter_bytes;
      case kIsConst: return is_constant_address(i, a[l]);
      default: return !is_shared && !is_local_address(warp, l, a[l]) && !is_constant_address(i, a[l]);
    }
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
  static const std::map<std::string_view, uint8_t> spaces = {
      {"global", kIsGlobal}, {"shared", kIsShared}, {"shared::cta", kIsShared}, {"local", kIsLocal},
      {"const", kIsConst},   {"param", kIsParam},   {"param::entry", kIsParam}};
  const auto space = spaces.find(s.type());
  if (space == spaces.end() || s.qualifiers.size() != 1) return false;
  if (space->second == kIsParam && !d.function().entry) d.reject(s, "a question for a kernel's parameters outside the kernel");
  i.d = d.predicate_result(s.operands[0]);
  i.a = d.source(s.operands[1], "u64");
  i.variant = space->second, i.imm = reinterpret_cast<int64_t>(&d.symbols().constant_ranges());
  i.execute = is_in_space;
  d.emit(i);
  return true;
}

// Sets the parts of one half of a register of 128 bits: one of 64 bits, or two of 32.
void set_half_parts(Decoder& d, const std::vector<Operand>& parts, size_t half, bool packs, Instruction& i) {
  if (parts.size() == 2) {
    if (packs) i.a = d.source(parts[half], "b64");
    else i.d = d.result(parts[half], "b64", /*allows_sink=*/true);
    return;
  }
  i.execute = packs ? pack<uint64_t, uint32_t> : unpack<uint64_t, uint32_t>, i.count = 2;
  for (size_t k = 0; k < 2; k++) i.vector_registers[k] = part_register(d, parts[2 * half + k], 4, packs);
}

// Decodes a mov between registers of 128 bits, or between one and its parts, as one of each half.
bool decode_wide(Decoder& d, const Statement& s, Instruction& i) {
  const bool packs = s.operands[1].kind == Operand::Vector, unpacks = s.operands[0].kind == Operand::Vector;
  const std::vector<Operand>& parts = s.operands[packs ? 1 : 0].parts;
  if (packs && unpacks) return false;
  if ((packs || unpacks) && parts.size() != 2 && parts.size() != 4) return false;
  if (unpacks && is_dropped(s.operands[0])) return false;
  Decoder::Halves to = {}, from = {};
  if (!unpacks) to = d.result_halves(s.operands[0]);
  if (!packs) from = d.source_halves(s.operands[1]);
  for (size_t half = 0; half < 2; half++) {
    i.d = half ? to.upper : to.lower, i.a = half ? from.upper : from.lower, i.execute = copy<uint64_t>;
    if (packs || unpacks) set_half_parts(d, parts, half, packs, i);
    d.emit(i);
  }
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
  if (t == "b128") return decode_wide(d, s, i);
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
