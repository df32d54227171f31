#include "hwtrace/coresight_trace.h"

#include "base/build_features.h"

#if HANGSCOPE_HAS_OPENCSD

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "hwtrace/coresight_flow.h"
#include "hwtrace/coresight_tree.h"
#include "hwtrace/trace_tally.h"
#include "hwtrace/trace_times.h"

namespace hangscope {
namespace {

// What a packet means, whatever the protocol.
struct PacketMeaning {
  unsigned atoms = 0;
  bool flow = false;  // says where the program went
  bool sync = false;
  bool exception = false;
  bool on = false;                  // tracing began, again perhaps
  bool end = false;                 // the trace ended within it: not a packet of its own
  std::optional<uint64_t> counter;  // a time stamp
  std::optional<DiscontinuityReason> lost;
};

PacketMeaning Meaning(const ocsd_etmv4_i_pkt& packet) {
  PacketMeaning meaning;
  switch (static_cast<int>(packet.type)) {
    case ETM4_PKT_I_NOTSYNC:
      meaning.lost = DiscontinuityReason::kNoSync;
      break;
    case ETM4_PKT_I_INCOMPLETE_EOT:
      meaning.end = true;
      break;
    case ETM4_PKT_I_BAD_SEQUENCE:
    case ETM4_PKT_I_BAD_TRACEMODE:
    case ETM4_PKT_I_RESERVED:
    case ETM4_PKT_I_RESERVED_CFG:
      meaning.lost = DiscontinuityReason::kBadData;
      break;
    case ETM4_PKT_I_ASYNC:
      meaning.sync = true;
      break;
    case ETM4_PKT_I_OVERFLOW:
      meaning.lost = DiscontinuityReason::kOverflow;
      break;
    case ETM4_PKT_I_DISCARD:
      meaning.lost = DiscontinuityReason::kTraceOff;
      break;
    case ETM4_PKT_I_TRACE_ON:
      meaning.on = true;
      break;
    case ETM4_PKT_I_EXCEPT:
    case ETE_PKT_I_PE_RESET:
    case ETE_PKT_I_TRANS_FAIL:
      meaning.exception = meaning.flow = true;
      break;
    case ETM4_PKT_I_TIMESTAMP:
      meaning.counter = packet.ts.timestamp;
      break;
    case ETM4_PKT_I_ATOM_F1:
    case ETM4_PKT_I_ATOM_F2:
    case ETM4_PKT_I_ATOM_F3:
    case ETM4_PKT_I_ATOM_F4:
    case ETM4_PKT_I_ATOM_F5:
    case ETM4_PKT_I_ATOM_F6:
      meaning.atoms = packet.atom.num;
      break;
    default:
      break;
  }
  meaning.flow = meaning.flow || meaning.atoms > 0;
  return meaning;
}

PacketMeaning Meaning(const ocsd_etmv3_pkt& packet) {
  PacketMeaning meaning;
  switch (packet.type) {
    case ETM3_PKT_NOTSYNC:
      meaning.lost = DiscontinuityReason::kNoSync;
      break;
    case ETM3_PKT_INCOMPLETE_EOT:
      meaning.end = true;
      break;
    case ETM3_PKT_BAD_SEQUENCE:
    case ETM3_PKT_BAD_TRACEMODE:
    case ETM3_PKT_RESERVED:
      meaning.lost = DiscontinuityReason::kBadData;
      break;
    case ETM3_PKT_A_SYNC:
      meaning.sync = true;
      break;
    case ETM3_PKT_I_SYNC:
    case ETM3_PKT_I_SYNC_CYCLE:
      if (packet.isync_info.reason == iSync_TraceRestartAfterOverflow)
        meaning.lost = DiscontinuityReason::kOverflow;
      meaning.on = packet.isync_info.reason == iSync_TraceEnable;
      break;
    case ETM3_PKT_EXCEPTION_ENTRY:
      meaning.exception = true;
      break;
    case ETM3_PKT_BRANCH_ADDRESS:
      meaning.exception = packet.exception.bits.present;
      meaning.flow = true;
      break;
    case ETM3_PKT_TIMESTAMP:
      meaning.counter = packet.timestamp;
      break;
    case ETM3_PKT_P_HDR:
      meaning.atoms = packet.atom.num;
      meaning.flow = true;
      break;
    default:
      break;
  }
  return meaning;
}

PacketMeaning Meaning(const ocsd_ptm_pkt& packet) {
  PacketMeaning meaning;
  switch (packet.type) {
    case PTM_PKT_NOTSYNC:
      meaning.lost = DiscontinuityReason::kNoSync;
      break;
    case PTM_PKT_INCOMPLETE_EOT:
      meaning.end = true;
      break;
    case PTM_PKT_BAD_SEQUENCE:
    case PTM_PKT_RESERVED:
      meaning.lost = DiscontinuityReason::kBadData;
      break;
    case PTM_PKT_A_SYNC:
      meaning.sync = true;
      break;
    case PTM_PKT_I_SYNC:
      if (packet.i_sync_reason == iSync_TraceRestartAfterOverflow)
        meaning.lost = DiscontinuityReason::kOverflow;
      meaning.on = packet.i_sync_reason == iSync_TraceEnable;
      break;
    case PTM_PKT_BRANCH_ADDRESS:
      meaning.exception = packet.exception.bits.present;
      meaning.flow = true;
      break;
    case PTM_PKT_TIMESTAMP:
      meaning.counter = packet.timestamp;
      break;
    case PTM_PKT_ATOM:
      meaning.atoms = packet.atom.num;
      meaning.flow = true;
      break;
    default:
      break;
  }
  return meaning;
}

// The name as perf prints it: what stands before " : ".
template <typename Packet>
std::string KindName(ocsd_trace_protocol_t protocol, const Packet& packet) {
  std::array<char, 1024> text{};
  if (ocsd_pkt_str(protocol, &packet, text.data(), static_cast<int>(text.size())) != OCSD_OK)
    return "unknown";
  const std::string_view all(text.data());
  return std::string(all.substr(0, all.find(" : ")));
}

// Counts the packets of one CPU's trace.
class PacketCounter {
 public:
  PacketCounter(const CoreSightTree& tree, const EtmSetting& etm,
                const std::optional<CounterConversion>& counter, TraceSummary* summary,
                TraceTally* tally)
      : tree_(tree),
        protocol_(CoreSightPacketProtocol(etm.kind)),
        cpu_(etm.cpu),
        counter_(etm.virtual_time ? counter : std::nullopt),
        summary_(summary),
        tally_(tally) {}

  // For libopencsd; `context` is a PacketCounter.
  static ocsd_datapath_resp_t Take(const void* context, ocsd_datapath_op_t operation,
                                   ocsd_trc_index_t index, const void* packet) {
    if (operation != OCSD_OP_DATA || packet == nullptr) return OCSD_RESP_CONT;
    auto* self = static_cast<PacketCounter*>(const_cast<void*>(context));
    switch (self->protocol_) {
      case OCSD_PROTOCOL_ETMV3:
        self->Count(*static_cast<const ocsd_etmv3_pkt*>(packet), index);
        break;
      case OCSD_PROTOCOL_PTM:
        self->Count(*static_cast<const ocsd_ptm_pkt*>(packet), index);
        break;
      default:
        self->Count(*static_cast<const ocsd_etmv4_i_pkt*>(packet), index);
        break;
    }
    return OCSD_RESP_CONT;
  }

  const std::vector<TraceTime>& times() const { return times_; }

 private:
  template <typename Packet>
  void Count(const Packet& packet, ocsd_trc_index_t index) {
    const PacketMeaning meaning = Meaning(packet);
    if (meaning.end) return;
    ++summary_->packets;
    ++*KindCount(packet);
    summary_->atoms += meaning.atoms;
    summary_->synchronisations += meaning.sync;
    summary_->exceptions += meaning.exception;
    if (meaning.counter) Stamp(*meaning.counter, tree_.Offset(index));
    Breaks(meaning, index);
  }

  // The names are made once for each kind, not for each packet.
  template <typename Packet>
  uint64_t* KindCount(const Packet& packet) {
    uint64_t*& count = counts_[static_cast<int>(packet.type)];
    if (count == nullptr) count = &summary_->packet_kinds[KindName(protocol_, packet)];
    return count;
  }

  // 0: the trace unit does not get the time.
  void Stamp(uint64_t count, uint64_t offset) {
    if (count == 0) return;
    const auto time = counter_ ? PerfTimeOfCount(*counter_, count) : std::nullopt;
    if (time)
      keeper_.Add({offset, *time, cpu_});
    else
      ++summary_->unconverted_times;
  }

  void Breaks(const PacketMeaning& meaning, ocsd_trc_index_t index) {
    std::optional<DiscontinuityReason> reason = meaning.lost;
    if (reason == DiscontinuityReason::kNoSync && !begun_) reason = DiscontinuityReason::kBegin;
    // Tracing that begins is no break, and one after a loss is part of that.
    if (meaning.on && flowing_ && !reason) reason = DiscontinuityReason::kTraceOff;
    if (reason) tally_->Break({tree_.Offset(index), std::nullopt, *reason, cpu_});
    if (reason || meaning.flow) flowing_ = !reason.has_value();
    begun_ = true;
  }

  const CoreSightTree& tree_;
  const ocsd_trace_protocol_t protocol_;
  const int cpu_;
  const std::optional<CounterConversion> counter_;
  std::vector<TraceTime> times_;
  TraceTimes keeper_{&times_};
  TraceSummary* summary_;
  TraceTally* tally_;
  std::map<int, uint64_t*> counts_;
  bool begun_ = false;
  bool flowing_ = false;
};

class CoreSightTrace final : public InstructionTrace {
 public:
  CoreSightTrace(std::vector<EtmSetting> cpus, const EtmSetting& own,
                 const std::optional<CounterConversion>& counter)
      : cpus_(std::move(cpus)), own_(own), counter_(counter) {}

  TraceSummary Decode(std::string_view bytes, const TraceDecodeOptions& options) override {
    const CoreSightTree::Lock lock;
    TraceSummary summary;
    summary.bytes = bytes.size();
    // What is no whole frame cannot be taken apart.
    const size_t usable =
        options.raw ? bytes.size() : bytes.size() - bytes.size() % kCoreSightFrameBytes;
    const auto& cpus = options.raw ? std::vector<EtmSetting>{Raw()} : cpus_;
    CountPackets(bytes.substr(0, usable), cpus, options, &summary);
    if (options.read_code) FollowCoreSightFlow(bytes.substr(0, usable), cpus, options, &summary);
    if (usable < bytes.size())
      TraceTally(&summary, options)
          .Break({usable, std::nullopt, DiscontinuityReason::kBadData, -1});
    return summary;
  }

 private:
  // Without frames there are no ids; the library wants one.
  EtmSetting Raw() const {
    EtmSetting etm = own_;
    if (etm.trace_id == 0) etm.trace_id = 1;
    return etm;
  }

  void CountPackets(std::string_view bytes, const std::vector<EtmSetting>& cpus,
                    const TraceDecodeOptions& options, TraceSummary* summary) const {
    TraceTally tally(summary, options);
    CoreSightTree tree(options.raw, false);
    std::vector<std::unique_ptr<PacketCounter>> counters;
    std::map<unsigned char, int> cpu_of_id;
    for (const EtmSetting& etm : cpus) {
      unsigned char id = 0;
      if (cpu_of_id.contains(etm.trace_id) || !tree.Add(etm, &id)) continue;
      counters.push_back(std::make_unique<PacketCounter>(tree, etm, counter_, summary, &tally));
      if (tree.OnPackets(id, &PacketCounter::Take, counters.back().get()))
        cpu_of_id.emplace(id, etm.cpu);
    }
    if (cpu_of_id.empty()) {
      tally.Break({0, std::nullopt, DiscontinuityReason::kBadData, -1});
      return;
    }
    tree.Decode(bytes, [&](uint64_t offset) {
      tally.Break({offset, std::nullopt, DiscontinuityReason::kBadData, -1});
    });
    for (const auto& counter : counters)
      summary->times.insert(summary->times.end(), counter->times().begin(), counter->times().end());
    std::stable_sort(summary->times.begin(), summary->times.end(),
                     [](const TraceTime& a, const TraceTime& b) { return a.offset < b.offset; });
    if (options.raw) return;
    for (const auto& [id, cpu] : cpu_of_id) {
      if (const uint64_t count = tree.BytesOf(id); count > 0) summary->bytes_of_cpu[cpu] += count;
    }
    if (const uint64_t count = tree.BytesOfNobody(cpu_of_id.begin()->first); count > 0)
      summary->bytes_of_cpu[-1] = count;
  }

  const std::vector<EtmSetting> cpus_;  // with ids that differ
  const EtmSetting own_;
  const std::optional<CounterConversion> counter_;
};

}  // namespace

Result<std::unique_ptr<InstructionTrace>> OpenCoreSightTrace(
    const AuxTraceInfo& info, int cpu, const std::optional<CounterConversion>& counter) {
  const auto own = std::find_if(info.cpus.begin(), info.cpus.end(),
                                [&](const EtmSetting& etm) { return etm.cpu == cpu; });
  // A thread's ring has no CPU: its bytes are in frames, whose ids say which.
  if (own == info.cpus.end() && cpu >= 0) {
    return Status::NotFound(fmt::format(
        "AUXTRACE_INFO says of {} CPUs how their trace units were set, and not of CPU {}",
        info.cpus.size(), cpu));
  }
  if (info.cpus.empty()) return Status::Corrupt("AUXTRACE_INFO names no CPU's trace unit");
  return std::unique_ptr<InstructionTrace>(std::make_unique<CoreSightTrace>(
      info.cpus, own == info.cpus.end() ? info.cpus.front() : *own, counter));
}

}  // namespace hangscope

#else

namespace hangscope {

Result<std::unique_ptr<InstructionTrace>> OpenCoreSightTrace(
    const AuxTraceInfo&, int, const std::optional<CounterConversion>&) {
  return Status::NotFound(
      "this hangscope was built without libopencsd, which decodes CoreSight; install "
      "libopencsd-dev "
      "and build it again");
}

}  // namespace hangscope

#endif
