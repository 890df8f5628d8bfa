#include "address.h"

#include <algorithm>

#include "../error.h"

namespace vgpu {
namespace {

uint64_t base_of(Lanes& w, const Instruction& i, uint32_t lane) {
  if (i.e == 8) return lanes_of<uint64_t>(w, i.a)[lane];
  return i.e == 4 ? lanes_of<uint32_t>(w, i.a)[lane] : 0;
}

bool known_extent(Lanes& w, uint64_t low, uint64_t behind) {
  if (w.generation != w.memory->generation()) w.recent[0] = w.recent[1] = {}, w.generation = w.memory->generation();
  if (w.recent[0].holds(low, behind)) return true;
  std::swap(w.recent[0], w.recent[1]);
  if (w.recent[0].holds(low, behind)) return true;
  Extent found = w.memory->find(low);
  if (!found.holds(low, behind)) return false;
  w.recent[0] = found;
  return true;
}

uint64_t number(const uint8_t* at) { return reinterpret_cast<uint64_t>(at); }

}  // namespace

bool reachable(Lanes& w, uint32_t lane, uint64_t address, uint32_t bytes) {
  uint64_t behind = address + bytes;
  if (Extent{number(w.shared), number(w.shared) + w.shared_bytes, false}.holds(address, behind)) return true;
  for (const Shares& one : w.shares) {
    uint64_t own = number(one.at) + uint64_t(lane) * one.bytes;
    if (Extent{own, own + one.bytes, false}.holds(address, behind)) return true;
  }
  if (!w.own_parameters && Extent{number(w.parameters), number(w.parameters) + w.parameter_bytes, false}.holds(address, behind))
    return true;
  return known_extent(w, address, behind);
}

namespace {

bool generic(Lanes& w, const Instruction& i, uint32_t bytes, uint8_t* at[kLanes]) {
  uint64_t address[kLanes], low = ~0ull, high = 0, odd = 0;
  const uint64_t* base = lanes_of<uint64_t>(w, i.a);
  each(w.mask, [&](uint32_t l) {
    address[l] = base[l] + static_cast<uint64_t>(i.imm);
    low = std::min(low, address[l]), high = std::max(high, address[l]), odd |= address[l];
    at[l] = reinterpret_cast<uint8_t*>(address[l]);
  });
  if (odd & (bytes - 1)) {
    w.fail(Fault::Misaligned, odd);
    return false;
  }
  if (high + bytes > high && known_extent(w, low, high + bytes)) return true;
  bool fine = true;
  each(w.mask, [&](uint32_t l) {
    if (!reachable(w, l, address[l], bytes)) w.fail(Fault::OutOfBounds, address[l]), fine = false;
  });
  return fine;
}

bool within(Lanes& w, const Instruction& i, uint32_t bytes, uint8_t* begin, uint32_t size, bool own, uint8_t* at[kLanes]) {
  bool fine = true;
  each(w.mask, [&](uint32_t l) {
    uint32_t offset = static_cast<uint32_t>(base_of(w, i, l) + static_cast<uint64_t>(i.imm));
    if (offset > size || size - offset < bytes) w.fail(Fault::OutOfBounds, offset), fine = false;
    else if (offset & (bytes - 1)) w.fail(Fault::Misaligned, offset), fine = false;
    at[l] = begin + offset + (own ? uint64_t(l) * size : 0);
  });
  return fine;
}

}  // namespace

Where where_of(const Statement& s) {
  if (s.has("shared") || s.has("shared::cta")) return Where::Shared;
  if (s.has("local")) return Where::Local;
  return s.has("param") || s.has("param::entry") || s.has("param::func") ? Where::Param : Where::Generic;
}

void decode_address(Decoder& d, const Operand& o, Where& where, Instruction& i) {
  i.imm = o.offset;
  if (o.kind == Operand::Address && ptx::is_literal(o.text)) {
    i.a = d.constant(ptx::literal(o.text, o.negative, "u64"), 8), i.e = 8;
    return;
  }
  const Symbol* symbol = d.symbol(std::string(o.text));
  if (!symbol) {
    Slot slot = d.use([&] { Operand base = o; base.kind = Operand::Register; return base; }(), "u64");
    i.a = slot.offset, i.e = slot.width;
    if (where == Where::Local) where = Where::Generic;  // a register holds a local address as a generic one, see move.cpp
    if (where == Where::Generic && i.e != 8) throw Unsupported("line " + std::to_string(i.line) + ": a 32-bit address");
    return;
  }
  if (symbol->space == ptx::Space::Shared && symbol->dynamic) {
    i.a = special_offset(kDynamicShared), i.e = 4;
    return;
  }
  if (symbol->space == ptx::Space::Param) where = symbol->dynamic ? Where::Scratch : Where::Param;
  if (symbol->space == ptx::Space::Global || symbol->space == ptx::Space::Const) {
    i.a = d.constant(symbol->address, 8), i.e = 8;
  } else {
    i.e = 0, i.imm += static_cast<int64_t>(symbol->address);
  }
}

bool addresses(Lanes& w, const Instruction& i, Where where, uint32_t bytes, uint8_t* at[kLanes]) {
  switch (where) {
    case Where::Generic: return generic(w, i, bytes, at);
    case Where::Shared: return within(w, i, bytes, w.shared, w.shared_bytes, false, at);
    case Where::Local: return within(w, i, bytes, w.local, w.local_bytes, true, at);
    case Where::Param: return within(w, i, bytes, w.parameters, w.parameter_bytes, w.own_parameters, at);
    case Where::Scratch: return within(w, i, bytes, w.scratch, w.scratch_bytes, true, at);
  }
  return false;
}

}  // namespace vgpu
