#include "hwtrace/intel_pt_flow.h"

#include <algorithm>
#include <memory>
#include <set>

#include "hwtrace/trace_tally.h"

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
         TraceSummary* summary)
      : clock_(clock),
        options_(options),
        summary_(summary),
        tally_(summary, options),
        decoder_(pt_insn_alloc_decoder(&config), &pt_insn_free_decoder),
        most_instructions_(kPtInstructionsAtLeast +
                           static_cast<uint64_t>(config.end - config.begin) *
                               kMostPtInstructionsPerByte) {
    for (const Discontinuity& known : summary->discontinuities) known_.insert(known.offset);
  }

  void Run() {
    if (decoder_ == nullptr ||
        pt_image_set_callback(pt_insn_get_image(decoder_.get()), &PtFlow::Read, this) < 0)
      return;
    summary_->instructions_known = true;
    uint64_t before = 0;
    for (bool first = true; !stopped_; first = false) {
      int status = pt_insn_sync_forward(decoder_.get());
      if (status == -pte_eos || (!first && Offset() <= before)) break;
      before = Offset();
      if (status >= 0) status = RunFromSync(status);
      Leave();
      if (status == -pte_eos) break;
      if (status == -pte_nomap)
        tally_.Break({Offset(), Now(), DiscontinuityReason::kNoCode, -1});
      else
        Lost();
    }
    std::stable_sort(
        summary_->discontinuities.begin(), summary_->discontinuities.end(),
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
      status = pt_insn_next(decoder_.get(), &instruction, sizeof instruction);
      if (instruction.iclass != ptic_error) Take(instruction);
      if (Excessive()) return -pte_nosync;
    }
    return status;
  }

  bool Excessive() {
    if (const uint64_t offset = Offset(); offset != packet_) {
      packet_ = offset;
      instructions_at_packet_ = summary_->instructions;
    }
    stopped_ = summary_->instructions > most_instructions_;
    return stopped_ ||
           summary_->instructions - instructions_at_packet_ > kMostInstructionsWithoutPacket;
  }

  void Take(const pt_insn& instruction) {
    ++summary_->instructions;
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
    ++summary_->branches;
    Push(Branch(from.ip), to);
  }

  int HandleEvents() {
    pt_event event{};
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
    tally_.Break({offset, Now(), DiscontinuityReason::kNoSync, -1});
  }

  TraceBranch Branch(uint64_t from) { return {from, 0, Offset(), Now(), -1}; }
  void Push(TraceBranch branch, uint64_t to) {
    branch.to = to;
    tally_.Branch(branch);
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
    const size_t got = static_cast<PtFlow*>(context)->options_.read_code(
        address, {reinterpret_cast<char*>(bytes), count});
    return got == 0 ? -pte_nomap : static_cast<int>(std::min(got, count));
  }

  static constexpr uint64_t kPacketBytes = 16;

  const IntelPtClock& clock_;
  const TraceDecodeOptions& options_;
  TraceSummary* summary_;
  TraceTally tally_;
  std::unique_ptr<pt_insn_decoder, decltype(&pt_insn_free_decoder)> decoder_;
  const uint64_t most_instructions_;
  std::set<uint64_t> known_;
  std::optional<pt_insn> last_;       // ran, and its successor is not known yet
  std::optional<TraceBranch> entry_;  // towards the instruction that comes next
  uint64_t packet_ = 0;
  uint64_t instructions_at_packet_ = 0;
  bool stopped_ = false;
};

}  // namespace

void FollowIntelPtFlow(const pt_config& config, const IntelPtClock& clock,
                       const TraceDecodeOptions& options, TraceSummary* summary) {
  PtFlow(config, clock, options, summary).Run();
}

}  // namespace hangscope
