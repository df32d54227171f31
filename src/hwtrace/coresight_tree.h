// libopencsd's decode tree, owned: the decoders of one stream, what they are fed with, and where
// they stand.
#ifndef HANGSCOPE_HWTRACE_CORESIGHT_TREE_H
#define HANGSCOPE_HWTRACE_CORESIGHT_TREE_H

#include <opencsd/c_api/opencsd_c_api.h>

#include <functional>
#include <string_view>
#include <vector>

#include "hwtrace/auxtrace_info.h"
#include "hwtrace/coresight_frames.h"

namespace hangscope {

// Only while the caller holds the lock of CoreSightTree::Lock: the library's own tables have none.
class CoreSightTree {
 public:
  // Any thread; held while a tree lives.
  class Lock {
   public:
    Lock();
    ~Lock();
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;
  };

  CoreSightTree(bool raw, bool with_code);
  ~CoreSightTree();
  CoreSightTree(const CoreSightTree&) = delete;
  CoreSightTree& operator=(const CoreSightTree&) = delete;

  // A decoder for one CPU's trace. `id` becomes the id that it has in the tree. False: the library
  // does not take it.
  bool Add(const EtmSetting& etm, unsigned char* id);
  // What a decoder without code says: packets. `context` outlives the tree.
  bool OnPackets(unsigned char id, FnDefPktDataIn take, const void* context);
  // What decoders with code say, and where they find it.
  bool OnElements(FnTraceElemIn take, Fn_MemAccID_CB read_code, const void* context);

  // All of it, then the end of the trace. `lost`: called with the offset where the library gave up,
  // from where on it was started again, a frame later.
  void Decode(std::string_view bytes, const std::function<void(uint64_t offset)>& lost);
  // Ends Decode as soon as the library returns to it; for callbacks.
  void Stop() { stopped_ = true; }
  bool stopped() const { return stopped_; }

  // The library counts bytes in 32 bits: which of those it says was near is meant.
  uint64_t Offset(ocsd_trc_index_t index) const;
  // Bytes that were of this id; of ids that no decoder has.
  uint64_t BytesOf(unsigned char id) const;
  uint64_t BytesOfNobody(unsigned char any_id) const;

 private:
  // Both return false where the library gave up.
  bool Feed(std::string_view piece, size_t* taken);
  bool Send(ocsd_datapath_op_t operation);

  dcd_tree_handle_t tree_ = nullptr;
  const bool with_code_;
  uint64_t at_ = 0;
  bool stopped_ = false;
};

// Which of libopencsd's protocols its packets are of.
ocsd_trace_protocol_t CoreSightPacketProtocol(EtmKind kind);

}  // namespace hangscope

#endif
