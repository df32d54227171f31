// What a program begins with, in its ELF (struct hangscope_start in abi/watch.h): which features
// are on, and each core's delays. It is changed in memory and written as another file.
#ifndef HANGSCOPE_SCOPE_SETTINGS_START_SETTINGS_H
#define HANGSCOPE_SCOPE_SETTINGS_START_SETTINGS_H

#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/file_system.h"
#include "scope/target_control.h"

namespace hangscope {

class StartSettings {
 public:
  // Fails where it is no ELF, or was built without HANGSCOPE_START_SETTINGS.
  static Result<StartSettings> Read(FileSystem& files, const std::string& elf);

  uint32_t core_count() const { return core_count_; }
  uint32_t switches() const;  // enum hangscope_watch_feature, also those that are not built in
  void SetSwitches(uint32_t switches);
  // `core` is one of core_count().
  void SetDelays(uint32_t core, const DelaySettings& settings);
  std::string DelaysText(uint32_t core) const;  // "writes up to 500, seed 7"; empty: none
  // The whole program with these settings.
  const std::string& program() const { return program_; }

 private:
  StartSettings() = default;
  uint32_t LoadAt(uint64_t at) const { return Load32(program_.data() + at, order_); }
  void StoreAt(uint64_t at, uint32_t value);
  uint64_t DelaysAt(uint32_t core) const;

  std::string program_;  // the bytes of its file
  uint64_t at_ = 0;      // of the settings in it
  uint32_t core_count_ = 0;
  ByteOrder order_ = ByteOrder::kLittle;
};

}  // namespace hangscope

#endif
