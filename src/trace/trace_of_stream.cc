#include "trace/trace_of_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <numeric>

#include "base/numbers.h"
#include "base/units.h"
#include "base/utf8.h"
#include "code/elf_image.h"
#include "ring/block_reader.h"
#include "stream/function_tracker.h"
#include "stream/program_code.h"
#include "stream/step_reader.h"

namespace hangscope {
namespace {

// So much of a stream's begin and end tells whether it is a trace.
constexpr uint64_t kLookedAt = 256u << 10;
constexpr size_t kPiece = 64u << 10;
constexpr size_t kEnter = 0;  // of the kinds
constexpr size_t kLeave = 1;

GapReason ReasonOf(LossReason reason) {
  switch (reason) {
    case LossReason::kOverwritten:
      return GapReason::kOverwritten;
    case LossReason::kNotWritten:
      return GapReason::kNoRoom;
    case LossReason::kUnreadable:
      return GapReason::kUnreadable;
  }
  return GapReason::kUnreadable;
}

// The bytes of a stream, wherever they are, in order.
class StreamBytes {
 public:
  struct Piece {
    std::string_view bytes;  // empty: `loss` instead
    uint64_t offset = 0;
    Loss loss;
    TimeSpan time;  // when the first and the last of them had arrived
  };

  virtual ~StreamBytes() = default;
  // Nothing: that was all. Fails where it cannot be read on.
  virtual Result<std::optional<Piece>> Next() = 0;
  virtual void Seek(uint64_t offset) = 0;
  virtual uint64_t begin() const = 0;
  virtual uint64_t end() const = 0;
  virtual bool has_times() const = 0;
  // Of all of them; of bytes without times their offsets.
  virtual TimeSpan time() = 0;
};

class RingBytes final : public StreamBytes {
 public:
  explicit RingBytes(BlockReader reader)
      : reader_(std::move(reader)), has_times_(reader_.OldestTime().has_value()) {}

  Result<std::optional<Piece>> Next() override {
    Piece piece;
    switch (reader_.Next(kPiece)) {
      case BlockReader::Event::kEnd:
        return std::optional<Piece>();
      case BlockReader::Event::kLoss:
        piece.loss = reader_.loss();
        piece.offset = piece.loss.begin;
        piece.time = {last_, TimeOf(piece.loss.end)};
        return std::optional<Piece>(piece);
      case BlockReader::Event::kBlock:
        break;
    }
    piece.bytes = reader_.block();
    piece.offset = reader_.block_offset();
    piece.time = {TimeOf(piece.offset), TimeOf(piece.offset + piece.bytes.size())};
    return std::optional<Piece>(piece);
  }
  void Seek(uint64_t offset) override { reader_.Seek(offset), last_ = 0; }
  uint64_t begin() const override { return reader_.begin_offset(); }
  uint64_t end() const override { return reader_.end_offset(); }
  bool has_times() const override { return has_times_; }
  TimeSpan time() override {
    const TimeNs begin = reader_.OldestTime().value_or(0);
    return {begin, std::max(begin, reader_.TimeOf(reader_.end_offset()).value_or(begin))};
  }

 private:
  // Of one stamp to the next all bytes have the same time; never less than what was told before.
  TimeNs TimeOf(uint64_t offset) {
    if (last_ == 0) last_ = reader_.OldestTime().value_or(0);
    last_ = std::max(last_, reader_.TimeOf(offset).value_or(last_));
    return last_;
  }

  BlockReader reader_;
  bool has_times_;
  TimeNs last_ = 0;
};

class LogBytes final : public StreamBytes {
 public:
  LogBytes(std::unique_ptr<File> file, uint64_t size)
      : file_(std::move(file)), size_(size), buffer_(kPiece, '\0') {}

  Result<std::optional<Piece>> Next() override {
    if (position_ >= size_) return std::optional<Piece>();
    auto got = file_->ReadAt(position_, buffer_);
    if (!got.ok()) return got.status();
    if (*got == 0) return std::optional<Piece>();
    Piece piece;
    piece.bytes = std::string_view(buffer_).substr(0, *got);
    piece.offset = position_;
    position_ += *got;
    return std::optional<Piece>(piece);
  }
  void Seek(uint64_t offset) override { position_ = offset; }
  uint64_t begin() const override { return 0; }
  uint64_t end() const override { return size_; }
  bool has_times() const override { return false; }
  TimeSpan time() override { return {0, static_cast<TimeNs>(size_)}; }

 private:
  std::unique_ptr<File> file_;
  const uint64_t size_;
  std::string buffer_;
  uint64_t position_ = 0;
};

Result<std::unique_ptr<StreamBytes>> OpenBytes(FileSystem& files, const StreamPart& part) {
  if (!part.prefix.empty()) {
    auto ring = BlockReader::Open(files, part.prefix);
    if (!ring.ok()) return ring.status();
    return std::unique_ptr<StreamBytes>(std::make_unique<RingBytes>(std::move(*ring)));
  }
  auto file = files.Open(part.log, FileSystem::Mode::kRead);
  if (!file.ok()) return file.status();
  auto size = (*file)->Size();
  if (!size.ok()) return size.status();
  return std::unique_ptr<StreamBytes>(std::make_unique<LogBytes>(std::move(*file), *size));
}

// Stopped as TraceRequest::go_on said.
Status Stopped() { return Status::Io("interrupted"); }

// "hart 9" before "hart 10": digits as the numbers that they write.
bool ComesBefore(std::string_view a, std::string_view b) {
  const auto digits = [](std::string_view text) {
    return std::min(text.find_first_not_of("0123456789"), text.size());
  };
  while (!a.empty() && !b.empty()) {
    const size_t of_a = digits(a), of_b = digits(b);
    if (of_a > 0 && of_b > 0) {
      if (of_a != of_b) return of_a < of_b;
      if (const int order = a.substr(0, of_a).compare(b.substr(0, of_b)); order != 0)
        return order < 0;
    } else if (a.front() != b.front()) {
      return a.front() < b.front();
    }
    const size_t same = std::max<size_t>(1, std::min(of_a, of_b));
    a.remove_prefix(same);
    b.remove_prefix(same);
  }
  return a.size() < b.size();
}

// N of "hart N".
std::optional<int64_t> HartOf(std::string_view name) {
  constexpr std::string_view kHart = "hart ";
  return name.starts_with(kHart) ? ParseWhole<int64_t>(name.substr(kHart.size())) : std::nullopt;
}

// The functions of all cores of a stream.
class FunctionTrace final : public TraceSource {
 public:
  // `most_bytes`: of the stream's end; 0: all of it.
  FunctionTrace(std::string name, std::unique_ptr<StreamBytes> bytes, uint64_t most_bytes,
                std::unique_ptr<ElfImage> elf, std::function<bool(double)> go_on)
      : name_(std::move(name)),
        bytes_(std::move(bytes)),
        go_on_(std::move(go_on)),
        first_(most_bytes == 0 || bytes_->end() - bytes_->begin() <= most_bytes
                   ? bytes_->begin()
                   : bytes_->end() - most_bytes),
        elf_(std::move(elf)),
        code_(elf_.get()),
        reader_(&cores_, StepReader::Learn::kAll,
                [this](uint32_t core, const Step& step) { steps_.emplace_back(core, step); }) {}

  // False: its lines are no trace.
  Result<bool> Open();
  const TraceHead& head() const override { return head_; }
  const TraceEnd& end() const override { return end_; }
  Result<bool> Next(TraceItem* item) override;
  double progress() const override { return Part(read_to_); }

 private:
  struct Core {
    std::unique_ptr<FunctionTracker> tracker;
    size_t track = 0;
    uint64_t sequence = 0;
  };

  Status Recognise();
  Status FindCores();
  double Part(uint64_t offset) const;
  void AddTracks();
  Status ReadPiece();
  void FollowSteps(const StreamBytes::Piece& piece);
  void FollowLatest();
  void HandleLoss(const StreamBytes::Piece& piece);
  void Entered(size_t core, const TrackedFunction& function, uint64_t pc);
  void Left(size_t core);
  TraceEvent& Add(size_t core, size_t kind);
  TraceValue CycleValue() const { return {cycle_.value_or(0), {}, cycle_.has_value()}; }
  TimeNs TimeOf(const StreamBytes::Piece& piece, uint64_t offset);
  void Finish();

  const std::string name_;
  std::unique_ptr<StreamBytes> bytes_;
  const std::function<bool(double)> go_on_;
  const uint64_t first_;  // offset of the first byte that is read
  std::unique_ptr<ElfImage> elf_;
  ProgramCode code_;
  CoreNames cores_;
  std::vector<std::pair<uint32_t, Step>> steps_;  // of the piece
  StepReader reader_;
  TraceHead head_;
  TraceEnd end_;
  std::vector<Core> tracked_;
  std::deque<TraceItem> items_;
  TimeNs now_ = 0;
  bool has_cycles_ = false;        // its steps say when they were, in simulated time
  std::optional<uint64_t> cycle_;  // of the latest step
  uint64_t read_to_ = 0;
  uint64_t steps_of_others_ = 0;  // cores that came while it was read
  bool done_ = false;
};

double FunctionTrace::Part(uint64_t offset) const {
  const uint64_t all = bytes_->end() - first_;
  return all == 0 ? 1
                  : static_cast<double>(std::clamp(offset, first_, bytes_->end()) - first_) /
                        static_cast<double>(all);
}

// All of it is looked through: a simulator prints one core's lines for as long as it likes, and
// another's once.
Status FunctionTrace::FindCores() {
  StepReader names(&cores_, StepReader::Learn::kListings, [](uint32_t, const Step&) {});
  bytes_->Seek(first_);
  for (;;) {
    auto piece = bytes_->Next();
    if (!piece.ok()) return piece.status();
    if (!*piece) return {};
    if ((*piece)->bytes.empty()) continue;
    names.Feed((*piece)->bytes, (*piece)->offset);
    if (go_on_ && !go_on_(Part((*piece)->offset))) return Stopped();
  }
}

Status FunctionTrace::Recognise() {
  const uint64_t end = bytes_->end();
  for (const uint64_t begin :
       {first_, end > kLookedAt ? std::max(end - kLookedAt, first_) : first_}) {
    bytes_->Seek(begin);
    for (;;) {
      auto piece = bytes_->Next();
      if (!piece.ok()) return piece.status();
      if (!*piece || (*piece)->offset >= begin + kLookedAt) break;
      if (!(*piece)->bytes.empty()) reader_.Feed((*piece)->bytes, (*piece)->offset);
    }
    reader_.Flush();
  }
  code_.Learn(reader_.code());
  if (reader_.wide()) code_.SetWide();
  has_cycles_ = std::any_of(steps_.begin(), steps_.end(),
                            [](const auto& step) { return step.second.cycle.has_value(); });
  steps_.clear();
  if (reader_.IsTrace() && !reader_.only_translations()) {
    if (Status status = FindCores(); !status.ok()) return status;
  }
  bytes_->Seek(first_);
  read_to_ = first_;
  return {};
}

void FunctionTrace::AddTracks() {
  head_.name = name_;
  head_.counts_clock = head_.counts_bytes = !bytes_->has_times();
  head_.time = bytes_->time();
  head_.kinds.push_back({"function_enter",
                         "function",
                         "%s, %s, %x",
                         {{"function", TraceFieldType::kText, 0},
                          {"source", TraceFieldType::kText, 0},
                          {"pc", TraceFieldType::kPointer, 64}},
                         TraceMeaning::kFunctionEnter,
                         {}});
  head_.kinds.push_back({"function_leave", "function", "", {}, TraceMeaning::kFunctionLeave, {}});
  if (has_cycles_) {
    for (TraceEventKind& kind : head_.kinds) {
      kind.format += kind.format.empty() ? "cycle %u" : ", cycle %u";
      kind.fields.push_back({"cycle", TraceFieldType::kUnsigned, 64, {}});
    }
  }
  std::vector<uint32_t> order(cores_.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(),
            [this](uint32_t a, uint32_t b) { return ComesBefore(cores_.name(a), cores_.name(b)); });
  std::vector<size_t> tracks(order.size());
  for (size_t track = 0; track < order.size(); ++track) {
    const std::string& core = cores_.name(order[track]);
    tracks[order[track]] = track;
    head_.tracks.push_back(
        {{RingKind::kStream, HartOf(core).value_or(static_cast<int64_t>(track)), name_}, core});
  }
  for (uint32_t core = 0; core < cores_.size(); ++core) {
    Core tracked;
    tracked.track = tracks[core];
    tracked.tracker = std::make_unique<FunctionTracker>(
        code_,
        [this, core](const TrackedFunction& function, uint64_t pc) { Entered(core, function, pc); },
        [this, core] { Left(core); });
    tracked_.push_back(std::move(tracked));
  }
  if (head_.counts_bytes)
    head_.warnings.push_back(
        fmt::format("'{}': nobody noted when its lines came, so the times of its functions are "
                    "offsets in its bytes; hangscope run and tee note it",
                    Printable(name_)));
  if (first_ > bytes_->begin())
    head_.warnings.push_back(
        fmt::format("'{}': of its instruction trace only the last {} are shown", Printable(name_),
                    FormatSize(bytes_->end() - first_)));
  if (elf_ == nullptr)
    head_.warnings.push_back(
        fmt::format("'{}': where functions begin is not known, so a return may be shown as a call; "
                    "--elf FILE, the program, tells",
                    Printable(name_)));
  if (reader_.chained()) {
    head_.warnings.push_back(
        fmt::format("'{}': QEMU linked its blocks, so most steps were not printed and functions "
                    "are missing; -d exec,nochain prints all",
                    Printable(name_)));
  }
}

Result<bool> FunctionTrace::Open() {
  if (Status status = Recognise(); !status.ok()) return status;
  if (!reader_.IsTrace() || reader_.only_translations()) return false;
  AddTracks();
  bool has_names = elf_ != nullptr;
  for (const auto& [pc, code] : reader_.code()) has_names = has_names || !code.function.empty();
  if (!has_names)
    return Status::NotFound(
        fmt::format("'{}' has an instruction trace without the names of functions; --elf FILE, the "
                    "program, brings them",
                    Printable(name_)));
  return true;
}

// Bytes have the time at which their piece had arrived; without times, a count of the stream's
// bytes is one.
TimeNs FunctionTrace::TimeOf(const StreamBytes::Piece& piece, uint64_t offset) {
  if (!bytes_->has_times()) return static_cast<TimeNs>(offset);
  const double part = piece.bytes.empty()
                          ? 0
                          : static_cast<double>(offset - std::min(offset, piece.offset)) /
                                static_cast<double>(piece.bytes.size());
  return piece.time.from +
         static_cast<TimeNs>(part * static_cast<double>(piece.time.to - piece.time.from));
}

TraceEvent& FunctionTrace::Add(size_t core, size_t kind) {
  TraceEvent event;
  event.track = tracked_[core].track;
  event.kind = kind;
  event.time = now_;
  event.sequence = tracked_[core].sequence++;
  items_.emplace_back(std::move(event));
  return std::get<TraceEvent>(items_.back());
}

void FunctionTrace::Entered(size_t core, const TrackedFunction& function, uint64_t pc) {
  TraceEvent& event = Add(core, kEnter);
  const Location location = code_.Locate(pc);
  event.what = function.name;
  event.where = location.source();
  event.values = {{0, function.name, true}, {0, event.where, true}, {pc, {}, true}};
  if (has_cycles_) event.values.push_back(CycleValue());
}

void FunctionTrace::Left(size_t core) {
  TraceEvent& event = Add(core, kLeave);
  if (has_cycles_) event.values = {CycleValue()};
}

void FunctionTrace::FollowSteps(const StreamBytes::Piece& piece) {
  code_.Learn(reader_.code());
  for (const auto& [core, step] : steps_) {
    if (core >= tracked_.size()) {
      ++steps_of_others_;
      continue;
    }
    now_ = std::max(now_, TimeOf(piece, step.offset));
    cycle_ = step.cycle;
    tracked_[core].tracker->Take(step);
  }
  steps_.clear();
}

// Each core's latest step waits in the reader for what the next line may say of it: of a core that
// stands it is the one that matters.
void FunctionTrace::FollowLatest() {
  reader_.Flush();
  StreamBytes::Piece nothing;
  nothing.offset = read_to_;
  nothing.time = {now_, now_};
  FollowSteps(nothing);
}

void FunctionTrace::HandleLoss(const StreamBytes::Piece& piece) {
  const TimeNs from = now_;
  now_ = std::max(now_, bytes_->has_times() ? piece.time.to : static_cast<TimeNs>(piece.loss.end));
  for (size_t core = 0; core < tracked_.size(); ++core) {
    tracked_[core].tracker->Forget();
    TraceLoss loss;
    loss.track = tracked_[core].track;
    loss.time = {from == 0 ? now_ : from, now_};
    loss.reason = ReasonOf(piece.loss.reason);
    loss.amount = piece.loss.bytes();
    loss.unit = AmountUnit::kBytes;
    items_.emplace_back(loss);
  }
}

Status FunctionTrace::ReadPiece() {
  auto piece = bytes_->Next();
  if (!piece.ok()) return piece.status();
  if (!*piece) {
    FollowLatest();
    done_ = true;
    return {};
  }
  if ((*piece)->bytes.empty()) {
    read_to_ = (*piece)->loss.end;
    FollowLatest();
    HandleLoss(**piece);
    return {};
  }
  read_to_ = (*piece)->offset + (*piece)->bytes.size();
  reader_.Feed((*piece)->bytes, (*piece)->offset);
  FollowSteps(**piece);
  return {};
}

void FunctionTrace::Finish() {
  end_.time = now_;
  uint64_t nameless = 0;
  for (const Core& core : tracked_) nameless += core.tracker->nameless();
  if (nameless > 0)
    end_.warnings.push_back(
        fmt::format("'{}': {} steps lie where no symbol is; they count as the function before",
                    Printable(name_), nameless));
  if (steps_of_others_ > 0)
    end_.warnings.push_back(
        fmt::format("'{}': {} steps of cores that came while it was read are left out",
                    Printable(name_), steps_of_others_));
}

Result<bool> FunctionTrace::Next(TraceItem* item) {
  while (items_.empty() && !done_) {
    if (Status status = ReadPiece(); !status.ok()) return status;
    if (done_) Finish();
  }
  if (items_.empty()) return false;
  *item = std::move(items_.front());
  items_.pop_front();
  const bool is_event = std::holds_alternative<TraceEvent>(*item);
  ++(is_event ? end_.events : end_.losses);
  return true;
}

class FunctionTracer final : public StreamTracer {
 public:
  Result<std::unique_ptr<TraceSource>> Open(FileSystem& files, const StreamPart& part,
                                            const TraceRequest& request) override {
    auto bytes = OpenBytes(files, part);
    if (!bytes.ok()) return bytes.status();
    std::unique_ptr<ElfImage> elf;
    if (!request.source.elf.empty()) {
      auto opened = ElfImage::Open(request.source.elf);
      if (!opened.ok()) return opened.status();
      elf = std::move(*opened);
    }
    auto trace = std::make_unique<FunctionTrace>(part.name, std::move(*bytes), request.stream_bytes,
                                                 std::move(elf), request.go_on);
    auto is_trace = trace->Open();
    if (!is_trace.ok()) return is_trace.status();
    if (!*is_trace) return std::unique_ptr<TraceSource>();
    return std::unique_ptr<TraceSource>(std::move(trace));
  }
};

}  // namespace

std::unique_ptr<StreamTracer> MakeStreamTracer() { return std::make_unique<FunctionTracer>(); }

}  // namespace hangscope
