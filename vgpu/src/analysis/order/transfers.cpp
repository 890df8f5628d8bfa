// Copies and fills of streams, as accesses of one thread; and what the host may base a decision on.
#include <algorithm>
#include <cstring>

#include "prover.h"

namespace vgpu {

void OrderProver::transfer_side(uint64_t side, const Transfer& transfer, const Accessor& now, bool writes) {
  uint8_t fill[kLineBytes];
  if (transfer.value_bytes)
    for (uint32_t k = 0; k < kLineBytes; k += transfer.value_bytes)
      std::memcpy(fill + k, &transfer.value, transfer.value_bytes);
  const auto* given = reinterpret_cast<const uint8_t*>(transfer.from);
  PlaceAccess access;
  access.kind = writes ? PhaseKind::Written : PhaseKind::Same;
  for (uint64_t done = 0; done < transfer.bytes;) {
    auto* const at = reinterpret_cast<uint8_t*>(side + done);
    const uint8_t* value = transfer.value_bytes ? fill : given + done;
    const uint64_t in_line = kLineBytes - (side + done) % kLineBytes;
    const auto some = static_cast<uint32_t>(std::min(in_line, transfer.bytes - done));
    Place place;
    if (!find_global(at, place)) return;
    Accessor all = now;
    all.pattern = kOneThread;
    if (some < kLineBytes || !access_row(place, all, access, at, value)) access_element(place, now, access, at, some, value);
    done += some;
  }
}

void OrderProver::on_transfer(StreamOrder::Operation operation, const Transfer& transfer, uint64_t launch) {
  begin_operation(operation);
  Accessor now;
  now.operation = operation_;
  if (transfer.from && memory_.find(transfer.from).end) transfer_side(transfer.from, transfer, now, false);
  if (transfer.to && memory_.find(transfer.to).end) transfer_side(transfer.to, transfer, now, true);
  if (!findings_.empty()) tell_before(launch, findings_, transfer.value_bytes ? "fill" : "copy");
  findings_.clear();
}

void OrderProver::on_host_source(const char* what, uint64_t launch) {
  Findings told;
  told.add(what, 0, 0);
  tell_before(launch, told, "host");
}

void OrderProver::on_fallback(const char*, uint64_t launch) { on_host_source("cpu_fallback", launch); }

void OrderProver::tell_before(uint64_t launch, const Findings& findings, const char* what) {
  if (!report_) return findings.print(what);
  report_->write("{\"before_launch\": " + std::to_string(launch) + ", \"operation\": \"" + what +
                 "\", \"order\": " + findings.json() + "}\n");
}

}  // namespace vgpu
