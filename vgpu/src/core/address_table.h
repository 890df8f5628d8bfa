// Entries that wait at addresses, in order of arrival at each.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace vgpu {

template <class Entry> class AddressTable {
 public:
  uint32_t size() const { return size_; }
  Entry& operator[](uint32_t slot) { return entries_[slot]; }
  const Entry& operator[](uint32_t slot) const { return entries_[slot]; }
  uint8_t* address(uint32_t slot) const { return nodes_[slot].address; }  // nullptr in a free slot
  uint32_t generation(uint32_t slot) const { return nodes_[slot].generation; }  // changes when the entry is freed

  uint32_t add(uint8_t* address) {  // returns the slot of a new entry, whose fields the caller sets
    if (buckets_.empty()) buckets_.assign(size_t(1) << kBucketBits, kNone);
    if (first_free_ == kNone) {
      first_free_ = static_cast<uint32_t>(nodes_.size());
      nodes_.emplace_back(), entries_.emplace_back();
    }
    const uint32_t slot = first_free_;
    Node& node = nodes_[slot];
    uint32_t& first = buckets_[bucket(address)];
    first_free_ = node.next;
    node.address = address, node.next = first;
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

  // The same, but may be wrong if there is none.
  bool may_wait_at(const uint8_t* address) const { return size_ && buckets_[bucket(address)] != kNone; }

  // Removes the entries at an address.  Appends their slots to `slots`, in order of arrival; they stay readable until `free`.
  void remove_at(const uint8_t* address, std::vector<uint32_t>& slots) {
    if (!size_) return;
    const size_t previous = slots.size();
    remove_from(buckets_[bucket(address)], [=](const uint8_t* at) { return at == address; }, slots);
    std::reverse(slots.begin() + static_cast<std::ptrdiff_t>(previous), slots.end());
  }
  // The same for the entries whose memory may overlap an access, in any order.
  void remove_overlapping(const uint8_t* address, uint32_t bytes, std::vector<uint32_t>& slots) {
    const auto overlaps = [=](const uint8_t* at) { return at + kMaxBytes > address && at < address + bytes; };
    const uint8_t* const first = address - number(address) % kMaxBytes;
    for (const uint8_t* at = first; at < address + bytes; at += kGranuleBytes)
      remove_from(buckets_[bucket(at)], overlaps, slots);
  }
  // Removes and frees the entries at an address, and passes each to f, the latest first.
  template <class F> void take_at(const uint8_t* address, F f) {
    if (!size_) return;
    for (uint32_t* link = &buckets_[bucket(address)]; *link != kNone;) {
      const uint32_t slot = *link;
      if (nodes_[slot].address != address) {
        link = &nodes_[slot].next;
        continue;
      }
      *link = nodes_[slot].next;
      f(entries_[slot]);
      free(slot);
    }
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
    nodes_[slot].address = nullptr, nodes_[slot].next = first_free_, nodes_[slot].generation++;
    first_free_ = slot;
    size_--;
  }

 private:
  static constexpr uint32_t kNone = ~0u;
  struct Node {
    uint8_t* address = nullptr;
    uint32_t next = kNone;  // in the list of its bucket, which begins with the latest, or of free slots
    uint32_t generation = 0;  // how often the slot was freed
  };
  // The largest atomic is aligned, so addresses of those that overlap are in the same kMaxBytes.
  static constexpr uint32_t kMaxBytes = 8, kGranuleBytes = 4;
  static constexpr uint32_t kBucketBits = 14;
  static uint64_t number(const uint8_t* address) { return reinterpret_cast<uint64_t>(address); }
  static size_t bucket(const uint8_t* address) {  // of the addresses in the same kGranuleBytes
    return number(address) / kGranuleBytes * 0x9e3779b97f4a7c15ull >> (64 - kBucketBits);
  }

  // Removes the entries of a list for which predicate(their address) is true, and appends their slots, the latest first.
  template <class P> void remove_from(uint32_t& first, P predicate, std::vector<uint32_t>& slots) {
    for (uint32_t* link = &first; *link != kNone;) {
      const uint32_t slot = *link;
      if (predicate(nodes_[slot].address)) slots.push_back(slot), *link = nodes_[slot].next;
      else link = &nodes_[slot].next;
    }
  }

  std::vector<Node> nodes_;  // apart from the entries: a search reads only these
  std::vector<Entry> entries_;
  std::vector<uint32_t> buckets_;  // the first slot of each list
  uint32_t first_free_ = kNone, size_ = 0;
};

}  // namespace vgpu
