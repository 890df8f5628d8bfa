// Entries that wait at addresses, in order of arrival at each.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace vgpu {

template <class Entry> class AddressTable {
 public:
  static constexpr uint32_t kGranuleBytes = 8;  // of the largest atomic; addresses in the same 8 bytes are in one bucket

  uint32_t size() const { return size_; }
  Entry& operator[](uint32_t slot) { return entries_[slot]; }
  const Entry& operator[](uint32_t slot) const { return entries_[slot]; }
  uint8_t* address(uint32_t slot) const { return nodes_[slot].address; }  // nullptr in a free slot

  uint32_t add(uint8_t* address) {  // returns the slot of a new entry, whose fields the caller sets
    if (buckets_.empty()) buckets_.assign(size_t(1) << kBucketBits, kNone);
    uint32_t slot = static_cast<uint32_t>(nodes_.size());
    if (free_.empty()) nodes_.emplace_back(), entries_.emplace_back();
    else slot = free_.back(), free_.pop_back();
    uint32_t& first = buckets_[bucket(address)];
    nodes_[slot] = {address, first};
    first = slot;
    size_++;
    return slot;
  }

  bool waits_at(const uint8_t* address) const {
    if (!size_) return false;
    uint32_t slot = buckets_[bucket(address)];
    while (slot != kNone && nodes_[slot].address != address) slot = nodes_[slot].next;
    return slot != kNone;
  }

  // Removes entries within the 8 bytes around an address for which predicate(their address) is true.  Appends their slots to
  // `slots`, in order of arrival; they stay readable until `free`.
  template <class P> void remove_near(const uint8_t* address, P predicate, std::vector<uint32_t>& slots) {
    if (!size_) return;
    const size_t previous = slots.size();
    for (uint32_t* link = &buckets_[bucket(address)]; *link != kNone;) {
      const uint32_t slot = *link;
      if (predicate(nodes_[slot].address)) slots.push_back(slot), *link = nodes_[slot].next;
      else link = &nodes_[slot].next;
    }
    std::reverse(slots.begin() + static_cast<std::ptrdiff_t>(previous), slots.end());
  }
  void remove_at(const uint8_t* address, std::vector<uint32_t>& slots) {
    remove_near(address, [=](const uint8_t* at) { return at == address; }, slots);
  }
  void remove(uint32_t slot) {
    uint32_t* link = &buckets_[bucket(nodes_[slot].address)];
    while (*link != slot) link = &nodes_[*link].next;
    *link = nodes_[slot].next;
  }
  template <class P> void remove_if(P predicate, std::vector<uint32_t>& slots) {  // in the order of the slots
    for (uint32_t slot = 0; slot < nodes_.size(); slot++)
      if (nodes_[slot].address && predicate(entries_[slot])) remove(slot), slots.push_back(slot);
  }
  void free(uint32_t slot) {
    nodes_[slot].address = nullptr;
    free_.push_back(slot);
    size_--;
  }

 private:
  struct Node {
    uint8_t* address = nullptr;
    uint32_t next = kNone;  // in the list of its bucket, which begins with the latest
  };
  static constexpr uint32_t kNone = ~0u;
  static constexpr uint32_t kBucketBits = 14;
  static size_t bucket(const uint8_t* address) {
    return reinterpret_cast<uint64_t>(address) / kGranuleBytes * 0x9e3779b97f4a7c15ull >> (64 - kBucketBits);
  }

  std::vector<Node> nodes_;  // apart from the entries: a search reads only these
  std::vector<Entry> entries_;
  std::vector<uint32_t> free_, buckets_;  // buckets_: the first slot of each list
  uint32_t size_ = 0;
};

}  // namespace vgpu
