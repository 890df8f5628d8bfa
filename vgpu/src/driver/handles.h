// Handles that programs hold.  Each is looked up before it is used: what is not alive is an error of CUDA's and no crash.
#pragma once
#include <iterator>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace vgpu {

template <class T> class Handles {
 public:
  static Handles& all() {
    static Handles* one = new Handles;
    return *one;
  }  // never destroyed: libraries call late

  T* add(std::unique_ptr<T> made) {
    std::lock_guard<std::mutex> hold(lock_);
    T* handle = made.get();
    alive_[handle] = std::move(made);
    return handle;
  }
  // nullptr: none that is alive.
  T* find(const void* handle) {
    std::lock_guard<std::mutex> hold(lock_);
    auto found = alive_.find(handle);
    return found == alive_.end() ? nullptr : found->second.get();
  }
  // Destroys all of which f(object) holds.
  template <class F> void take_where(F f) {
    std::lock_guard<std::mutex> hold(lock_);
    for (auto one = alive_.begin(); one != alive_.end();) one = f(*one->second) ? alive_.erase(one) : std::next(one);
  }
  std::unique_ptr<T> take(const void* handle) {
    std::lock_guard<std::mutex> hold(lock_);
    auto found = alive_.find(handle);
    if (found == alive_.end()) return nullptr;
    std::unique_ptr<T> taken = std::move(found->second);
    alive_.erase(found);
    return taken;
  }

 private:
  std::mutex lock_;
  std::unordered_map<const void*, std::unique_ptr<T>> alive_;
};

template <class T> T* alive(const void* handle) { return Handles<T>::all().find(handle); }

}  // namespace vgpu
