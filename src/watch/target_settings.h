// The settings of `hangscope set`, as people write them: read=100,write=random:500 seed=7.
#ifndef HANGSCOPE_WATCH_TARGET_SETTINGS_H
#define HANGSCOPE_WATCH_TARGET_SETTINGS_H

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "scope/target_control.h"

namespace hangscope {

// Each takes words with a = in them, and fails with kUsage, naming what is wrong and what would be
// right. 0 and off switch off.

// read= write= atomic=N or random:N, rounds of a loop below 2^31; seed=N. At least one.
Result<DelaySettings> ParseDelaySettings(const std::vector<std::string>& words);
// classes=all, 0, a number, or names and numbers with commas: task, sync, isr, meta, user,
// history, 4 to 30.
Result<uint32_t> ParseMaskSetting(const std::vector<std::string>& words);
// after=N records, below 2^31; 0 where nothing is given.
Result<uint32_t> ParseFreezeSetting(const std::vector<std::string>& words);
// waits=0 bus=1 all=0: the switches as they are to be, from those that are (enum
// hangscope_watch_feature). `built` are those that there are.
Result<uint32_t> ParseFeatureSettings(const std::vector<std::string>& words, uint32_t built,
                                      uint32_t switches);

// "waypoints on, waits off, ..." of those that were built in.
std::string FeaturesText(uint32_t built, uint32_t switches);

}  // namespace hangscope

#endif
