#include "perf/perf_inflater.h"

#include <linux/perf_event.h>
#include <zstd.h>

#include "model/perf_format.h"
#include "perf/perf_byte_order.h"
#include "perf/perf_record.h"

namespace hangscope {
namespace {

constexpr size_t kPieceBytes = 256 << 10;
constexpr int kMostWindowLog = 27;  // of perf's highest level: what the stream may ask for, 128 MiB

}  // namespace

struct PerfInflater::Context {
  ZSTD_DCtx* stream = ZSTD_createDCtx();
  ~Context() { ZSTD_freeDCtx(stream); }
};

PerfInflater::PerfInflater(bool turn) : context_(std::make_unique<Context>()), turn_(turn) {
  if (context_->stream != nullptr)
    ZSTD_DCtx_setParameter(context_->stream, ZSTD_d_windowLogMax, kMostWindowLog);
}

PerfInflater::~PerfInflater() = default;

PerfInflater::Outcome PerfInflater::HandOut(
    const std::function<bool(std::string_view record)>& take) {
  std::string_view rest = waiting_;
  Outcome outcome = Outcome::kGoOn;
  while (rest.size() >= sizeof(perf_event_header) && outcome == Outcome::kGoOn) {
    const size_t size = turn_ ? PerfRecordBytes(TurnRecordHeader(rest)) : PerfRecordBytes(rest);
    if (size == 0) outcome = Outcome::kDamaged;
    if (size == 0 || size > rest.size()) break;
    if (!take(rest.substr(0, size))) outcome = Outcome::kStop;
    rest.remove_prefix(size);
  }
  waiting_.erase(0, waiting_.size() - rest.size());
  return outcome;
}

PerfInflater::Outcome PerfInflater::Feed(std::string_view compressed,
                                         const std::function<bool(std::string_view record)>& take) {
  if (damaged_ || context_->stream == nullptr) return Outcome::kDamaged;
  if (compressed.empty()) return Outcome::kGoOn;
  ZSTD_inBuffer in{compressed.data(), compressed.size(), 0};
  Outcome outcome = Outcome::kGoOn;
  bool full = true;  // it may have more, though all the input is taken
  while (outcome == Outcome::kGoOn && (in.pos < in.size || full)) {
    const size_t before = waiting_.size();
    waiting_.resize(before + kPieceBytes);
    ZSTD_outBuffer out{waiting_.data() + before, kPieceBytes, 0};
    const size_t result = ZSTD_decompressStream(context_->stream, &out, &in);
    waiting_.resize(before + out.pos);
    full = out.pos == kPieceBytes;
    outcome = HandOut(take);
    if (ZSTD_isError(result) != 0 && outcome == Outcome::kGoOn) outcome = Outcome::kDamaged;
  }
  damaged_ = outcome == Outcome::kDamaged;
  return outcome;
}

}  // namespace hangscope
