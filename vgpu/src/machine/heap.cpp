#include "heap.h"

#include <iterator>

namespace vgpu {

constexpr uint64_t kAlignment = 16;

bool Heap::resize(uint64_t bytes) {
  if (made_) return bytes == bytes_;
  return bytes_ = bytes, true;
}

uint64_t Heap::allocate(uint64_t bytes) {
  if (!made_) {
    uint64_t at = reinterpret_cast<uint64_t>(memory_.allocate(bytes_));
    if (!at) return 0;
    made_ = true, free_[at] = bytes_;
  }
  if (!bytes || bytes > bytes_) return 0;
  bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  for (auto one = free_.begin(); one != free_.end(); ++one) {
    auto [at, room] = *one;
    if (room < bytes) continue;
    free_.erase(one);
    if (room > bytes) free_[at + bytes] = room - bytes;
    return taken_[at] = bytes, at;
  }
  return 0;
}

bool Heap::release(uint64_t at) {
  auto found = taken_.find(at);
  if (found == taken_.end()) return false;
  auto place = free_.emplace(at, found->second).first;
  taken_.erase(found);
  auto behind = std::next(place);
  if (behind != free_.end() && place->first + place->second == behind->first)
    place->second += behind->second, free_.erase(behind);
  if (place != free_.begin())
    if (auto before = std::prev(place); before->first + before->second == place->first)
      before->second += place->second, free_.erase(place);
  return true;
}

}  // namespace vgpu
