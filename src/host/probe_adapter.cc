#include "host/probe_adapter.h"

#include <fmt/format.h>

#include "host/translation.h"

namespace hangscope {
namespace {

class ProbeAdapter final : public Target {
 public:
  ProbeAdapter(std::shared_ptr<host::Probe> probe, std::vector<MemoryRange> ranges)
      : probe_(std::move(probe)), name_(probe_->Name()), ranges_(std::move(ranges)) {}

  const std::string& name() const override { return name_; }
  Status Read(uint64_t address, std::span<char> bytes) override {
    if (Status status = CheckRange(address, bytes.size()); !status.ok()) return status;
    return bytes.empty() ? Status() : FromHost(probe_->Read(address, bytes.data(), bytes.size()));
  }
  Status Write(uint64_t address, std::string_view bytes) override {
    if (Status status = CheckRange(address, bytes.size()); !status.ok()) return status;
    return bytes.empty() ? Status() : FromHost(probe_->Write(address, bytes.data(), bytes.size()));
  }
  Life life() override {
    switch (probe_->Alive()) {
      case host::Life::kLive:
        return Life::kLive;
      case host::Life::kDead:
        return Life::kDead;
      case host::Life::kUnknown:
        break;
    }
    return Life::kUnknown;
  }
  const std::vector<MemoryRange>& ranges() const override { return ranges_; }
  std::optional<uint64_t> scope_address() const override { return probe_->ScopeAddress(); }
  std::optional<uint64_t> AddressOf(uint64_t elf_address) const override { return elf_address; }

 private:
  const std::shared_ptr<host::Probe> probe_;
  const std::string name_;
  const std::vector<MemoryRange> ranges_;
};

}  // namespace

Result<std::unique_ptr<Target>> OpenProbe(std::shared_ptr<host::Probe> probe) {
  if (probe == nullptr) return Status::Usage("there is no probe: a null pointer was given");
  std::vector<MemoryRange> ranges;
  uint64_t end = 0;
  for (const host::Range& range : probe->Ranges()) {
    if (range.size_bytes == 0 || range.begin < end || range.size_bytes > UINT64_MAX - range.begin) {
      return Status::Usage(
          fmt::format("{} has a range of {} bytes at {:#x}: ranges are not empty, in ascending "
                      "order, and do not overlap",
                      probe->Name(), range.size_bytes, range.begin));
    }
    end = range.begin + range.size_bytes;
    ranges.push_back({range.begin, range.size_bytes});
  }
  return std::unique_ptr<Target>(
      std::make_unique<ProbeAdapter>(std::move(probe), std::move(ranges)));
}

}  // namespace hangscope
