// Shadow memory: the phase of each memory location, which is the set of its last accesses whose order does not matter (phase.h).
// There is one for each word of 4 bytes; for each byte, if a word was accessed in part; or for a whole line of 32 words, as
// long as full warps, or one thread, access all of them consecutively.
#pragma once
#include <algorithm>
#include <array>
#include <memory>
#include <unordered_map>
#include <vector>

#include "phase.h"

namespace vgpu {

constexpr uint32_t kLineBytes = 128, kWordBytes = 4, kWordsPerLine = kLineBytes / kWordBytes;

struct ShadowWord {
  WordPhase whole;
  std::unique_ptr<WordPhase[]> bytes;
};

struct ShadowLine {
  Phase whole;  // without `words`: the phase of the first word, which stands for all
  // If `whole` is of kind WritesOfOneValue: a mask of the words that the store left unchanged, which are of kind UnchangedValue.
  uint32_t unchanged_words = 0;
  std::unique_ptr<ShadowWord[]> words;
};
static_assert(sizeof(ShadowLine) == 64, "a line of the processor's cache");

// Patterns of a warp's consecutive accesses of 4 << shift bytes, which cover several lines; `line` is the number of this one.
// lane_of_word(): the lane that accesses a word.
constexpr uint8_t line_pattern(uint32_t shift, uint32_t line) { return static_cast<uint8_t>(shift | line << 2); }
constexpr uint8_t lane_of_word(uint8_t pattern, uint32_t word) {
  return pattern == kOneThread ? 0 : static_cast<uint8_t>(((pattern >> 2) * kWordsPerLine + word) >> (pattern & 3));
}

class ShadowMemory {
 public:
  explicit ShadowMemory(uint64_t capacity) : capacity_(capacity) {}

  ShadowLine* line(const uint8_t* pointer);  // nullptr: the capacity is used up
  void prefetch(uint64_t address);  // loads the address's line, if it exists, into the processor's cache
  ShadowWord* words(ShadowLine& line);  // its 32 words, which replace `whole`; nullptr: the capacity is used up
  WordPhase* bytes(ShadowWord& word);  // its 4 bytes, likewise
  // Whether `whole` can still stand for all words after an access of this pattern.
  static bool stays_whole(const ShadowLine& line, const Accessor& now);
  // Replace words by a line, or bytes by a word, if all previous accesses are before this one; return whether they did.
  bool restore_line(ShadowLine& line, const Accessor& now, HappensBefore& order);
  bool restore_word(ShadowWord& word, const Accessor& now, HappensBefore& order);

  // Calls f(line) for each line of [begin, end) that may have been accessed.
  template <class F> void for_each_line(uint64_t begin, uint64_t end, F f);
  void reset(ShadowLine& line);  // to that of memory that nothing has accessed

  void clear();
  uint64_t used() const { return used_; }
  uint64_t capacity() const { return capacity_; }

 private:
  static constexpr uint32_t kPageBits = 12, kLinesPerPage = (1u << kPageBits) / kLineBytes;
  static constexpr uint32_t kRegionBits = 21, kPagesPerRegion = 1u << (kRegionBits - kPageBits), kRecent = 16;
  using Page = std::array<ShadowLine, kLinesPerPage>;
  using Region = std::array<Page*, kPagesPerRegion>;  // of 2 MiB; nullptr: no location of the page was accessed
  // Allocates pages in slabs of 2 MiB, for which the system uses huge pages: page faults would dominate otherwise.
  class Slabs {
   public:
    ~Slabs() { clear(); }
    Page* add();
    void clear();

   private:
    static constexpr size_t kSlabBytes = 2 << 20, kPages = kSlabBytes / sizeof(Page);
    std::vector<Page*> slabs_;
    size_t used_in_last_ = kPages;
  };
  struct CachedRegion {
    uint64_t number = ~0ull;
    Region* region = nullptr;
  };
  Region* region(uint64_t number);
  bool count_used(uint64_t bytes);

  uint64_t capacity_, used_ = 0;
  std::unordered_map<uint64_t, std::unique_ptr<Region>> regions_;
  Slabs slabs_;
  CachedRegion recent_[kRecent];
};

template <class F> void ShadowMemory::for_each_line(uint64_t begin, uint64_t end, F f) {
  for (uint64_t address = begin / kLineBytes * kLineBytes; address < end;) {
    const auto region = regions_.find(address >> kRegionBits);
    Page* const page =
        region == regions_.end() || !region->second ? nullptr : (*region->second)[(address >> kPageBits) % kPagesPerRegion];
    const uint64_t page_end = ((address >> kPageBits) + 1) << kPageBits;
    for (; page && address < std::min(end, page_end); address += kLineBytes) f((*page)[address / kLineBytes % kLinesPerPage]);
    if (!page) address = page_end;
  }
}

}  // namespace vgpu
