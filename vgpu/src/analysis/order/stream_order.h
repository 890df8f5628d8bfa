// Which operations of streams (launches, copies, fills) are over before which, in every schedule: those before it on the same
// stream, and what events, waits of the host and the legacy stream add (vector clocks: Fidge 1988, Mattern 1989).
//
// Assumed: the host is one thread, and does not go on where a query told it that work was not done yet.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

namespace vgpu {

class StreamOrder {
 public:
  using StreamNumber = uint32_t;  // never used again; the legacy default stream has kLegacy
  using Operation = uint32_t;     // from 1 on; or several, see unite()
  static constexpr StreamNumber kLegacy = 0;

  Operation add(StreamNumber stream, bool blocking);
  // Runs in this thread from now on: what is_before_current() compares with.
  void set_current(Operation operation);
  bool is_before_current(Operation operation) const;
  bool are_all_before_current() const;  // but for itself
  Operation unite(Operation one, Operation other);  // before whatever both are before

  void record(uint64_t event, StreamNumber stream, bool blocking);
  void wait(StreamNumber stream, uint64_t event);
  void on_host_wait(StreamNumber stream, bool blocking);
  void on_host_wait_event(uint64_t event);
  void on_host_wait_all();

 private:
  using Clock = std::vector<uint32_t>;  // of each stream, how many of its operations are over
  struct Point {
    StreamNumber stream;
    uint32_t count;
  };
  using Members = std::vector<Operation>;
  static constexpr Operation kUnited = 1u << 31;

  static void join(Clock& to, const Clock& from);
  Clock& clock(StreamNumber stream) { return streams_[stream]; }
  // What comes next on the stream comes after this.
  Clock& arrive(StreamNumber stream, bool blocking);
  bool is_before(Operation operation, const Clock& now) const;
  Members members(Operation operation) const;

  mutable std::mutex lock_;
  std::map<StreamNumber, Clock> streams_;
  std::map<StreamNumber, bool> blocking_;
  std::map<uint64_t, Clock> events_;
  Clock host_, current_;
  std::map<Operation, Clock> pending_;  // of operations that have not begun
  std::vector<Point> operations_;
  Operation current_operation_ = 0;
  std::vector<Members> united_;
  std::map<Members, Operation> united_index_;
};

}  // namespace vgpu
