#include "hwtrace/intel_pt_flow.h"

#include <algorithm>
#include <memory>
#include <set>

#include "hwtrace/aux_parts.h"

namespace hangscope {
namespace {

// Without a packet no program goes on for so long, but one that spins without a condition: it says
// no more.
constexpr uint64_t kMostInstructionsWithoutPacket = 1u << 16;
// A byte stands for 8 branches at most; a program whose branches are a thousand instructions apart
// on average is made up, and must not cost hours.
constexpr uint64_t kMostPtInstructionsPerByte = 8 * 1024;
constexpr uint64_t kPtInstructionsAtLeast = 1u << 16;

bool AlwaysBranches(pt_insn_class kind) {
  switch (kind) {
    case ptic_call:
    case ptic_return:
    case ptic_jump:
    case ptic_far_call:
    case ptic_far_return:
    case ptic_far_jump:
      return true;
    default:
      return false;
  }
}

class PtFlow {
 public:
  PtFlow(const pt_config& config, const IntelPtClock& clock, const TraceDecodeOptions& options,
         const std::vector<AuxPart>& parts, std::vector<TraceSummary>* summaries)
      : clock_(clock),
        bytes_(static_cast<uint64_t>(config.end - config.begin)),
        parts_(parts, options, summaries),
        summaries_(summaries),
        packets_(pt_pkt_alloc_decoder(&config), &pt_pkt_free_decoder),
        decoder_(pt_insn_alloc_decoder(&config), &pt_insn_free_decoder),
        most_instructions_(kPtInstructionsAtLeast + bytes_ * kMostPtInstructionsPerByte) {
    for (size_t i = 0; i < parts.size(); ++i) {
      for (const Discontinuity& known : (*summaries)[i].discontinuities)
        known_.insert(parts[i].begin + known.offset);
    }
  }

  void Run() {
    if (decoder_ == nullptr || packets_ == nullptr ||
        pt_image_set_callback(pt_insn_get_image(decoder_.get()), &PtFlow::Read, this) < 0)
      return;
    for (TraceSummary& summary : *summaries_) summary.instructions_known = true;
    uint64_t before = 0;
    for (bool first = true; !stopped_; first = false) {
      int status = pt_insn_sync_forward(decoder_.get());
      const bool synchronised = status != -pte_eos && (first || Offset() > before);
      if (!first) GoOnWithout(synchronised ? SyncOffset() : bytes_);
      if (!synchronised) break;
      before = Offset();
      Synchronise();
      if (status >= 0) status = RunFromSync(status);
      Leave();
      if (status == -pte_eos) break;
      lost_ = status == -pte_nomap ? DiscontinuityReason::kNoCode : DiscontinuityReason::kNoSync;
      if (status == -pte_nomap)
        parts_.Break(last_flow_.offset, Now(), lost_);
      else
        Lost();
    }
    if (stopped_) GoOnWithout(bytes_);
    for (TraceSummary& summary : *summaries_)
      std::stable_sort(
          summary.discontinuities.begin(), summary.discontinuities.end(),
          [](const Discontinuity& a, const Discontinuity& b) { return a.offset < b.offset; });
  }

 private:
  // Until something goes wrong; the negative error.
  int RunFromSync(int status) {
    while (status >= 0) {
      while (status >= 0 && (status & pts_event_pending) != 0) status = HandleEvents();
      if (status < 0) return status;
      if ((status & pts_eos) != 0) return -pte_eos;
      pt_insn instruction{};
      Advance();
      status = pt_insn_next(decoder_.get(), &instruction, sizeof instruction);
      if (instruction.iclass != ptic_error) Take(instruction);
      if (Excessive()) return -pte_nosync;
    }
    return status;
  }

  void Synchronise() {
    next_packet_ = SyncOffset();
    last_flow_ = before_flow_ = {next_packet_, true};
    after_ = 0;
    (void)pt_pkt_sync_set(packets_.get(), next_packet_);
    Advance();
  }

  // The library stands behind the packets that it took: those that told what happens now, and those
  // of the next event, which it takes ahead. A TNT packet may tell of branches that were kept back
  // while time stamps came, so only what stands before the packet of the flow before the last one
  // is surely older. A PSB keeps none back, and its time follows it.
  void Advance() {
    const uint64_t end = Offset();
    const uint64_t after =
        last_flow_.is_psb || before_flow_.is_psb
            ? (last_flow_.is_psb ? last_flow_ : before_flow_).offset + kPsbBytes + 1
            : before_flow_.offset;
    while (next_packet_ < end) {
      pt_packet packet{};
      const int size = pt_pkt_next(packets_.get(), &packet, sizeof packet);
      if (size > 0 && TellsOfFlow(packet.type)) {
        before_flow_ = last_flow_;
        last_flow_ = {next_packet_, packet.type == ppt_psb};
        after_ = after;
        instructions_at_packet_ = instructions_;
      }
      next_packet_ += size > 0 ? static_cast<uint64_t>(size) : end;
    }
    parts_.Advance(last_flow_.offset);
  }

  static bool TellsOfFlow(pt_packet_type type) {
    switch (type) {
      case ppt_tnt_8:
      case ppt_tnt_64:
      case ppt_tip:
      case ppt_tip_pge:
      case ppt_tip_pgd:
      case ppt_fup:
      case ppt_ovf:
      case ppt_psb:
        return true;
      default:
        return false;
    }
  }

  bool Excessive() {
    stopped_ = instructions_ > most_instructions_;
    return stopped_ || instructions_ - instructions_at_packet_ > kMostInstructionsWithoutPacket;
  }

  void Take(const pt_insn& instruction) {
    ++instructions_;
    ++parts_.summary().instructions;
    if (!last_ && !entry_) entry_ = Branch(0);
    if (entry_) Push(*entry_, instruction.ip);
    entry_.reset();
    if (last_) Follow(*last_, instruction.ip);
    last_ = instruction;
  }

  // From one instruction to the one that came next.
  void Follow(const pt_insn& from, uint64_t to) {
    const bool jumped = from.iclass == ptic_cond_jump && to != from.ip + from.size;
    if (!jumped && !AlwaysBranches(from.iclass)) return;
    ++parts_.summary().branches;
    Push(Branch(from.ip), to);
  }

  int HandleEvents() {
    pt_event event{};
    Advance();
    const int status = pt_insn_event(decoder_.get(), &event, sizeof event);
    if (status < 0) return status;
    switch (event.type) {
      case ptev_disabled:
        Leave();
        break;
      case ptev_async_disabled:
        Interrupt(event.variant.async_disabled.at, 0);
        break;
      case ptev_async_branch:
        Interrupt(event.variant.async_branch.from,
                  event.ip_suppressed ? 0 : event.variant.async_branch.to);
        break;
      case ptev_overflow:
        last_.reset();
        break;
      default:
        break;
    }
    return status;
  }

  // No instruction branched; the flow was taken away.
  void Interrupt(uint64_t from, uint64_t to) {
    // What ran before went to where it was interrupted.
    if (last_ && from != 0) Follow(*last_, from);
    last_.reset();
    if (to != 0)
      entry_ = Branch(from);
    else
      Push(Branch(from), 0);
  }

  void Leave() {
    if (last_ && AlwaysBranches(last_->iclass)) Follow(*last_, 0);
    last_.reset();
    entry_.reset();
  }

  void Lost() {
    const uint64_t offset = Offset();
    // What is wrong with the bytes shows in the packets, at the same place or a little behind.
    const auto known = known_.lower_bound(offset);
    if (known != known_.end() && *known <= offset + kPacketBytes) return;
    parts_.Break(offset, Now(), lost_);
  }
  // Packets go on, but where the program went is not known again before `end`.
  void GoOnWithout(uint64_t end) { parts_.GoOnWithout(end, Now(), lost_, known_); }

  TraceBranch Branch(uint64_t from) { return {from, 0, last_flow_.offset, Now(), -1, after_}; }
  void Push(TraceBranch branch, uint64_t to) {
    branch.to = to;
    parts_.Branch(branch);
  }

  uint64_t SyncOffset() const {
    uint64_t offset = 0;
    (void)pt_insn_get_sync_offset(decoder_.get(), &offset);
    return offset;
  }
  uint64_t Offset() const {
    uint64_t offset = 0;
    (void)pt_insn_get_offset(decoder_.get(), &offset);
    return offset;
  }

  std::optional<TimeNs> Now() const {
    uint64_t tsc = 0;
    return pt_insn_time(decoder_.get(), &tsc, nullptr, nullptr) < 0 ? std::nullopt : clock_.At(tsc);
  }

  static int Read(uint8_t* bytes, size_t count, const pt_asid*, uint64_t address, void* context) {
    const ReadCode& read_code = static_cast<PtFlow*>(context)->parts_.part().read_code;
    if (!read_code) return -pte_nomap;
    const size_t got = read_code(address, {reinterpret_cast<char*>(bytes), count});
    return got == 0 ? -pte_nomap : static_cast<int>(std::min(got, count));
  }

  static constexpr uint64_t kPacketBytes = 16;
  static constexpr uint64_t kPsbBytes = 16;

  const IntelPtClock& clock_;
  const uint64_t bytes_;
  AuxParts parts_;
  std::vector<TraceSummary>* summaries_;
  std::unique_ptr<pt_packet_decoder, decltype(&pt_pkt_free_decoder)> packets_;
  std::unique_ptr<pt_insn_decoder, decltype(&pt_insn_free_decoder)> decoder_;
  const uint64_t most_instructions_;
  std::set<uint64_t> known_;
  std::optional<pt_insn> last_;       // ran, and its successor is not known yet
  std::optional<TraceBranch> entry_;  // towards the instruction that comes next
  DiscontinuityReason lost_ = DiscontinuityReason::kNoSync;
  struct FlowPacket {
    uint64_t offset = 0;
    bool is_psb = false;
  };
  FlowPacket last_flow_;  // taken
  FlowPacket before_flow_;
  uint64_t next_packet_ = 0;
  uint64_t after_ = 0;  // see TraceBranch
  uint64_t instructions_ = 0;
  uint64_t instructions_at_packet_ = 0;
  bool stopped_ = false;
};

}  // namespace

void FollowIntelPtFlow(const pt_config& config, const IntelPtClock& clock,
                       const TraceDecodeOptions& options, const std::vector<AuxPart>& parts,
                       std::vector<TraceSummary>* summaries) {
  PtFlow(config, clock, options, parts, summaries).Run();
}

}  // namespace hangscope
