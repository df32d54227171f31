#include "hwtrace/intel_pt_trace.h"

#include "base/build_features.h"

#if HANGSCOPE_HAS_LIBIPT

#include <intel-pt.h>

#include <algorithm>

#include "hwtrace/aux_parts.h"
#include "hwtrace/intel_pt_clock.h"
#include "hwtrace/intel_pt_flow.h"
#include "hwtrace/trace_times.h"

namespace hangscope {
namespace {

// As perf prints it.
const char* KindName(const pt_packet& packet) {
  switch (packet.type) {
    case ppt_pad:
      return "PAD";
    case ppt_psb:
      return "PSB";
    case ppt_psbend:
      return "PSBEND";
    case ppt_fup:
      return "FUP";
    case ppt_tip:
      return "TIP";
    case ppt_tip_pge:
      return "TIP.PGE";
    case ppt_tip_pgd:
      return "TIP.PGD";
    case ppt_tnt_8:
    case ppt_tnt_64:
      return "TNT";
    case ppt_mode:
      return packet.payload.mode.leaf == pt_mol_tsx ? "MODE.TSX" : "MODE.Exec";
    case ppt_pip:
      return "PIP";
    case ppt_vmcs:
      return "VMCS";
    case ppt_cbr:
      return "CBR";
    case ppt_tsc:
      return "TSC";
    case ppt_tma:
      return "TMA";
    case ppt_mtc:
      return "MTC";
    case ppt_cyc:
      return "CYC";
    case ppt_stop:
      return "TraceSTOP";
    case ppt_ovf:
      return "OVF";
    case ppt_mnt:
      return "MNT";
    case ppt_exstop:
      return "EXSTOP";
    case ppt_mwait:
      return "MWAIT";
    case ppt_pwre:
      return "PWRE";
    case ppt_pwrx:
      return "PWRX";
    case ppt_ptw:
      return "PTWRITE";
    default:
      return "unknown";
  }
}

// Counts the packets of a stream, each for the part in which it begins.
class PtPacketCounter {
 public:
  PtPacketCounter(const pt_config& config, const IntelPtClock& clock, const AuxParts& parts)
      : bytes_(static_cast<uint64_t>(config.end - config.begin)),
        clock_(clock),
        parts_(parts),
        times_(&parts_.summary().times),
        decoder_(pt_pkt_alloc_decoder(&config), &pt_pkt_free_decoder) {}

  void Run() {
    const bool begun = decoder_ != nullptr && pt_pkt_sync_forward(decoder_.get()) >= 0;
    if (!begun || Offset() > 0) Lose(0, begun ? Offset() : bytes_, DiscontinuityReason::kBegin);
    while (begun && RunFromSync()) continue;
  }

 private:
  // Until the bytes make no sense any more; true: there is another synchronisation point behind.
  bool RunFromSync() {
    uint64_t offset = Offset();
    pt_packet packet{};
    int size = 0;
    while ((size = pt_pkt_next(decoder_.get(), &packet, sizeof packet)) > 0) {
      Take(packet, offset);
      offset += static_cast<uint64_t>(size);
    }
    if (size == -pte_eos) return false;
    const bool again = pt_pkt_sync_forward(decoder_.get()) >= 0 && Offset() > offset;
    Lose(offset, again ? Offset() : bytes_,
         again ? DiscontinuityReason::kNoSync : DiscontinuityReason::kBadData);
    clock_.Lose();
    left_ = from_known_ = bound_ = in_psb_ = false;
    return again;
  }

  void Take(const pt_packet& packet, uint64_t offset) {
    Advance(offset);
    TraceSummary& summary = parts_.summary();
    ++summary.packets;
    ++summary.packet_kinds[KindName(packet)];
    switch (packet.type) {
      case ppt_psb:
        ++summary.synchronisations;
        in_psb_ = true;
        break;
      case ppt_psbend:
        in_psb_ = false;
        break;
      case ppt_tnt_8:
      case ppt_tnt_64:
        summary.atoms += packet.payload.tnt.bit_size;
        break;
      case ppt_ovf:
        Break(offset, DiscontinuityReason::kOverflow);
        clock_.Lose();
        in_psb_ = false;
        break;
      case ppt_tip_pge:
        if (left_) Break(offset, DiscontinuityReason::kTraceOff);
        break;
      case ppt_tsc:
        clock_.HandleTsc(packet.payload.tsc.tsc);
        Stamp(offset);
        break;
      case ppt_tma:
        clock_.HandleTma(packet.payload.tma.ctc, packet.payload.tma.fc);
        break;
      case ppt_mtc:
        clock_.HandleMtc(packet.payload.mtc.ctc);
        Stamp(offset);
        break;
      default:
        break;
    }
    HandleException(packet, &summary);
  }

  // An interruption is told by where it came from and where it went: FUP and TIP. A FUP behind some
  // packets only says where those were.
  void HandleException(const pt_packet& packet, TraceSummary* summary) {
    switch (packet.type) {
      case ppt_fup:
        from_known_ = !in_psb_ && !bound_;
        bound_ = false;
        break;
      case ppt_tip:
      case ppt_tip_pgd:
        summary->exceptions += from_known_;
        left_ = packet.type == ppt_tip_pgd;
        from_known_ = bound_ = false;
        break;
      case ppt_tip_pge:
      case ppt_tnt_8:
      case ppt_tnt_64:
        left_ = from_known_ = bound_ = false;
        break;
      case ppt_ovf:
        left_ = from_known_ = false;
        bound_ = true;
        break;
      case ppt_mode:
        bound_ = bound_ || (!in_psb_ && packet.payload.mode.leaf == pt_mol_tsx);
        break;
      case ppt_ptw:
      case ppt_exstop:
        bound_ = true;
        break;
      default:
        break;
    }
  }

  void Advance(uint64_t offset) {
    const size_t before = parts_.number();
    parts_.Advance(offset);
    if (parts_.number() != before) times_ = TraceTimes(&parts_.summary().times);
  }
  void Stamp(uint64_t offset) {
    if (const auto now = clock_.Now()) times_.Add({parts_.Within(offset), *now});
  }
  void Break(uint64_t offset, DiscontinuityReason reason) {
    parts_.Break(offset, clock_.Now(), reason);
  }
  void Lose(uint64_t begin, uint64_t end, DiscontinuityReason reason) {
    Break(begin, reason);
    parts_.GoOnWithout(end, clock_.Now(), reason);
    times_ = TraceTimes(&parts_.summary().times);
  }

  uint64_t Offset() const {
    uint64_t offset = 0;
    (void)pt_pkt_get_offset(decoder_.get(), &offset);
    return offset;
  }

  const uint64_t bytes_;
  IntelPtClock clock_;
  AuxParts parts_;
  TraceTimes times_;  // of the part
  std::unique_ptr<pt_packet_decoder, decltype(&pt_pkt_free_decoder)> decoder_;
  bool in_psb_ = false;      // what comes until PSBEND only repeats the state
  bool bound_ = false;       // the next FUP belongs to a packet before it
  bool from_known_ = false;  // a FUP waits for its TIP
  bool left_ = false;        // tracing was switched off, in this stream
};

class IntelPtTrace final : public InstructionTrace {
 public:
  IntelPtTrace(const IntelPtSetting& setting, uint64_t config)
      : setting_(setting), clock_(setting, config) {}

  TraceSummary Decode(std::string_view bytes, const TraceDecodeOptions& options) override {
    return std::move(DecodeParts(bytes, {{0, options.read_code}}, options).front());
  }

  bool goes_on() const override { return true; }

  std::vector<TraceSummary> DecodeParts(std::string_view bytes, const std::vector<AuxPart>& parts,
                                        const TraceDecodeOptions& options) override {
    std::vector<TraceSummary> summaries(parts.size());
    for (size_t i = 0; i < parts.size(); ++i)
      summaries[i].bytes =
          (i + 1 < parts.size() ? parts[i + 1].begin : bytes.size()) - parts[i].begin;
    if (bytes.empty()) return summaries;
    const pt_config config = Config(bytes);
    PtPacketCounter(config, clock_, {parts, options, &summaries}).Run();
    const bool with_code = std::any_of(
        parts.begin(), parts.end(), [](const AuxPart& part) { return part.read_code != nullptr; });
    if (with_code) FollowIntelPtFlow(config, clock_, options, parts, &summaries);
    return summaries;
  }

  // A packet PSB; nothing else has its bytes.
  uint64_t LastSynchronisation(std::string_view bytes) const override {
    std::string psb;
    for (int i = 0; i < 8; ++i) psb += "\x02\x82";
    const size_t last = bytes.rfind(psb);
    return last == std::string_view::npos ? 0 : last;
  }

 private:
  pt_config Config(std::string_view bytes) const {
    pt_config config;
    pt_config_init(&config);
    // The decoders only read.
    config.begin = reinterpret_cast<uint8_t*>(const_cast<char*>(bytes.data()));
    config.end = config.begin + bytes.size();
    if (clock_.mtc_known()) {
      config.cpuid_0x15_eax = setting_.crystal;
      config.cpuid_0x15_ebx = setting_.tsc_per_crystal;
      config.mtc_freq = static_cast<uint8_t>(clock_.mtc_shift());
    }
    return config;
  }

  const IntelPtSetting setting_;
  const IntelPtClock clock_;
};

}  // namespace

Result<std::unique_ptr<InstructionTrace>> OpenIntelPtTrace(const IntelPtSetting& setting,
                                                           uint64_t config) {
  return std::unique_ptr<InstructionTrace>(std::make_unique<IntelPtTrace>(setting, config));
}

}  // namespace hangscope

#else

namespace hangscope {

Result<std::unique_ptr<InstructionTrace>> OpenIntelPtTrace(const IntelPtSetting&, uint64_t) {
  return Status::NotFound(
      "this hangscope was built without libipt, which decodes Intel PT; install libipt-dev and "
      "build it again");
}

}  // namespace hangscope

#endif
