#include "session/trace_of_stream.h"

#include <fmt/format.h>

#include "base/utf8.h"
#include "capture/block_reader.h"
#include "decode/step_reader.h"

namespace hangscope {
namespace {

// So much of a stream tells whether it is a trace.
constexpr uint64_t kLookedAt = 256u << 10;

class Recogniser {
 public:
  Recogniser() : reader_(&names_, StepReader::Learn::kListings, [](uint32_t, const Step&) {}) {}

  Status LookAtRing(FileSystem& files, const std::string& prefix) {
    auto ring = BlockReader::Open(files, prefix);
    if (!ring.ok()) return ring.status();
    ring->Seek(ring->end_offset() > kLookedAt ? ring->end_offset() - kLookedAt : 0);
    for (auto event = ring->Next(); event != BlockReader::Event::kEnd; event = ring->Next()) {
      if (event == BlockReader::Event::kBlock) reader_.Feed(ring->block(), ring->block_offset());
    }
    return {};
  }

  Status LookAtLog(FileSystem& files, const std::string& path) {
    auto file = files.Open(path, FileSystem::Mode::kRead);
    if (!file.ok()) return file.status();
    std::string bytes(kLookedAt, '\0');
    auto got = (*file)->ReadAt(0, bytes);
    if (!got.ok()) return got.status();
    reader_.Feed(std::string_view(bytes).substr(0, *got), 0);
    return {};
  }

  bool IsTrace() const { return reader_.IsTrace(); }

 private:
  CoreNames names_;
  StepReader reader_;
};

class NamingTracer final : public StreamTracer {
 public:
  Result<std::unique_ptr<TraceSource>> Open(FileSystem& files, const StreamPart& part, const TraceRequest&) override {
    Recogniser recogniser;
    const Status status = part.prefix.empty() ? recogniser.LookAtLog(files, part.log) : recogniser.LookAtRing(files, part.prefix);
    if (!status.ok()) return status;
    if (!recogniser.IsTrace()) return std::unique_ptr<TraceSource>();
    return Status::NotFound(fmt::format("'{}' has an instruction trace, which is not exported", Printable(part.name)));
  }
};

}  // namespace

std::unique_ptr<StreamTracer> MakeStreamTracer() { return std::make_unique<NamingTracer>(); }

}  // namespace hangscope
