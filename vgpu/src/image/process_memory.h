// Memory that a caller points to, of which nobody says how long it is.
#pragma once
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "invalid_image.h"

namespace vgpu {

// What a damaged container says of its own size may lead anywhere, so it is read as a file, which fails where nothing lies.
class ProcessMemory {
 public:
  ProcessMemory() : file_(open("/proc/self/mem", O_RDONLY | O_CLOEXEC)) {
    if (file_ < 0) throw Unsupported("/proc/self/mem cannot be read");
  }
  ~ProcessMemory() { close(file_); }
  ProcessMemory(const ProcessMemory&) = delete;

  std::string bytes(uint64_t at, uint64_t size) const {
    std::string all(size, 0);
    if (read_up_to(at, all.data(), size) != size) throw InvalidImage("a damaged container: it ends where no memory is");
    return all;
  }
  template <class T> T read(uint64_t at) const {
    T value;
    std::string raw = bytes(at, sizeof value);
    std::memcpy(&value, raw.data(), sizeof value);
    return value;
  }
  // Up to a zero byte, `most` bytes or the end of the memory.
  std::string text(uint64_t at, uint64_t most) const {
    std::string all;
    while (all.size() < most) {
      char piece[4096];
      size_t got = read_up_to(at + all.size(), piece, std::min<uint64_t>(4096 - (at + all.size()) % 4096, most - all.size()));
      size_t length = strnlen(piece, got);
      all.append(piece, length);
      if (length < got || !got) break;
    }
    return all;
  }

 private:
  uint64_t read_up_to(uint64_t at, char* to, uint64_t size) const {
    uint64_t done = 0;
    while (done < size) {
      ssize_t got = pread64(file_, to + done, size - done, static_cast<off64_t>(at + done));
      if (got <= 0) break;
      done += static_cast<uint64_t>(got);
    }
    return done;
  }

  int file_;
};

}  // namespace vgpu
