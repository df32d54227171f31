#include "hwtrace/auxtrace_info.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/bytes.h"

namespace hangscope {
namespace {

constexpr uint64_t kNewestCoreSightVersion = 2;
constexpr uint64_t kMostCpus = 1u << 16;
constexpr uint8_t kReservedTraceIds = 0x70;  // and those above

Status Damaged(const std::string& why) {
  return Status::Corrupt("AUXTRACE_INFO, which says how the hardware tracer was set, is damaged: " +
                         why);
}

// The words behind the type. They are the file's, so little-endian as perf on x86 and Arm writes
// them.
class Words {
 public:
  explicit Words(std::string_view bytes) : bytes_(bytes) {}
  size_t left() const { return bytes_.size() / 8 - at_; }
  // 0 behind the end.
  uint64_t Peek(size_t ahead) const {
    return ahead < left() ? Load64(bytes_.data() + (at_ + ahead) * 8, ByteOrder::kLittle) : 0;
  }
  uint64_t Take() {
    const uint64_t word = Peek(0);
    if (left() > 0) ++at_;
    return word;
  }
  void Skip(size_t count) { at_ += std::min(count, left()); }

 private:
  const std::string_view bytes_;
  size_t at_ = 0;
};

uint8_t TraceId(uint64_t word) {
  const auto id = static_cast<uint8_t>(word & 0x7f);  // perf keeps marks in the bits above
  return id < kReservedTraceIds ? id : 0;
}

void ParseEtmV3(const Words& words, EtmSetting* etm) {
  etm->control = static_cast<uint32_t>(words.Peek(0));
  etm->trace_id = TraceId(words.Peek(1));
  etm->code_extension = static_cast<uint32_t>(words.Peek(2));
  etm->id0 = static_cast<uint32_t>(words.Peek(3));
  // The architecture's major version: 3 is a program trace macrocell.
  etm->kind = (etm->id0 & 0xf00) == 0x300 ? EtmKind::kPtm : EtmKind::kEtmV3;
}

void ParseEtmV4(const Words& words, EtmKind kind, size_t count, EtmSetting* etm) {
  constexpr uint64_t kVirtual = 1;
  etm->kind = kind;
  etm->control = static_cast<uint32_t>(words.Peek(0));
  etm->trace_id = TraceId(words.Peek(1));
  etm->id0 = static_cast<uint32_t>(words.Peek(2));
  etm->id1 = static_cast<uint32_t>(words.Peek(3));
  etm->id2 = static_cast<uint32_t>(words.Peek(4));
  etm->id8 = static_cast<uint32_t>(words.Peek(5));
  if (kind == EtmKind::kEte) etm->architecture = static_cast<uint32_t>(words.Peek(7));
  const size_t source = kind == EtmKind::kEte ? 8 : 7;
  etm->virtual_time = source < count && words.Peek(source) == kVirtual;
}

Result<EtmSetting> ParseCpu(uint64_t version, Words* words) {
  if (words->left() < 2) return Damaged("it ends before its last CPU");
  const uint64_t magic = words->Take();
  const uint64_t cpu = words->Take();
  if (magic != kEtmV3Magic && magic != kEtmV4Magic && magic != kEteMagic) {
    return Damaged(fmt::format("the tracer of a CPU has the unknown mark {:#x}", magic));
  }
  if (cpu >= kMostCpus) return Damaged(fmt::format("it speaks of CPU {}", cpu));
  const size_t needed = magic == kEtmV3Magic ? 4 : magic == kEtmV4Magic ? 7 : 8;
  const uint64_t count = version == 0 ? needed : words->Take();
  if (count < needed || count > words->left()) {
    return Damaged(fmt::format("CPU {} has {} registers, of {} words that are left", cpu, count,
                               words->left()));
  }
  EtmSetting etm;
  etm.cpu = static_cast<int>(cpu);
  if (magic == kEtmV3Magic)
    ParseEtmV3(*words, &etm);
  else
    ParseEtmV4(*words, magic == kEteMagic ? EtmKind::kEte : EtmKind::kEtmV4, count, &etm);
  words->Skip(count);
  return etm;
}

Result<AuxTraceInfo> ParseCoreSight(Words words) {
  if (words.left() < 3) return Damaged("it ends within its head");
  const uint64_t version = words.Take();
  const uint64_t pmu_and_cpus = words.Take();
  const uint64_t cpus = pmu_and_cpus & 0xffffffff;
  words.Skip(1);
  if (version > kNewestCoreSightVersion) {
    return Status::Corrupt(
        fmt::format("the trace was recorded with version {} of CoreSight's metadata, and this "
                    "hangscope knows those up to {}",
                    version, kNewestCoreSightVersion));
  }
  if (cpus == 0 || cpus > kMostCpus) return Damaged(fmt::format("it counts {} CPUs", cpus));
  AuxTraceInfo info;
  info.kind = TracerKind::kCoreSight;
  info.pmu_type = static_cast<uint32_t>(pmu_and_cpus >> 32);
  for (uint64_t i = 0; i < cpus; ++i) {
    auto etm = ParseCpu(version, &words);
    if (!etm.ok()) return etm.status();
    info.cpus.push_back(*etm);
  }
  std::stable_sort(info.cpus.begin(), info.cpus.end(),
                   [](const auto& a, const auto& b) { return a.cpu < b.cpu; });
  for (size_t i = 1; i < info.cpus.size(); ++i) {
    if (info.cpus[i].cpu == info.cpus[i - 1].cpu)
      return Damaged(fmt::format("CPU {} occurs twice", info.cpus[i].cpu));
  }
  return info;
}

Result<AuxTraceInfo> ParseIntelPt(Words words) {
  if (words.left() < 9) return Damaged("it ends within its words");
  AuxTraceInfo info;
  info.kind = TracerKind::kIntelPt;
  info.pmu_type = static_cast<uint32_t>(words.Peek(0));
  const uint64_t shift = words.Peek(1);
  const uint64_t multiplier = words.Peek(2);
  if (words.Peek(4) != 0) {
    if (shift >= 64 || multiplier > UINT32_MAX || multiplier == 0) {
      return Damaged(fmt::format("time is {} * counter >> {}", multiplier, shift));
    }
    info.intel_pt.time = CounterConversion{static_cast<uint16_t>(shift),
                                           static_cast<uint32_t>(multiplier), words.Peek(3)};
  }
  info.intel_pt.snapshot = words.Peek(8) != 0;
  info.intel_pt.mtc_frequency_bits = words.Peek(11);
  if (words.Peek(12) <= UINT32_MAX && words.Peek(13) <= UINT32_MAX) {
    info.intel_pt.tsc_per_crystal = static_cast<uint32_t>(words.Peek(12));
    info.intel_pt.crystal = static_cast<uint32_t>(words.Peek(13));
  }
  return info;
}

}  // namespace

Result<AuxTraceInfo> ParseAuxTraceInfo(std::string_view body) {
  if (body.size() < 8) return Damaged(fmt::format("it has {} bytes", body.size()));
  const uint32_t type = Load32(body.data(), ByteOrder::kLittle);
  const Words words(body.substr(8));
  if (TracerKind{type} == TracerKind::kCoreSight) return ParseCoreSight(words);
  if (TracerKind{type} == TracerKind::kIntelPt) return ParseIntelPt(words);
  return Status::NotFound(
      fmt::format("the hardware trace is of perf's type {}; hangscope decodes intel_pt (1) and "
                  "cs_etm (3)",
                  type));
}

std::string WithTraceIds(std::string body, const std::map<int, uint8_t>& ids) {
  constexpr size_t kHead = 8 + 3 * 8;
  const auto info = ParseAuxTraceInfo(body);
  if (!info.ok() || info->kind != TracerKind::kCoreSight) return body;
  const uint64_t version = Load64(body.data() + 8, ByteOrder::kLittle);
  size_t at = kHead;
  for (size_t i = 0; i < info->cpus.size(); ++i) {
    const uint64_t magic = Load64(body.data() + at, ByteOrder::kLittle);
    const uint64_t cpu = Load64(body.data() + at + 8, ByteOrder::kLittle);
    const uint64_t count = version > 0 ? Load64(body.data() + at + 16, ByteOrder::kLittle)
                           : magic == kEtmV3Magic ? 4
                           : magic == kEtmV4Magic ? 7
                                                  : 8;
    at += version > 0 ? 24 : 16;
    if (const auto id = ids.find(static_cast<int>(cpu)); id != ids.end()) {
      std::fill_n(body.begin() + static_cast<ptrdiff_t>(at + 8), 8, '\0');
      body[at + 8] = static_cast<char>(id->second);
    }
    at += 8 * count;
  }
  return body;
}

std::optional<HardwareTraceId> ParseHardwareTraceId(uint64_t hardware_id) {
  HardwareTraceId id;
  id.trace_id = static_cast<uint8_t>(hardware_id & 0xff);
  if (hardware_id >> 60 != 0 || id.trace_id == 0 || id.trace_id >= kReservedTraceIds) return {};
  if ((hardware_id >> 56 & 0xf) >= 1) id.sink = static_cast<uint32_t>(hardware_id >> 8);
  return id;
}

std::optional<int64_t> PerfTimeOfCount(const CounterConversion& conversion, uint64_t count) {
  if (conversion.mask != 0)
    count = conversion.since + ((count - conversion.since) & conversion.mask);
  // A 64-bit product of all of it would overflow after some days of uptime.
  const auto product =
      static_cast<unsigned __int128>(count) * conversion.multiplier >> conversion.shift;
  const auto time =
      static_cast<unsigned __int128>(static_cast<uint64_t>(product)) + conversion.zero;
  // `zero` may stand for a negative number: the sum wraps, as the kernel's does.
  const auto ns = static_cast<int64_t>(static_cast<uint64_t>(time));
  if (product > static_cast<unsigned __int128>(UINT64_MAX) || ns < 0) return std::nullopt;
  return ns;
}

}  // namespace hangscope
