#include "scope/target_control.h"

#include <fmt/format.h>

#include <cstddef>

#include "hangscope/abi/scope.h"
#include "hangscope/abi/watch.h"

namespace hangscope {

uint64_t TargetControl::Mailbox(uint32_t core) const {
  const WatchLayout& layout = reader_.layout();
  return layout.mailboxes_at + uint64_t{core} * layout.mailbox_stride;
}

Status TargetControl::NeedFeature(uint32_t feature, const char* what) const {
  if ((reader_.layout().features & feature) != 0) return {};
  return Status::NotFound(
      fmt::format("{} was built without {}", reader_.scope().target().name(), what));
}

Result<uint32_t> TargetControl::Load(uint64_t address) const {
  char bytes[4];
  if (Status status = reader_.scope().target().Read(address, bytes); !status.ok()) return status;
  return Load32(bytes, scope_.order);
}

// One store of an aligned word: the target sees the old one or the new one.
Status TargetControl::Store(uint64_t address, uint32_t value) {
  char bytes[4];
  for (int i = 0; i < 4; ++i) {
    const int shift = scope_.order == ByteOrder::kLittle ? 8 * i : 24 - 8 * i;
    bytes[i] = static_cast<char>(value >> shift);
  }
  return reader_.scope().target().Write(address, std::string_view(bytes, 4));
}

Status TargetControl::CountChange() {
  const uint64_t at = reader_.layout().watch_at + offsetof(hangscope_watch, switch_changes);
  auto changes = Load(at);
  return changes.ok() ? Store(at, *changes + 1) : changes.status();
}

Status TargetControl::Pause(uint32_t core) {
  if (Status status = NeedFeature(HANGSCOPE_WATCH_PAUSES, "pause points (HANGSCOPE_PAUSES)");
      !status.ok())
    return status;
  // pairs with the core's load at its pause points
  return Store(Mailbox(core) + offsetof(hangscope_mailbox, pause), 1);
}

// First what would make it pause again, then what lets it go on.
Status TargetControl::Resume(uint32_t core) {
  if (Status status = NeedFeature(HANGSCOPE_WATCH_PAUSES, "pause points (HANGSCOPE_PAUSES)");
      !status.ok())
    return status;
  if (Status status = Store(Mailbox(core) + offsetof(hangscope_mailbox, pause), 0); !status.ok())
    return status;
  const uint64_t at = Mailbox(core) + offsetof(hangscope_mailbox, resumes);
  auto resumes = Load(at);
  // pairs with the load of the core that waits for a change
  return resumes.ok() ? Store(at, *resumes + 1) : resumes.status();
}

// The seed first: a core that finds the delays finds it, too.
Status TargetControl::SetDelays(uint32_t core, const DelaySettings& settings) {
  if (Status status = NeedFeature(HANGSCOPE_WATCH_DELAYS, "delays (HANGSCOPE_DELAYS)");
      !status.ok())
    return status;
  const uint64_t detail =
      reader_.layout().details_at + uint64_t{core} * reader_.layout().detail_stride;
  if (settings.seed) {
    if (Status status = Store(detail + offsetof(hangscope_detail, delay_seed), *settings.seed);
        !status.ok())
      return status;
  }
  for (size_t i = 0; i < settings.delays.size(); ++i) {
    if (!settings.delays[i]) continue;
    if (Status status =
            Store(detail + offsetof(hangscope_detail, delays) + 4 * i, *settings.delays[i]);
        !status.ok())
      return status;
  }
  return CountChange();
}

Status TargetControl::SetMask(uint32_t core, uint32_t classes) {
  if ((scope_.features & HANGSCOPE_FEATURE_MASK) == 0) {
    return Status::NotFound(
        fmt::format("{} was built with HANGSCOPE_MASK=0: its recording cannot be changed",
                    reader_.scope().target().name()));
  }
  const uint64_t ring = scope_.RingAddress(core);
  if (Status status = Store(ring + offsetof(hangscope_ring, armed), 0); !status.ok()) return status;
  return Store(ring + offsetof(hangscope_ring, mask), classes);
}

// As hangscope_freeze_after does: once the mask is 0, each record looks at `armed`, and `remaining`
// is there by then.
Status TargetControl::FreezeAfter(uint32_t core, uint32_t records) {
  const uint64_t ring = scope_.RingAddress(core);
  auto mask = Load(ring + offsetof(hangscope_ring, mask));
  if (!mask.ok()) return mask.status();
  if (*mask == 0) return {};  // frozen already, or about to
  if (records == 0) return SetMask(core, 0);
  // which says why not
  if ((scope_.features & HANGSCOPE_FEATURE_MASK) == 0) return SetMask(core, 0);
  if (Status status = Store(ring + offsetof(hangscope_ring, remaining), records); !status.ok())
    return status;
  if (Status status = Store(ring + offsetof(hangscope_ring, armed), *mask); !status.ok())
    return status;
  return Store(ring + offsetof(hangscope_ring, mask), 0);
}

Status TargetControl::SetSwitches(uint32_t switches) {
  if (Status status =
          Store(reader_.layout().watch_at + offsetof(hangscope_watch, switches), switches);
      !status.ok())
    return status;
  return CountChange();
}

}  // namespace hangscope
