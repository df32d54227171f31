#include "cpu/tracer_info.h"

#include <linux/perf_event.h>

#include <utility>

#include "base/numbers.h"
#include "cpu/perf_pmu.h"
#include "model/perf_format.h"

namespace hangscope {
namespace {

constexpr uint64_t kSnapshot = 1;    // the area overwrites itself
constexpr size_t kMostWords = 8000;  // a record has 64 KiB

std::string Text(FileSystem& files, const std::string& path) {
  auto text = ReadWholeFile(files, path);
  if (!text.ok()) return {};
  return text->substr(0, text->find_last_not_of(" \t\r\n") + 1);
}

// The bits of the event's config that a term sets: all of them.
uint64_t BitsOfTerm(FileSystem& files, const std::string& folder, const std::string& term) {
  const std::string format = Text(files, folder + "/format/" + term);
  for (unsigned width = 64; width > 0; --width) {
    perf_event_attr attr{};
    if (SetPmuBits(format, ~uint64_t{0} >> (64 - width), &attr).ok()) return attr.config;
  }
  return 0;
}

// TRCCONFIGR as the driver makes it of the event's config, whose bits are those of the older ETMCR.
uint64_t EtmV4Control(uint64_t config) {
  constexpr std::pair<unsigned, uint64_t> kBits[] = {
      {8, 1 << 3},             // branch broadcast
      {12, 1 << 4},            // cycle counts
      {14, 1 << 6},            // context id
      {15, 1 << 7 | 1 << 15},  // context id as a virtual one: of a kernel at EL2
      {28, 1 << 11},           // time stamps
      {29, 1 << 12},           // return stack
  };
  uint64_t control = 0;
  for (const auto& [bit, controls] : kBits) {
    if ((config >> bit & 1) != 0) control |= controls;
  }
  return control;
}

// TRCDEVARCH: architecture 5 of the part that ETMv4 (4) is of, too.
bool IsEte(uint64_t architecture) { return (architecture & 0xffff) == 0x5a13; }

}  // namespace

std::optional<TracerKind> TracerKindOf(std::string_view pmu) {
  if (pmu == "cs_etm") return TracerKind::kCoreSight;
  if (pmu == "intel_pt") return TracerKind::kIntelPt;
  if (pmu.starts_with("arm_spe")) return TracerKind::kArmSpe;
  return std::nullopt;
}

Result<TracerInfo> TracerInfo::Read(FileSystem& files, const std::string& folder, TracerKind kind,
                                    const perf_event_attr& attr, const std::vector<int>& cpus) {
  TracerInfo info(kind);
  switch (kind) {
    case TracerKind::kCoreSight:
      if (Status status = info.AddCoreSight(files, folder, attr, cpus); !status.ok()) return status;
      break;
    case TracerKind::kIntelPt:
      info.AddIntelPt(files, folder, attr);
      break;
    case TracerKind::kArmSpe:
      info.words_ = {attr.type, 1};
      break;  // a ring belongs to a CPU
  }
  return info;
}

Status TracerInfo::AddCoreSight(FileSystem& files, const std::string& folder,
                                const perf_event_attr& attr, const std::vector<int>& cpus) {
  words_ = {1, uint64_t{attr.type} << 32 | cpus.size(), kSnapshot};
  for (const int cpu : cpus) {
    if (Status status = AddEtm(files, folder + "/cpu" + std::to_string(cpu), attr.config, cpu);
        !status.ok())
      return status;
    if (words_.size() > kMostWords)
      return Status::Io("perf's files have no room for the trace units of " +
                        std::to_string(cpus.size()) + " CPUs");
  }
  return {};
}

Status TracerInfo::AddEtm(FileSystem& files, const std::string& folder, uint64_t config, int cpu) {
  std::string missing;
  const auto read = [&](const std::string& name) {
    const auto value = ParseHex<uint64_t>(Text(files, folder + "/" + name));
    if (!value) missing = name;
    return value.value_or(0);
  };
  const uint64_t trace_id = 0x10 + 2 * static_cast<uint64_t>(cpu);
  std::vector<uint64_t> registers;
  uint64_t magic = kEtmV3Magic;
  const uint64_t id0 = read("trcidr/trcidr0");
  if (missing.empty()) {
    registers = {EtmV4Control(config),
                 trace_id,
                 id0,
                 read("trcidr/trcidr1"),
                 read("trcidr/trcidr2"),
                 read("trcidr/trcidr8"),
                 read("mgmt/trcauthstatus")};
    const uint64_t architecture =
        ParseHex<uint64_t>(Text(files, folder + "/mgmt/trcdevarch")).value_or(0);
    magic = IsEte(architecture) ? kEteMagic : kEtmV4Magic;
    if (magic == kEteMagic) registers.push_back(architecture);
  } else {
    missing.clear();
    registers = {config, trace_id, read("mgmt/etmccer"), read("mgmt/etmidr")};
  }
  if (!missing.empty())
    return Status::NotFound("the kernel does not say how the trace of CPU " + std::to_string(cpu) +
                            " is decoded: cannot read '" + folder + "/" + missing + "'");
  words_.insert(words_.end(), {magic, static_cast<uint64_t>(cpu), registers.size()});
  trace_id_of_cpu_[cpu] = words_.size() + 1;
  words_.insert(words_.end(), registers.begin(), registers.end());
  return {};
}

void TracerInfo::AddIntelPt(FileSystem& files, const std::string& folder,
                            const perf_event_attr& attr) {
  uint64_t tsc_per_crystal = 0, crystal = 0;
  const std::string ratio = Text(files, folder + "/tsc_art_ratio");  // "166:2"
  if (const size_t colon = ratio.find(':'); colon != std::string::npos) {
    tsc_per_crystal = ParseWhole<uint64_t>(ratio.substr(0, colon)).value_or(0);
    crystal = ParseWhole<uint64_t>(ratio.substr(colon + 1)).value_or(0);
  }
  words_ = {attr.type,
            0,
            0,
            0,
            0,  // time: SetTime
            BitsOfTerm(files, folder, "tsc"),
            BitsOfTerm(files, folder, "noretcomp"),
            static_cast<uint64_t>(ReportedSwitches::kNone),
            kSnapshot,
            1,  // a ring belongs to a CPU
            BitsOfTerm(files, folder, "mtc"),
            BitsOfTerm(files, folder, "mtc_period"),
            tsc_per_crystal,
            crystal,
            BitsOfTerm(files, folder, "cyc"),
            ParseWhole<uint64_t>(Text(files, folder + "/max_nonturbo_ratio")).value_or(0),
            0,  // bytes of the address filter that would follow
            ParseWhole<uint64_t>(Text(files, folder + "/caps/event_trace")).value_or(0)};
}

void TracerInfo::StoreHardwareId(int cpu, uint64_t hardware_id) {
  const auto found = trace_id_of_cpu_.find(cpu);
  const uint64_t version = hardware_id >> 60;
  const uint64_t trace_id = hardware_id & 0xff;
  if (found == trace_id_of_cpu_.end() || version != 0 || trace_id == 0 || trace_id >= 0x70) return;
  words_[found->second] = trace_id;
}

void TracerInfo::SetTime(const CounterTime& time) {
  if (kind_ != TracerKind::kIntelPt) return;
  words_[1] = time.shift;
  words_[2] = time.multiplier;
  words_[3] = time.zero;
  words_[4] = 1;
}

void TracerInfo::SetSwitches(ReportedSwitches switches) {
  if (kind_ == TracerKind::kIntelPt) words_[7] = static_cast<uint64_t>(switches);
}

std::string TracerInfo::Record() const {
  perf_event_header header{};
  header.type = kPerfAuxtraceInfo;
  header.size = static_cast<uint16_t>(sizeof header + 8 + words_.size() * 8);
  const auto type = static_cast<uint64_t>(kind_);
  std::string record(reinterpret_cast<const char*>(&header), sizeof header);
  record.append(reinterpret_cast<const char*>(&type), sizeof type);
  record.append(reinterpret_cast<const char*>(words_.data()), words_.size() * 8);
  return record;
}

}  // namespace hangscope
