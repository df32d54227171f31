#include "hwtrace/coresight_flow.h"

#include <algorithm>
#include <array>
#include <set>

#include "hwtrace/coresight_tree.h"
#include "hwtrace/trace_tally.h"

namespace hangscope {
namespace {

// Bytes that look like code without a branch would be followed for ever: no program goes straight
// on for so long.
constexpr uint64_t kMostStraightBytes = 1u << 16;
// One byte of trace stands for 24 branches at most; a program whose branches are a thousand
// instructions apart on average is made up, and must not cost hours.
constexpr uint64_t kMostEtmInstructionsPerByte = 24 * 1024;
constexpr uint64_t kEtmInstructionsAtLeast = 1u << 16;

class EtmFlow {
 public:
  EtmFlow(CoreSightTree* tree, const TraceDecodeOptions& options, uint64_t bytes,
          TraceSummary* summary)
      : tree_(tree),
        options_(options),
        most_instructions_(kEtmInstructionsAtLeast + bytes * kMostEtmInstructionsPerByte),
        summary_(summary),
        tally_(summary, options) {
    for (const Discontinuity& known : summary->discontinuities) known_.insert(known.offset);
  }

  void Name(unsigned char id, int cpu) {
    of_id_[id].cpu = cpu;
    const auto code = options_.code_of_cpu.find(cpu);
    if (code != options_.code_of_cpu.end()) of_id_[id].read_code = &code->second;
  }

  // For libopencsd; `context` is an EtmFlow.
  static ocsd_datapath_resp_t HandleElement(const void* context, ocsd_trc_index_t index, uint8_t id,
                                            const ocsd_generic_trace_elem* element) {
    auto* self = static_cast<EtmFlow*>(const_cast<void*>(context));
    self->Take(self->tree_->Offset(index), &self->of_id_[id], *element);
    return self->tree_->stopped() ? OCSD_RESP_FATAL_SYS_ERR : OCSD_RESP_CONT;
  }
  static uint32_t ReadCodeOfId(const void* context, ocsd_vaddr_t address, ocsd_mem_space_acc_t,
                               uint8_t id, uint32_t count, uint8_t* bytes) {
    auto* self = static_cast<EtmFlow*>(const_cast<void*>(context));
    const ReadCode* const own = self->of_id_[id].read_code;
    return self->Read(own != nullptr ? *own : self->options_.read_code, address,
                      {reinterpret_cast<char*>(bytes), count});
  }

  void Lost(uint64_t offset, DiscontinuityReason reason, int cpu) {
    if (known_.insert(offset).second) tally_.Break({offset, std::nullopt, reason, cpu});
  }

 private:
  struct Cpu {
    int cpu = -1;
    const ReadCode* read_code = nullptr;  // null: the one of all
    bool entered = false;                 // the flow is known
    std::optional<TraceBranch> pending;   // whose target comes next
  };

  void Take(uint64_t offset, Cpu* cpu, const ocsd_generic_trace_elem& element) {
    straight_bytes_ = 0;
    switch (element.elem_type) {
      case OCSD_GEN_TRC_ELEM_INSTR_RANGE:
        HandleRange(offset, cpu, element);
        break;
      case OCSD_GEN_TRC_ELEM_I_RANGE_NOPATH:
        Count(offset, element.num_instr_range);
        Leave(cpu);
        break;
      case OCSD_GEN_TRC_ELEM_EXCEPTION:
        if (!cpu->pending && element.excep_ret_addr)
          cpu->pending = TraceBranch{element.en_addr, 0, offset, std::nullopt, cpu->cpu, offset};
        break;
      case OCSD_GEN_TRC_ELEM_ADDR_NACC:
        Arrive(cpu, element.st_addr);
        Leave(cpu);
        tally_.Break({offset, std::nullopt, DiscontinuityReason::kNoCode, cpu->cpu});
        break;
      case OCSD_GEN_TRC_ELEM_NO_SYNC:
        Leave(cpu);
        // The other reasons show in the packets.
        if (element.unsync_eot_info == UNSYNC_BAD_PACKET)
          Lost(offset, DiscontinuityReason::kNoSync, cpu->cpu);
        break;
      case OCSD_GEN_TRC_ELEM_TRACE_ON:
      case OCSD_GEN_TRC_ELEM_EO_TRACE:
        Leave(cpu);
        break;
      default:
        break;
    }
  }

  void HandleRange(uint64_t offset, Cpu* cpu, const ocsd_generic_trace_elem& element) {
    if (!Count(offset, element.num_instr_range)) return;
    if (!cpu->entered && !cpu->pending)
      cpu->pending = TraceBranch{0, 0, offset, std::nullopt, cpu->cpu, offset};
    Arrive(cpu, element.st_addr);
    cpu->entered = true;
    const bool branches =
        element.last_i_type == OCSD_INSTR_BR || element.last_i_type == OCSD_INSTR_BR_INDIRECT;
    if (!branches || !element.last_instr_exec) return;
    ++summary_->branches;
    cpu->pending = TraceBranch{
        element.en_addr - element.last_instr_sz, 0, offset, std::nullopt, cpu->cpu, offset};
  }

  bool Count(uint64_t offset, uint64_t instructions) {
    summary_->instructions += instructions;
    if (summary_->instructions <= most_instructions_) return true;
    tally_.Break({offset, std::nullopt, DiscontinuityReason::kBadData, -1});
    tree_->Stop();
    return false;
  }

  void Arrive(Cpu* cpu, uint64_t address) {
    if (!cpu->pending) return;
    cpu->pending->to = address;
    tally_.Branch(*cpu->pending);
    cpu->pending.reset();
  }

  void Leave(Cpu* cpu) {
    Arrive(cpu, 0);
    cpu->entered = false;
  }

  uint32_t Read(const ReadCode& read_code, uint64_t address, std::span<char> bytes) {
    straight_bytes_ = address == next_ ? straight_bytes_ + bytes.size() : 0;
    next_ = address + bytes.size();
    if (straight_bytes_ > kMostStraightBytes) return 0;
    return static_cast<uint32_t>(std::min(read_code(address, bytes), bytes.size()));
  }

  CoreSightTree* tree_;
  const TraceDecodeOptions& options_;
  const uint64_t most_instructions_;
  TraceSummary* summary_;
  TraceTally tally_;
  std::array<Cpu, 256> of_id_;
  std::set<uint64_t> known_;
  uint64_t next_ = 0;
  uint64_t straight_bytes_ = 0;
};

}  // namespace

void FollowCoreSightFlow(std::string_view bytes, const std::vector<EtmSetting>& cpus,
                         const TraceDecodeOptions& options, TraceSummary* summary) {
  CoreSightTree tree(options.raw, true);
  EtmFlow flow(&tree, options, bytes.size(), summary);
  std::set<uint8_t> ids;
  for (const EtmSetting& etm : cpus) {
    unsigned char id = 0;
    if (ids.contains(etm.trace_id) || !tree.Add(etm, &id)) continue;
    ids.insert(id);
    flow.Name(id, etm.cpu);
  }
  if (ids.empty() || !tree.OnElements(&EtmFlow::HandleElement, &EtmFlow::ReadCodeOfId, &flow))
    return;
  summary->instructions_known = true;
  tree.Decode(bytes,
              [&](uint64_t offset) { flow.Lost(offset, DiscontinuityReason::kBadData, -1); });
  std::stable_sort(
      summary->discontinuities.begin(), summary->discontinuities.end(),
      [](const Discontinuity& a, const Discontinuity& b) { return a.offset < b.offset; });
}

}  // namespace hangscope
