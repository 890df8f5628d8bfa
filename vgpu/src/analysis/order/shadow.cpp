// Shadow memory of the proof, within a capacity in bytes: which accesses each location has had (phase.h, happens_before.h).
#include "shadow.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>

namespace vgpu {
namespace {

// Whether `accessors`, which may stand for a line of words, still do so once `now` has accessed the line.  Accesses before
// the clock now.lockstep_clock are before `now`, whichever lanes made them.
bool keeps_pattern(const AccessorSummary& accessors, const Accessor& now) {
  return !accessors.is_of(now) || accessors.pattern == now.pattern || accessors.clock < now.lockstep_clock;
}

// Reduces a line's accessors to those of one of its words.
void move_to_word(AccessorSummary& accessors, uint32_t word) {
  if (accessors.lanes) accessors.lanes = 1u << lane_of_word(accessors.pattern, word);
  accessors.pattern = 0;
}

// Returns a phase that no access can join, and that is before an access if all these accessors are.
WordPhase completed_phase(const AccessorSummary& accessors, uint32_t position) {
  WordPhase phase;
  phase.current = accessors, phase.kind = PhaseKind::SingleAccess, phase.position = position;
  return phase;
}

}  // namespace

ShadowMemory::Page* ShadowMemory::Slabs::add() {
  if (used_in_last_ == kPages) {
    void* slab = std::aligned_alloc(kSlabBytes, kSlabBytes);
    if (!slab) return nullptr;
    madvise(slab, kSlabBytes, MADV_HUGEPAGE);
    slabs_.push_back(static_cast<Page*>(slab)), used_in_last_ = 0;
  }
  return new (slabs_.back() + used_in_last_++) Page();
}

void ShadowMemory::Slabs::clear() {
  for (Page* slab : slabs_) {
    std::destroy_n(slab, slab == slabs_.back() ? used_in_last_ : kPages);
    std::free(slab);
  }
  slabs_.clear(), used_in_last_ = kPages;
}

bool ShadowMemory::count_used(uint64_t bytes) {
  if (used_ + bytes > capacity_) return false;
  return used_ += bytes, true;
}

ShadowMemory::Region* ShadowMemory::region(uint64_t number) {
  CachedRegion& recent = recent_[number % kRecent];
  if (recent.number != number) {
    std::unique_ptr<Region>& region = regions_[number];
    if (!region) {
      if (!count_used(sizeof(Region))) return nullptr;
      region = std::make_unique<Region>();
    }
    recent = {number, region.get()};
  }
  return recent.region;
}

ShadowLine* ShadowMemory::line(const uint8_t* pointer) {
  const uint64_t address = reinterpret_cast<uint64_t>(pointer);
  Region* const region = this->region(address >> kRegionBits);
  if (!region) return nullptr;
  Page*& page = (*region)[(address >> kPageBits) % kPagesPerRegion];
  if (!page && count_used(sizeof(Page))) page = slabs_.add();
  return page ? &(*page)[address / kLineBytes % kLinesPerPage] : nullptr;
}

void ShadowMemory::prefetch(uint64_t address) {
  const CachedRegion& recent = recent_[(address >> kRegionBits) % kRecent];
  if (recent.number != address >> kRegionBits) return;
  const Page* page = (*recent.region)[(address >> kPageBits) % kPagesPerRegion];
  if (!page) return;
  const ShadowLine& line = (*page)[address / kLineBytes % kLinesPerPage];
  __builtin_prefetch(&line, 1);
}

void ShadowMemory::reset(ShadowLine& line) {
  for (uint32_t k = 0; line.words && k < kWordsPerLine; k++) used_ -= line.words[k].bytes ? kWordBytes * sizeof(WordPhase) : 0;
  if (line.words) used_ -= kWordsPerLine * sizeof(ShadowWord);
  line = ShadowLine();
}

ShadowWord* ShadowMemory::words(ShadowLine& line) {
  if (line.words) return line.words.get();
  if (!count_used(kWordsPerLine * sizeof(ShadowWord))) return nullptr;
  line.words = std::make_unique<ShadowWord[]>(kWordsPerLine);
  for (uint32_t k = 0; k < kWordsPerLine; k++) {
    Phase& phase = line.words[k].whole;
    phase = line.whole;
    move_to_word(phase.current, k), move_to_word(phase.previous, k);
    if (line.unchanged_words >> k & 1) phase.kind = PhaseKind::UnchangedValue;
  }
  return line.words.get();
}

WordPhase* ShadowMemory::bytes(ShadowWord& word) {
  if (word.bytes) return word.bytes.get();
  if (!count_used(kWordBytes * sizeof(WordPhase))) return nullptr;
  word.bytes = std::make_unique<WordPhase[]>(kWordBytes);
  std::fill_n(word.bytes.get(), kWordBytes, word.whole);
  return word.bytes.get();
}

bool ShadowMemory::stays_whole(const ShadowLine& line, const Accessor& now) {
  return !line.words && keeps_pattern(line.whole.current, now) && keeps_pattern(line.whole.previous, now);
}

bool ShadowMemory::restore_word(ShadowWord& word, const Accessor& now, HappensBefore& order) {
  AccessorSummary accessors;
  for (uint32_t k = 0; k < kWordBytes; k++) {
    if (!order.is_before(word.bytes[k].current, now)) return false;
    accessors = order.unite(accessors, word.bytes[k].current);
  }
  word.whole = completed_phase(accessors, word.bytes[0].position);
  for (uint32_t k = 0; k < kWordBytes; k++)
    word.whole.written |= word.bytes[k].written && word.bytes[k].current.operation == accessors.operation;
  word.bytes.reset();
  used_ -= kWordBytes * sizeof(WordPhase);
  return true;
}

// All accesses must be of earlier operations, of which lanes do not matter.
bool ShadowMemory::restore_line(ShadowLine& line, const Accessor& now, HappensBefore& order) {
  AccessorSummary accessors;
  for (uint32_t k = 0; k < kWordsPerLine; k++) {
    const ShadowWord& word = line.words[k];
    if (word.bytes) return false;
    if (word.whole.current.extent == AccessorSummary::None) continue;
    if (!order.is_earlier_operation(word.whole.current.operation, now)) return false;
    accessors = order.unite(accessors, word.whole.current);
  }
  line.whole = completed_phase(accessors, line.words[0].whole.position), line.unchanged_words = 0;
  line.words.reset();
  used_ -= kWordsPerLine * sizeof(ShadowWord);
  return true;
}

void ShadowMemory::clear() {
  regions_.clear(), slabs_.clear();
  std::fill(recent_, recent_ + kRecent, CachedRegion());
  used_ = 0;
}

}  // namespace vgpu
