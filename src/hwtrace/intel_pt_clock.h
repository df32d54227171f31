// The time of an Intel PT trace, from its own packets: TSC says it, TMA and MTC go on from there by
// the crystal clock. Source: Intel SDM, volume 3, "Packet Generation".
#ifndef HANGSCOPE_HWTRACE_INTEL_PT_CLOCK_H
#define HANGSCOPE_HWTRACE_INTEL_PT_CLOCK_H

#include <bit>
#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "hwtrace/auxtrace_info.h"

namespace hangscope {

class IntelPtClock {
 public:
  // `config`: the event's; 0: how often MTC comes is not known, and only TSC packets count.
  IntelPtClock(const IntelPtSetting& setting, uint64_t config)
      : setting_(setting),
        mtc_known_(config != 0 && setting.mtc_frequency_bits != 0 && setting.crystal != 0),
        mtc_shift_(mtc_known_ ? MtcShift(setting.mtc_frequency_bits, config) : 0) {}

  unsigned mtc_shift() const { return mtc_shift_; }
  bool mtc_known() const { return mtc_known_; }

  void HandleTsc(uint64_t tsc) {
    tsc_ = tsc;
    crystal_known_ = false;
  }
  // Which count of the crystal was at the last TSC, and how far the TSC was beyond its tick.
  void HandleTma(uint16_t crystal, uint16_t beyond) {
    if (!tsc_ || !mtc_known_) return;
    base_ = *tsc_ - beyond;
    base_crystal_ = crystal;
    ticks_ = uint64_t{crystal} >> mtc_shift_;
    crystal_known_ = true;
  }
  // Eight bits of the crystal's count.
  void HandleMtc(uint8_t bits) {
    if (!crystal_known_) return;
    ticks_ += static_cast<uint8_t>(bits - static_cast<uint8_t>(ticks_));
    const uint64_t since = (ticks_ << mtc_shift_) - base_crystal_;
    // The first tick is a part of one where the TSC came within it.
    if ((ticks_ << mtc_shift_) >= base_crystal_) tsc_ = base_ + Tsc(since);
  }
  // Packets were lost: the ticks since then were, too.
  void Lose() { crystal_known_ = false; }

  // Perf's time of the newest of them; nothing before the first, or where perf's time does not
  // follow the TSC.
  std::optional<TimeNs> Now() const { return tsc_ ? At(*tsc_) : std::nullopt; }
  std::optional<TimeNs> At(uint64_t tsc) const {
    return setting_.time ? PerfTimeOfCount(*setting_.time, tsc) : std::nullopt;
  }

 private:
  static unsigned MtcShift(uint64_t bits, uint64_t config) {
    return static_cast<unsigned>((config & bits) >> std::countr_zero(bits)) & 0xf;
  }
  uint64_t Tsc(uint64_t crystals) const {
    return static_cast<uint64_t>(static_cast<unsigned __int128>(crystals) *
                                 setting_.tsc_per_crystal / setting_.crystal);
  }

  const IntelPtSetting setting_;
  const bool mtc_known_;
  const unsigned mtc_shift_;
  std::optional<uint64_t> tsc_;
  bool crystal_known_ = false;
  uint64_t base_ = 0;  // the TSC at base_crystal_
  uint64_t base_crystal_ = 0;
  uint64_t ticks_ = 0;  // of MTC, without wraps
};

}  // namespace hangscope

#endif
