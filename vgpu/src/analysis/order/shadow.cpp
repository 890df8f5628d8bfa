// Shadow memory of the proof: a phase for each line, word or byte, within a capacity.
#include "shadow.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>

namespace vgpu {
namespace {

bool keeps_pattern(const Accessors& all, const Accessor& now) {
  return !all.is_of(now) || all.pattern == now.pattern || all.clock < now.everyone;
}

// The same of one of the row's words.
void move_to_word(Accessors& all, uint32_t word) {
  if (all.lanes) all.lanes = 1u << row_lane(all.pattern, word);
  all.pattern = 0;
}

// What all of them were before: nobody joins it, and who comes after it comes after each.
Phase over(const Accessors& all, uint32_t line) {
  Phase made;
  made.now = all, made.kind = PhaseKind::Alone, made.line = line;
  return made;
}

}  // namespace

ShadowMemory::Page* ShadowMemory::Slabs::add() {
  if (in_last_ == kPages) {
    void* made = std::aligned_alloc(kSlabBytes, kSlabBytes);
    if (!made) return nullptr;
    madvise(made, kSlabBytes, MADV_HUGEPAGE);
    slabs_.push_back(static_cast<Page*>(made)), in_last_ = 0;
  }
  return new (slabs_.back() + in_last_++) Page();
}

void ShadowMemory::Slabs::clear() {
  for (Page* slab : slabs_) {
    std::destroy_n(slab, slab == slabs_.back() ? in_last_ : kPages);
    std::free(slab);
  }
  slabs_.clear(), in_last_ = kPages;
}

bool ShadowMemory::take(uint64_t bytes) {
  if (used_ + bytes > capacity_) return false;
  return used_ += bytes, true;
}

ShadowLine* ShadowMemory::line(const uint8_t* at) {
  const uint64_t address = reinterpret_cast<uint64_t>(at), number = address >> kPageBits;
  Recent& recent = recent_[number % kRecent];
  if (recent.number != number) {
    Page*& found = pages_[number];
    if (!found && take(sizeof(Page))) found = slabs_.add();
    if (!found) return nullptr;
    recent = {number, found};
  }
  return &(*recent.page)[address / kLineBytes % kLinesPerPage];
}

ShadowWord* ShadowMemory::words(ShadowLine& line) {
  if (line.words) return line.words.get();
  if (!take(kWordsPerLine * sizeof(ShadowWord))) return nullptr;
  line.words = std::make_unique<ShadowWord[]>(kWordsPerLine);
  for (uint32_t k = 0; k < kWordsPerLine; k++) {
    Phase& own = line.words[k].whole = line.row;
    move_to_word(own.now, k), move_to_word(own.before, k);
  }
  return line.words.get();
}

Phase* ShadowMemory::bytes(ShadowWord& word) {
  if (word.bytes) return word.bytes.get();
  if (!take(kWordBytes * sizeof(Phase))) return nullptr;
  word.bytes = std::make_unique<Phase[]>(kWordBytes);
  std::fill_n(word.bytes.get(), kWordBytes, word.whole);
  return word.bytes.get();
}

bool ShadowMemory::keeps_row(const ShadowLine& line, const Accessor& now) {
  return !line.words && keeps_pattern(line.row.now, now) && keeps_pattern(line.row.before, now);
}

bool ShadowMemory::restore_word(ShadowWord& word, const Accessor& now, HappensBefore& order) {
  Accessors all;
  for (uint32_t k = 0; k < kWordBytes; k++) {
    if (!order.is_before(word.bytes[k].now, now)) return false;
    all = order.unite(all, word.bytes[k].now);
  }
  const StreamOrder::Operation written = word.bytes[0].written_by;
  word.whole = over(all, word.bytes[0].line);
  word.whole.written_by = written;
  for (uint32_t k = 1; k < kWordBytes; k++) word.whole.written_by = std::max(word.whole.written_by, word.bytes[k].written_by);
  word.bytes.reset();
  used_ -= kWordBytes * sizeof(Phase);
  return true;
}

// Only what earlier operations did: its lanes do not matter any more.
bool ShadowMemory::restore_row(ShadowLine& line, const Accessor& now, HappensBefore& order) {
  Accessors all;
  for (uint32_t k = 0; k < kWordsPerLine; k++) {
    const ShadowWord& word = line.words[k];
    if (word.bytes) return false;
    if (word.whole.now.extent == Accessors::None) continue;
    if (!order.is_earlier_operation(word.whole.now.operation, now)) return false;
    all = order.unite(all, word.whole.now);
  }
  line.row = over(all, line.words[0].whole.line);
  line.words.reset();
  used_ -= kWordsPerLine * sizeof(ShadowWord);
  return true;
}

void ShadowMemory::clear() {
  pages_.clear(), slabs_.clear();
  std::fill(recent_, recent_ + kRecent, Recent());
  used_ = 0;
}

}  // namespace vgpu
