// What is known of each place of memory: the phase that it is in, by words, by bytes where somebody comes to a part of a word,
// and by lines of 32 words for as long as whole warps, or one thread, come to all of them in a row.
#pragma once
#include <array>
#include <memory>
#include <unordered_map>
#include <vector>

#include "phase.h"

namespace vgpu {

constexpr uint32_t kLineBytes = 128, kWordBytes = 4, kWordsPerLine = kLineBytes / kWordBytes;

struct ShadowWord {
  Phase whole;
  std::unique_ptr<Phase[]> bytes;
};

struct ShadowLine {
  Phase row;  // where there are no words: that of the first one, which stands for all
  std::unique_ptr<ShadowWord[]> words;
};

// The lane that comes to a word of a line, as lanes of 4 << shift bytes each come to several lines, of which this is one.
constexpr uint8_t row_pattern(uint32_t shift, uint32_t line) { return static_cast<uint8_t>(shift | line << 2); }
constexpr uint8_t row_lane(uint8_t pattern, uint32_t word) {
  return pattern == kOneThread ? 0 : static_cast<uint8_t>(((pattern >> 2) * kWordsPerLine + word) >> (pattern & 3));
}

class ShadowMemory {
 public:
  explicit ShadowMemory(uint64_t capacity) : capacity_(capacity) {}

  ShadowLine* line(const uint8_t* at);  // nullptr: there is no room for it
  ShadowWord* words(ShadowLine& line);  // its 32, made from the row where there are none; nullptr: no room
  Phase* bytes(ShadowWord& word);       // its 4
  // Is the row's one phase enough for an access of this pattern too?
  static bool keeps_row(const ShadowLine& line, const Accessor& now);
  // A row again, where all who came to its words are before this access.
  bool restore_row(ShadowLine& line, const Accessor& now, HappensBefore& order);
  bool restore_word(ShadowWord& word, const Accessor& now, HappensBefore& order);

  void clear();
  uint64_t used() const { return used_; }
  uint64_t capacity() const { return capacity_; }

 private:
  static constexpr uint32_t kPageBits = 12, kLinesPerPage = (1u << kPageBits) / kLineBytes, kRecent = 16;
  using Page = std::array<ShadowLine, kLinesPerPage>;
  // Pages side by side in large ones of the system's: their first use would take longer than all else.
  class Slabs {
   public:
    ~Slabs() { clear(); }
    Page* add();
    void clear();

   private:
    static constexpr size_t kSlabBytes = 2 << 20, kPages = kSlabBytes / sizeof(Page);
    std::vector<Page*> slabs_;
    size_t in_last_ = kPages;
  };
  struct Recent {
    uint64_t number = ~0ull;
    Page* page = nullptr;
  };
  bool take(uint64_t bytes);

  uint64_t capacity_, used_ = 0;
  std::unordered_map<uint64_t, Page*> pages_;
  Slabs slabs_;
  Recent recent_[kRecent];
};

}  // namespace vgpu
