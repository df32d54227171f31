#include "observe/line_watch.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

namespace hangscope {
namespace {

constexpr auto kLookInterval = std::chrono::milliseconds(20);
constexpr size_t kBlockBytes = 256 * 1024;  // stays in the cache while it is searched
constexpr TimeNs kOpenLineAge = kSecond / 2;
constexpr TimeNs kLongestRest = 5 * kSecond;  // nobody waits for the end of a run that is over
constexpr TimeNs kNoDeadline = std::numeric_limits<TimeNs>::max();

}  // namespace

LineWatch::LineWatch(FileSystem& files, Clock& clock, const Recording& recording,
                     std::shared_ptr<const LinePatterns> patterns, TimeNs quiet)
    : files_(files),
      clock_(clock),
      patterns_(std::move(patterns)),
      quiet_(quiet),
      streams_(recording.streams().size()) {
  for (size_t i = 0; i < streams_.size(); ++i) {
    Stream* stream = &streams_[i];
    stream->recorded = &recording.streams()[i];
    stream->matcher = std::make_unique<LineMatcher>(
        patterns_, [this, stream](const LineHit& hit) { Add(*stream, hit); });
  }
}

LineWatch::~LineWatch() { Finish(); }

void LineWatch::Start() {
  thread_ = std::thread([this] { Run(); });
}

void LineWatch::Finish() {
  {
    const std::lock_guard lock(mutex_);
    finishing_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::vector<WatchedLine> LineWatch::Take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(found_, {});
}

uint64_t LineWatch::unseen_bytes() const {
  const std::lock_guard lock(mutex_);
  return unseen_;
}

void LineWatch::Run() {
  for (;;) {
    bool finishing = false;
    {
      std::unique_lock lock(mutex_);
      finishing = wake_.wait_for(lock, kLookInterval, [this] { return finishing_; });
    }
    const TimeNs deadline = finishing ? clock_.Monotonic() + kLongestRest : kNoDeadline;
    for (Stream& stream : streams_) {
      Follow(&stream, clock_.Monotonic(), deadline);
      if (finishing) stream.matcher->MatchOpenLine();
    }
    if (finishing) return;
  }
}

void LineWatch::Follow(Stream* stream, TimeNs now, TimeNs deadline) {
  const Drain& drain = *stream->recorded->drain;
  const uint64_t position = stream->reader ? stream->reader->position() : 0;
  // What came is in the ring a little later.
  const bool read =
      position < drain.total_bytes() && OpenReader(stream) && ReadOn(stream, deadline);
  if (read) {
    stream->looked_at_open_line = false;
  } else if (!stream->looked_at_open_line && now - drain.last_byte() >= kOpenLineAge) {
    stream->matcher->MatchOpenLine();
    stream->looked_at_open_line = true;
  }
  stream->last_look = now;
}

bool LineWatch::OpenReader(Stream* stream) {
  if (stream->reader) return stream->reader->Refresh().ok();
  auto reader = BlockReader::Open(files_, stream->recorded->ring->prefix());
  if (!reader.ok()) return false;
  stream->reader.emplace(std::move(*reader));
  stream->reader->Seek(0);
  return true;
}

// True when there was something new.
bool LineWatch::ReadOn(Stream* stream, TimeNs deadline) {
  BlockReader& reader = *stream->reader;
  const uint64_t from = reader.position();
  while (clock_.Monotonic() <= deadline) {
    switch (reader.Next(kBlockBytes)) {
      case BlockReader::Event::kEnd:
        return reader.position() != from;
      case BlockReader::Event::kLoss:
        CountUnseen(reader.loss().bytes());
        stream->matcher->Cut();
        break;
      case BlockReader::Event::kBlock:
        // Stamps may be far apart; but what is new is younger than the last look.
        stream->block_time =
            std::max(stream->last_look, reader.TimeOf(reader.block_offset()).value_or(0));
        stream->matcher->Add(reader.block(), reader.block_offset());
        break;
    }
  }
  CountUnseen(reader.end_offset() - std::min(reader.position(), reader.end_offset()));
  return true;
}

void LineWatch::CountUnseen(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  unseen_ += bytes;
}

// However often a pattern matches, few lines wait to be taken.
void LineWatch::Add(const Stream& stream, const LineHit& hit) {
  const std::lock_guard lock(mutex_);
  const auto same = std::find_if(found_.rbegin(), found_.rend(), [&](const WatchedLine& line) {
    return line.hit.pattern == hit.pattern;
  });
  if (same != found_.rend() && stream.block_time - same->time < quiet_) {
    ++same->more;
    return;
  }
  found_.push_back({hit, stream.recorded->ring->stream_name(), stream.block_time, 0});
}

}  // namespace hangscope
