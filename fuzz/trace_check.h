// What holds of any trace, whatever it was made from, and of what is written of it.
#ifndef HANGSCOPE_FUZZ_TRACE_CHECK_H
#define HANGSCOPE_FUZZ_TRACE_CHECK_H

#include <map>
#include <set>
#include <string>

#include "export/trace_jsonl.h"
#include "export/trace_text.h"
#include "fakes/fake_file_system.h"
#include "fuzz.h"
#include "trace/trace_source.h"

namespace hangscope::fuzz {

// Hands on what it reads, and looks at it.
class TraceCheck {
 public:
  explicit TraceCheck(TraceSource& source) : source_(source) {}

  void WriteAll(TraceWriter& writer) {
    FUZZ_REQUIRE(writer.Begin(source_.head()).ok());
    TraceItem item;
    for (;;) {
      const auto next = source_.Next(&item);
      FUZZ_REQUIRE(next.ok());
      if (!next.value()) break;
      std::visit([this](const auto& one) { Check(one); }, item);
      FUZZ_REQUIRE(std::visit([&writer](const auto& one) { return writer.Write(one); }, item).ok());
    }
    FUZZ_REQUIRE(source_.end().events == events_ && source_.end().losses == losses_);
    FUZZ_REQUIRE(writer.End(source_.end()).ok());
    std::set<std::string> names;
    for (const TraceEventKind& kind : source_.head().kinds)
      FUZZ_REQUIRE(names.insert(kind.name).second);
  }

 private:
  void Check(const TraceEvent& event) {
    ++events_;
    const TraceHead& head = source_.head();
    FUZZ_REQUIRE(event.track < head.tracks.size() && event.kind < head.kinds.size());
    FUZZ_REQUIRE(event.values.size() == head.kinds[event.kind].fields.size());
    const auto [newest, first] = newest_.emplace(event.track, event.time);
    FUZZ_REQUIRE(first || event.time >= newest->second);
    newest->second = event.time;
  }
  void Check(const TraceLoss& loss) {
    ++losses_;
    FUZZ_REQUIRE(loss.track < source_.head().tracks.size() && loss.time.from <= loss.time.to);
  }

  TraceSource& source_;
  std::map<size_t, TimeNs> newest_;  // by track
  uint64_t events_ = 0;
  uint64_t losses_ = 0;
};

// `open`: makes the same source each time.
template <typename Open>
void CheckTrace(const Open& open) {
  for (const bool json : {false, true}) {
    auto source = open();
    if (source == nullptr) return;
    FakeFileSystem files;
    auto file = files.Open("out", FileSystem::Mode::kCreate);
    std::unique_ptr<TraceWriter> writer;
    if (json)
      writer = std::make_unique<TraceJsonWriter>(**file);
    else
      writer = std::make_unique<TraceTextWriter>(**file);
    TraceCheck(*source).WriteAll(*writer);
    for (const char byte : files.BytesOf("out"))
      FUZZ_REQUIRE(byte == '\n' || static_cast<uint8_t>(byte) >= 0x20);
  }
}

}  // namespace hangscope::fuzz

#endif
