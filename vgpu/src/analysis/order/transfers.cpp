// The prover's view of copies and fills, which are accesses of one thread, and of values that the host reads.
#include <algorithm>
#include <cstring>

#include "prover.h"
#include "unproved_reason.h"

namespace vgpu {

// side: the address of the source, or (writes) of the destination, whichever lies in the device's memory.
void OrderProver::transfer_side(uint64_t side, const Transfer& transfer, const Accessor& now, bool writes) {
  uint8_t fill[kLineBytes];
  if (transfer.value_bytes)
    for (uint32_t k = 0; k < kLineBytes; k += transfer.value_bytes)
      std::memcpy(fill + k, &transfer.value, transfer.value_bytes);
  const auto* source = reinterpret_cast<const uint8_t*>(transfer.from);
  LaneAccess access;
  access.kind = writes ? PhaseKind::WritesOfOneValue : PhaseKind::UnchangedValue;
  // A copy in the device's memory copies the map of written bytes, too.
  const bool is_to_host = !writes && !memory_.written_map(memory_.find(transfer.to));
  for (uint64_t offset = 0; offset < transfer.bytes;) {
    auto* const address = reinterpret_cast<uint8_t*>(side + offset);
    const uint8_t* value = transfer.value_bytes ? fill : source + offset;
    const uint64_t in_line = kLineBytes - (side + offset) % kLineBytes;
    const auto bytes = static_cast<uint32_t>(std::min(in_line, transfer.bytes - offset));
    ShadowLocation location;
    if (!find_global(address, location)) return;
    if (is_to_host && !all_written(location.written, bytes)) on_unproved(UnprovedReason::UninitializedCopy, 0, 0);
    Accessor line_accessor = now;
    line_accessor.pattern = kOneThread;
    if (bytes < kLineBytes || !access_line(location, line_accessor, access, address, value))
      access_element(location, now, access, address, bytes, value);
    offset += bytes;
  }
}

void OrderProver::on_transfer(StreamOrder::Operation operation, const Transfer& transfer, uint64_t launch) {
  begin_operation(operation);
  Accessor now;
  now.operation = operation_;
  if (transfer.from && memory_.find(transfer.from).end) transfer_side(transfer.from, transfer, now, false);
  if (transfer.to && memory_.find(transfer.to).end) transfer_side(transfer.to, transfer, now, true);
  if (!findings_.empty()) report_before(launch, findings_, transfer.value_bytes ? "fill" : "copy");
  findings_.clear();
}

// All accesses must come before it.  CUDA orders it before whatever accesses memory that is allocated there later.
void OrderProver::on_free(StreamOrder::Operation operation, uint64_t begin, uint64_t end, uint64_t launch) {
  begin_operation(operation);
  Accessor now;
  now.operation = operation_;
  const auto check = [&](const Phase& phase) {
    if (!order_.is_before(phase.current, now)) findings_.add(reason_name(UnprovedReason::Race), phase.position, 0);
  };
  shadow_.for_each_line(begin, end, [&](ShadowLine& line) {
    if (!line.words) check(line.whole);
    for (uint32_t k = 0; line.words && k < kWordsPerLine; k++) {
      const ShadowWord& word = line.words[k];
      if (!word.bytes) check(word.whole);
      for (uint32_t byte = 0; word.bytes && byte < kWordBytes; byte++) check(word.bytes[byte]);
    }
    shadow_.reset(line);
  });
  allocations_.erase(begin);
  if (!findings_.empty()) report_before(launch, findings_, "free");
  findings_.clear();
}

void OrderProver::on_host_source(const char* source, uint64_t launch) {
  Findings findings;
  findings.add(source, 0, 0);
  report_before(launch, findings, "host");
}

void OrderProver::on_fallback(const char*, uint64_t launch) { on_host_source("cpu_fallback", launch); }

void OrderProver::report_before(uint64_t launch, const Findings& findings, const char* operation) {
  if (!report_) return findings.print(operation);
  report_->write("{\"before_launch\": " + std::to_string(launch) + ", \"operation\": \"" + operation +
                 "\", \"order\": " + findings.json() + "}\n");
}

}  // namespace vgpu
