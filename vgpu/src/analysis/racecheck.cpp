#include "racecheck.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "core/launch.h"

namespace vgpu {
namespace {

constexpr size_t kMostReads = 8, kMostRaces = 32;
constexpr size_t kMostPlaces = 1 << 22;

uint64_t known_until(const std::map<uint64_t, uint64_t>& of, uint64_t who) {
  auto found = of.find(who);
  return found == of.end() ? 0 : found->second;
}

// Of shared memory each block has its own, perhaps where another block's was.
uint64_t key(const Lanes& w, const uint8_t* at) {
  bool shared = is_shared(w, at);
  uint64_t offset = static_cast<uint64_t>(at - w.shared);
  return shared ? (1ull << 63) | (uint64_t(w.block) << 20) | offset >> 2 : reinterpret_cast<uint64_t>(at) >> 2;
}

const char* name(Touch::What what) { return what == Touch::Read ? "read" : what == Touch::Write ? "write" : "atomic"; }

}  // namespace

void Races::Known::join(const Known& other) {
  for (auto [who, until] : other.blocks) blocks[who] = std::max(blocks[who], until);
  for (auto [who, until] : other.threads) threads[who] = std::max(threads[who], until);
}

void Races::begin(const Launch&) {
  threads_.clear(), blocks_.clear(), places_.clear(), published_.clear(), races_.clear();
  instance_ = 0;
}

Races::Thread& Races::thread(const Lanes& w, uint64_t number) {
  auto [found, fresh] = threads_.try_emplace(number);
  if (fresh) blocks_[w.block].threads.push_back(number);
  return found->second;
}

bool Races::before(const Stamp& one, const Stamp& now) const {
  const Block& block = blocks_.at(now.block);
  if (one.thread == now.thread || (one.block == now.block && block.barriers > one.barriers)) return true;
  const Known& own = threads_.at(now.thread).known;
  return std::max(known_until(own.blocks, one.block), known_until(block.known.blocks, one.block)) > one.barriers ||
         std::max(known_until(own.threads, one.thread), known_until(block.known.threads, one.thread)) > one.releases;
}

void Races::compare(const Lanes& w, const Stamp& one, const Stamp& now, const uint8_t* at) {
  if (!one.instance || one.instance == now.instance || !(one.bytes & now.bytes) || (one.strong && now.strong)) return;
  if (before(one, now)) return;
  auto lines = std::make_tuple(one.line, now.line);
  if (races_.size() == kMostRaces && !races_.count(lines)) return;
  Race& race = races_[lines];
  if (!race.times++) race.first = one, race.second = now, race.at = locate(w, at);
}

void Races::word(const Lanes& w, const uint8_t* at, Stamp now) {
  if (places_.size() == kMostPlaces && !places_.count(key(w, at))) return;
  Place& place = places_[key(w, at)];
  compare(w, place.write, now, at);
  if (now.what != Touch::Read) {
    for (const Stamp& one : place.reads) compare(w, one, now, at);
    place.reads.clear();
    place.write = now;
    return;
  }
  auto same = std::find_if(place.reads.begin(), place.reads.end(),
                           [&](const Stamp& one) { return one.thread == now.thread && one.bytes == now.bytes; });
  if (same != place.reads.end()) *same = now;
  else if (place.reads.size() < kMostReads) place.reads.push_back(now);
}

// What a strong access hands on: what was before the last fence, or is before it where it releases; what is read counts from
// the next fence on, or at once where it acquires.
void Races::order(const Lanes& w, uint64_t number, const Touch& t, const uint8_t* at) {
  Thread& own = thread(w, number);
  Known& here = published_[key(w, at)];
  if (t.order & kReleases) publish(w, number, own);
  if (t.what != Touch::Write) (t.order & kAcquires ? own.known : own.read).join(here);
  if (t.what == Touch::Read) return;
  here.join(own.published);
  here.join(blocks_[w.block].published);
}

void Races::touch(const Lanes& w, const Instruction& i, const Touch& t) {
  instance_++;
  for (uint32_t k = 0; k < t.count; k++) {
    const uint8_t* at = t.at[t.lanes[k]];
    if (locate(w, at).space == Location::None) continue;
    uint64_t number = thread_of(w, t.lanes[k]);
    Stamp now{number, w.block, 0, thread(w, number).releases, instance_, i.line, t.what, t.strong(), 0xf};
    now.barriers = blocks_[w.block].barriers;
    if (t.strong()) order(w, number, t, at);
    if (t.bytes < 4) now.bytes = static_cast<uint8_t>(((1u << t.bytes) - 1) << (reinterpret_cast<uint64_t>(at) & 3));
    for (uint32_t from = 0; from < t.bytes; from += 4) word(w, at + from, now);
  }
}

void Races::publish(const Lanes& w, uint64_t number, Thread& own) {
  const Block& block = blocks_[w.block];
  own.published = own.known;
  own.published.join(block.known);
  own.published.blocks[w.block] = block.barriers;
  own.published.threads[number] = ++own.releases;
  own.fenced = true;
}

void Races::fence(const Lanes& w) {
  for (uint32_t left = w.mask; left; left &= left - 1) {
    uint64_t number = thread_of(w, static_cast<uint32_t>(__builtin_ctz(left)));
    Thread& own = thread(w, number);
    own.known.join(own.read);
    own.read = Known();
    publish(w, number, own);
  }
}

void Races::barrier(uint32_t number) {
  Block& block = blocks_[number];
  for (uint64_t one : block.threads) {
    Thread& own = threads_.at(one);
    block.known.join(own.known);
    block.known.join(own.read);
    own.known = own.read = Known();
    // What one thread has put a fence behind, another one of the block hands on after the barrier.
    if (std::exchange(own.fenced, false)) block.published.join(own.published);
  }
  block.barriers++;
}

void Races::meeting(const Lanes& w, uint32_t mask) {
  Known all;
  auto each_of = [&](auto f) {
    for (uint32_t left = mask; left; left &= left - 1) {
      uint64_t number = thread_of(w, static_cast<uint32_t>(__builtin_ctz(left)));
      f(number, thread(w, number));
    }
  };
  Known published, read;
  each_of([&](uint64_t number, Thread& own) {
    all.join(own.known);
    published.join(own.published);
    read.join(own.read);
    all.threads[number] = ++own.releases;
  });
  each_of([&](uint64_t, Thread& own) { own.known.join(all), own.published.join(published), own.read.join(read); });
}

void Races::end(const Launch& launch, const Outcome&) {
  const uint64_t threads = launch.threads();
  auto place = [&](const Stamp& one) {
    return std::string("the ") + name(one.what) + " of line " + std::to_string(one.line) + " by thread " +
           std::to_string(one.thread % threads) + " of block " + std::to_string(one.block);
  };
  for (const auto& [lines, race] : races_) {
    std::string where =
        race.at.space == Location::Shared ? "shared memory" : "allocation " + std::to_string(race.at.allocation);
    std::fprintf(stderr, "vgpu: race in %s: %s and %s, at byte %llu of %s (%llu times)\n", launch.program->name.c_str(),
                 place(race.first).c_str(), place(race.second).c_str(), static_cast<unsigned long long>(race.at.offset),
                 where.c_str(), static_cast<unsigned long long>(race.times));
  }
}

}  // namespace vgpu
