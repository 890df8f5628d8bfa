#include "address.h"

#include <algorithm>

#include "../error.h"

namespace vgpu {
namespace {

bool permits(const Extent& extent, bool writes) { return !writes || extent.access == Access::All; }

bool known_extent(Lanes& w, uint64_t low, uint64_t behind, bool writes) {
  if (w.generation != w.memory->generation()) w.recent[0] = w.recent[1] = {}, w.generation = w.memory->generation();
  if (w.recent[0].holds(low, behind)) return permits(w.recent[0], writes);
  std::swap(w.recent[0], w.recent[1]);
  if (w.recent[0].holds(low, behind)) return permits(w.recent[0], writes);
  Extent found = w.memory->find(low);
  if (!found.holds(low, behind)) return false;
  w.recent[0] = found;
  return permits(found, writes);
}

uint64_t number(const uint8_t* at) { return reinterpret_cast<uint64_t>(at); }

}  // namespace

bool reachable(Lanes& w, uint32_t lane, uint64_t address, uint32_t bytes, bool writes) {
  uint64_t behind = address + bytes;
  if (Extent{number(w.shared), number(w.shared) + w.shared_bytes, false}.holds(address, behind)) return true;
  for (const Shares& one : w.shares) {
    uint64_t own = number(one.at) + uint64_t(lane) * one.bytes;
    if (Extent{own, own + one.bytes, false}.holds(address, behind)) return true;
  }
  if (!w.own_parameters && Extent{number(w.parameters), number(w.parameters) + w.parameter_bytes, false}.holds(address, behind))
    return true;
  return known_extent(w, address, behind, writes);
}

namespace {

// As signed numbers: those beyond any process's are negative, and lie in no allocation.
bool generic(Lanes& w, const Instruction& i, uint32_t bytes, uint8_t* at[kLanes], bool writes) {
  const int64_t* base = lanes_of<int64_t>(w, i.a);
  int64_t low = INT64_MAX, high = INT64_MIN, odd = 0, offset = i.imm;
  each(w.mask, [&](uint32_t l) {
    int64_t address = static_cast<int64_t>(static_cast<uint64_t>(base[l]) + static_cast<uint64_t>(offset));
    low = std::min(low, address), high = std::max(high, address), odd |= address;
    at[l] = reinterpret_cast<uint8_t*>(address);
  });
  if (odd & (bytes - 1)) {
    w.fail(Fault::Misaligned, static_cast<uint64_t>(odd));
    return false;
  }
  if (low > 0 && known_extent(w, static_cast<uint64_t>(low), static_cast<uint64_t>(high) + bytes, writes)) return true;
  bool fine = true;
  each(w.mask, [&](uint32_t l) {
    if (reachable(w, l, number(at[l]), bytes, writes)) return;
    w.fail(writes && reachable(w, l, number(at[l]), bytes) ? Fault::ReadOnly : Fault::OutOfBounds, number(at[l])), fine = false;
  });
  return fine;
}

// The offsets of a space of `size` bytes: the first lane's fault is told.
bool refused(Lanes& w, const uint32_t offset[kLanes], uint32_t bytes, uint32_t size) {
  each(w.mask, [&](uint32_t l) {
    if (offset[l] > size || size - offset[l] < bytes) w.fail(Fault::OutOfBounds, offset[l]);
    else if (offset[l] & (bytes - 1)) w.fail(Fault::Misaligned, offset[l]);
  });
  return false;
}

template <class B>
void offsets(Lanes& w, const Instruction& i, uint32_t offset[kLanes], uint32_t& most, uint32_t& odd) {
  const B* base = lanes_of<B>(w, i.a);
  uint32_t by = static_cast<uint32_t>(i.imm);
  each(w.mask, [&](uint32_t l) {
    offset[l] = static_cast<uint32_t>(base[l]) + by;
    most = std::max(most, offset[l]), odd |= offset[l];
  });
}

bool within(Lanes& w, const Instruction& i, uint32_t bytes, uint8_t* begin, uint32_t size, bool own, uint8_t* at[kLanes]) {
  uint32_t offset[kLanes], most = 0, odd = 0;
  if (i.e == 8) offsets<uint64_t>(w, i, offset, most, odd);
  else if (i.e == 4) offsets<uint32_t>(w, i, offset, most, odd);
  else std::fill_n(offset, kLanes, most = odd = static_cast<uint32_t>(i.imm));
  if (odd & (bytes - 1) || most > size || size - most < bytes) return refused(w, offset, bytes, size);
  const uint64_t step = own ? size : 0;
  each(w.mask, [=](uint32_t l) { at[l] = begin + offset[l] + l * step; });
  return true;
}

}  // namespace

Where where_of(const Statement& s) {
  if (s.has("shared") || s.has("shared::cta")) return Where::Shared;
  if (s.has("local")) return Where::Local;
  return s.has("param") || s.has("param::entry") || s.has("param::func") ? Where::Param : Where::Generic;
}

namespace {

// May the statement name a variable of this state space?  A generic address is none of constant memory or a parameter's.
bool may_name(const Statement& s, ptx::Space space) {
  std::string_view word = s.one_of(kSpacesOfAccesses);
  switch (space) {
    case ptx::Space::Global: return word == "global" || word.empty();
    case ptx::Space::Shared: return word.substr(0, 6) == "shared" || word.empty();
    case ptx::Space::Local: return word == "local" || word.empty();
    case ptx::Space::Const: return word == "const";
    default: return word.substr(0, 5) == "param";
  }
}

}  // namespace

uint8_t order_of(const Statement& s) {
  if (s.has("acq_rel")) return kStrong | kAcquires | kReleases;
  if (s.has("acquire")) return kStrong | kAcquires;
  if (s.has("release")) return kStrong | kReleases;
  return s.has("volatile") || s.has("relaxed") || s.has("mmio") ? kStrong : kWeak;
}

void decode_address(Decoder& d, const Statement& s, const Operand& o, Where& where, Instruction& i) {
  i.imm = o.offset;
  if (o.kind != Operand::Address || !o.parts.empty() || ptx::begins_constant(o.text)) d.refuse(s, "an address that is none");
  const Symbol* symbol = d.symbol(std::string(o.text));
  if (!symbol) {
    Slot slot = d.use([&] { Operand base = o; base.kind = Operand::Register, base.offset = 0; return base; }(), "u64");
    i.a = slot.offset, i.e = slot.width;
    if (where == Where::Local) where = Where::Generic;  // a register holds a local address as a generic one, see move.cpp
    if (where == Where::Generic && i.e != 8) throw Unsupported("line " + std::to_string(i.line) + ": a 32-bit address");
    return;
  }
  if (!may_name(s, symbol->space)) d.refuse(s, "a variable of another state space");
  if (where == Where::Generic && symbol->space == ptx::Space::Shared) where = Where::Shared;
  if (where == Where::Generic && symbol->space == ptx::Space::Local) where = Where::Local;
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

bool addresses(Lanes& w, const Instruction& i, Where where, uint32_t bytes, uint8_t* at[kLanes], bool writes) {
  switch (where) {
    case Where::Generic: return generic(w, i, bytes, at, writes);
    case Where::Shared: return within(w, i, bytes, w.shared, w.shared_bytes, false, at);
    case Where::Local: return within(w, i, bytes, w.local, w.local_bytes, true, at);
    case Where::Param: return within(w, i, bytes, w.parameters, w.parameter_bytes, w.own_parameters, at);
    case Where::Scratch: return within(w, i, bytes, w.scratch, w.scratch_bytes, true, at);
  }
  return false;
}

}  // namespace vgpu
