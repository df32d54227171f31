#include "scope/settings/start_settings.h"

#include <elf.h>
#include <fmt/format.h>

#include <cstddef>
#include <utility>

#include "code/elf_functions.h"
#include "hangscope/abi/watch.h"
#include "scope/delay_text.h"

namespace hangscope {
namespace {

constexpr char kStartSymbol[] = "hangscope_start";
constexpr size_t kStartDelayBytes = 4 * sizeof(uint32_t);  // of one core: three, and their seed

}  // namespace

Result<StartSettings> StartSettings::Read(FileSystem& files, const std::string& elf) {
  auto at = VariableOffset(elf, kStartSymbol);
  if (!at.ok()) return at.status();
  auto program = ReadWholeFile(files, elf);
  if (!program.ok()) return program.status();
  if (!*at)
    return Status::NotFound(fmt::format(
        "'{}' has no settings to start with: build it with HANGSCOPE_START_SETTINGS=1", elf));
  StartSettings settings;
  settings.program_ = std::move(*program);
  settings.at_ = **at;
  settings.order_ = settings.program_.size() > EI_DATA &&
                            static_cast<uint8_t>(settings.program_[EI_DATA]) == ELFDATA2MSB
                        ? ByteOrder::kBig
                        : ByteOrder::kLittle;
  const size_t bytes = settings.program_.size();
  const bool has_header = settings.at_ < bytes && bytes - settings.at_ >= sizeof(hangscope_start);
  if (has_header && settings.LoadAt(settings.at_) == HANGSCOPE_START_MAGIC) {
    settings.core_count_ = settings.LoadAt(settings.at_ + offsetof(hangscope_start, core_count));
    const size_t room = bytes - settings.at_ - sizeof(hangscope_start);
    if (settings.core_count_ <= room / kStartDelayBytes) return settings;
  }
  return Status::Corrupt(fmt::format("'{}': what is at {} is no such struct", elf, kStartSymbol));
}

void StartSettings::StoreAt(uint64_t at, uint32_t value) {
  Store32(program_.data() + at, value, order_);
}

uint64_t StartSettings::DelaysAt(uint32_t core) const {
  return at_ + sizeof(hangscope_start) + core * kStartDelayBytes;
}

uint32_t StartSettings::switches() const {
  return LoadAt(at_ + offsetof(hangscope_start, switches));
}

void StartSettings::SetSwitches(uint32_t switches) {
  StoreAt(at_ + offsetof(hangscope_start, switches), switches);
}

void StartSettings::SetDelays(uint32_t core, const DelaySettings& settings) {
  const uint64_t at = DelaysAt(core);
  for (size_t kind = 0; kind < settings.delays.size(); ++kind) {
    if (settings.delays[kind]) StoreAt(at + kind * sizeof(uint32_t), *settings.delays[kind]);
  }
  if (settings.seed) StoreAt(at + 3 * sizeof(uint32_t), *settings.seed);
}

std::string StartSettings::DelaysText(uint32_t core) const {
  CoreDetail detail;
  for (size_t kind = 0; kind < detail.delays.size(); ++kind)
    detail.delays[kind] = LoadAt(DelaysAt(core) + kind * sizeof(uint32_t));
  detail.delay_seed = LoadAt(DelaysAt(core) + 3 * sizeof(uint32_t));
  return DelaysSetText(detail);
}

}  // namespace hangscope
