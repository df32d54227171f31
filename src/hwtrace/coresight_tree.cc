#include "hwtrace/coresight_tree.h"

#include <algorithm>
#include <mutex>

// LeakSanitizer's, where a build has it.
extern "C" {
__attribute__((weak)) void __lsan_disable();  // NOLINT(bugprone-reserved-identifier)
__attribute__((weak)) void __lsan_enable();   // NOLINT(bugprone-reserved-identifier)
}

namespace hangscope {
namespace {

constexpr size_t kMostBytesAtOnce = 1u << 20;

static_assert(kCoreSightFrameBytes == OCSD_DFRMTR_FRAME_SIZE);

std::mutex library;

// What libopencsd 1.3.3 asks for is not looked at by LeakSanitizer: it forgets elements of damaged
// traces, and 32 bytes a tree whatever one does (ocsd_dt_set_gen_elem_outfn). Both are bounded by
// the bytes that it is given.
class LibraryMemory {
 public:
  LibraryMemory() {
    if (__lsan_disable != nullptr) __lsan_disable();
  }
  ~LibraryMemory() {
    if (__lsan_enable != nullptr) __lsan_enable();
  }
  LibraryMemory(const LibraryMemory&) = delete;
  LibraryMemory& operator=(const LibraryMemory&) = delete;
};

// ocsd_etmv3_cfg and ocsd_ptm_cfg.
template <typename Settings>
Settings EarlySettings(const EtmSetting& etm) {
  Settings settings{};
  settings.reg_idr = etm.id0;
  settings.reg_ctrl = etm.control;
  settings.reg_ccer = etm.code_extension;
  settings.reg_trc_id = etm.trace_id;
  settings.arch_ver = ARCH_V7;
  settings.core_prof = profile_CortexA;
  return settings;
}

// ocsd_etmv4_cfg and ocsd_ete_cfg. The architecture is the newest that the trace may be of: an
// older CPU does not have the instructions that this adds.
template <typename Settings>
Settings LateSettings(const EtmSetting& etm, ocsd_arch_version_t architecture) {
  Settings settings{};
  settings.reg_idr0 = etm.id0;
  settings.reg_idr1 = etm.id1;
  settings.reg_idr2 = etm.id2;
  settings.reg_idr8 = etm.id8;
  settings.reg_configr = etm.control;
  settings.reg_traceidr = etm.trace_id;
  settings.arch_ver = architecture;
  settings.core_prof = profile_CortexA;
  return settings;
}

ocsd_ete_cfg EteSettings(const EtmSetting& etm) {
  auto settings = LateSettings<ocsd_ete_cfg>(etm, ARCH_AA64);
  settings.reg_devarch = etm.architecture;
  return settings;
}

// The library hands out no packets of an ETE. They are those of an ETMv4 of the architecture that
// TRCDEVARCH says, 5 at least; TRCIDR1 of an ETE only refers to that.
ocsd_etmv4_cfg PacketSettingsOfEte(const EtmSetting& etm) {
  auto settings = LateSettings<ocsd_etmv4_cfg>(etm, ARCH_AA64);
  const uint32_t major = std::max(5u, etm.architecture >> 12 & 0xf);
  const uint32_t minor = etm.architecture >> 16 & 0xf;
  settings.reg_idr1 = (etm.id1 & ~0xff0u) | major << 8 | minor << 4;
  return settings;
}

template <typename Settings>
bool Create(dcd_tree_handle_t tree, const char* decoder, int flags, const Settings& settings,
            unsigned char* id) {
  return ocsd_dt_create_decoder(tree, decoder, flags, &settings, id) == OCSD_OK;
}

}  // namespace

ocsd_trace_protocol_t CoreSightPacketProtocol(EtmKind kind) {
  switch (kind) {
    case EtmKind::kEtmV3:
      return OCSD_PROTOCOL_ETMV3;
    case EtmKind::kPtm:
      return OCSD_PROTOCOL_PTM;
    case EtmKind::kEtmV4:
    case EtmKind::kEte:
      return OCSD_PROTOCOL_ETMV4I;
  }
  return OCSD_PROTOCOL_UNKNOWN;
}

CoreSightTree::Lock::Lock() { library.lock(); }
CoreSightTree::Lock::~Lock() { library.unlock(); }

CoreSightTree::CoreSightTree(bool raw, bool with_code) : with_code_(with_code) {
  // perf's drivers put four frame synchronisations where the trace was interrupted.
  constexpr uint32_t kFrames = OCSD_DFRMTR_FRAME_MEM_ALIGN | OCSD_DFRMTR_RESET_ON_4X_FSYNC;
  tree_ = ocsd_create_dcd_tree(raw ? OCSD_TRC_SRC_SINGLE : OCSD_TRC_SRC_FRAME_FORMATTED, kFrames);
  // A library prints nothing. The logger is made with the first tree.
  if (tree_ != nullptr) (void)ocsd_def_errlog_init(OCSD_ERR_SEV_NONE, 0);
}

CoreSightTree::~CoreSightTree() {
  // Elements that wait in a decoder are only freed by this.
  (void)Send(OCSD_OP_RESET);
  ocsd_destroy_dcd_tree(tree_);
}

bool CoreSightTree::Add(const EtmSetting& etm, unsigned char* id) {
  if (tree_ == nullptr) return false;
  const int flags = with_code_ ? OCSD_CREATE_FLG_FULL_DECODER : OCSD_CREATE_FLG_PACKET_PROC;
  switch (etm.kind) {
    case EtmKind::kEtmV3:
      return Create(tree_, OCSD_BUILTIN_DCD_ETMV3, flags, EarlySettings<ocsd_etmv3_cfg>(etm), id);
    case EtmKind::kPtm:
      return Create(tree_, OCSD_BUILTIN_DCD_PTM, flags, EarlySettings<ocsd_ptm_cfg>(etm), id);
    case EtmKind::kEtmV4:
      return Create(tree_, OCSD_BUILTIN_DCD_ETMV4I, flags,
                    LateSettings<ocsd_etmv4_cfg>(etm, ARCH_V8_max), id);
    case EtmKind::kEte:
      if (!with_code_)
        return Create(tree_, OCSD_BUILTIN_DCD_ETMV4I, flags, PacketSettingsOfEte(etm), id);
      return Create(tree_, OCSD_BUILTIN_DCD_ETE, flags, EteSettings(etm), id);
  }
  return false;
}

bool CoreSightTree::OnPackets(unsigned char id, FnDefPktDataIn take, const void* context) {
  return ocsd_dt_attach_packet_callback(tree_, id, OCSD_C_API_CB_PKT_SINK,
                                        reinterpret_cast<void*>(take), context) == OCSD_OK;
}

bool CoreSightTree::OnElements(FnTraceElemIn take, Fn_MemAccID_CB read_code, const void* context) {
  const LibraryMemory unchecked;
  return ocsd_dt_set_gen_elem_outfn(tree_, take, context) == OCSD_OK &&
         ocsd_dt_add_callback_trcid_mem_acc(tree_, 0, ~ocsd_vaddr_t{0}, OCSD_MEM_SPACE_ANY,
                                            read_code, context) == OCSD_OK;
}

void CoreSightTree::Decode(std::string_view bytes,
                           const std::function<void(uint64_t offset)>& lost) {
  while (at_ < bytes.size() && !stopped_) {
    size_t taken = 0;
    const bool going = Feed(bytes.substr(at_, kMostBytesAtOnce), &taken);
    at_ += taken;
    if (going && taken > 0) continue;
    if (stopped_) return;
    lost(at_);
    at_ += kCoreSightFrameBytes - at_ % kCoreSightFrameBytes;
    if (!Send(OCSD_OP_RESET)) return;
  }
  if (!stopped_) (void)Send(OCSD_OP_EOT);
}

// libopencsd is C++ and may throw where memory runs out.
bool CoreSightTree::Feed(std::string_view piece, size_t* taken) try {
  const LibraryMemory unchecked;
  uint32_t processed = 0;
  auto answer = ocsd_dt_process_data(tree_, OCSD_OP_DATA, static_cast<ocsd_trc_index_t>(at_),
                                     static_cast<uint32_t>(piece.size()),
                                     reinterpret_cast<const uint8_t*>(piece.data()), &processed);
  *taken = std::min<size_t>(processed, piece.size());
  while (OCSD_DATA_RESP_IS_WAIT(answer) && !stopped_) {
    answer = ocsd_dt_process_data(tree_, OCSD_OP_FLUSH, 0, 0, nullptr, nullptr);
  }
  return !OCSD_DATA_RESP_IS_FATAL(answer);
} catch (...) {
  return false;
}

bool CoreSightTree::Send(ocsd_datapath_op_t operation) try {
  const LibraryMemory unchecked;
  return !OCSD_DATA_RESP_IS_FATAL(ocsd_dt_process_data(tree_, operation, 0, 0, nullptr, nullptr));
} catch (...) {
  return false;
}

uint64_t CoreSightTree::Offset(ocsd_trc_index_t index) const {
  const auto distance =
      static_cast<int32_t>(static_cast<uint32_t>(index) - static_cast<uint32_t>(at_));
  return static_cast<uint64_t>(std::max<int64_t>(0, static_cast<int64_t>(at_) + distance));
}

uint64_t CoreSightTree::BytesOf(unsigned char id) const {
  ocsd_decode_stats_t* counts = nullptr;
  const bool known = ocsd_dt_get_decode_stats(tree_, id, &counts) == OCSD_OK && counts != nullptr;
  return known && counts->revision == OCSD_STATS_REVISION ? counts->channel_total : 0;
}

uint64_t CoreSightTree::BytesOfNobody(unsigned char any_id) const {
  ocsd_decode_stats_t* counts = nullptr;
  const bool known =
      ocsd_dt_get_decode_stats(tree_, any_id, &counts) == OCSD_OK && counts != nullptr;
  return known && counts->revision == OCSD_STATS_REVISION
             ? counts->demux.no_id_bytes + counts->demux.unknown_id_bytes
             : 0;
}

}  // namespace hangscope
