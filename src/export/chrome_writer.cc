#include "export/chrome_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "export/timeline_writer.h"
#include "export/trace_facts.h"
#include "export/trace_output.h"
#include "model/event_format.h"

namespace hangscope {
namespace {

// The format knows processes and their threads: a sort of rows is a process, a row a thread.
constexpr int kCoresProcess = 1, kTasksProcess = 2;

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char byte : ValidUtf8(text)) {
    if (byte == '"' || byte == '\\') {
      quoted += '\\';
      quoted += byte;
    } else if (static_cast<unsigned char>(byte) < 0x20 || byte == 0x7f) {
      fmt::format_to(std::back_inserter(quoted), "\\u{:04x}", static_cast<unsigned char>(byte));
    } else {
      quoted += byte;
    }
  }
  return quoted += '"';
}

// Microseconds. Through integers, as a double has not enough digits for some.
std::string Microseconds(TimeNs time) {
  const bool negative = time < 0;
  const uint64_t ns = negative ? -static_cast<uint64_t>(time) : static_cast<uint64_t>(time);
  return fmt::format("{}{}.{:03}", negative ? "-" : "", ns / 1000, ns % 1000);
}

// "name":"value",...; of several of one name the later ones are called "name 2" and so on, as
// readers keep one of each.
class JsonObject {
 public:
  void Text(std::string_view name, std::string_view text) { Add(name, Quoted(text)); }
  // As text where a reader that knows only doubles would lose digits.
  void Number(std::string_view name, int64_t number) {
    AddNumber(name, std::to_string(number), number >= -kExact && number <= kExact);
  }
  void Unsigned(std::string_view name, uint64_t number) {
    AddNumber(name, std::to_string(number), number <= uint64_t{kExact});
  }
  std::string Whole() const { return "{" + text_ + "}"; }
  bool empty() const { return text_.empty(); }

 private:
  static constexpr int64_t kExact = int64_t{1} << 53;

  void AddNumber(std::string_view name, const std::string& digits, bool exact) {
    Add(name, exact ? digits : Quoted(digits));
  }
  void Add(std::string_view name, const std::string& value) {
    std::string own(name);
    for (int times = 2; std::find(names_.begin(), names_.end(), own) != names_.end(); ++times)
      own = fmt::format("{} {}", name, times);
    if (!text_.empty()) text_ += ',';
    text_ += Quoted(own) + ':' + value;
    names_.push_back(std::move(own));
  }

  std::vector<std::string> names_;
  std::string text_;
};

class ChromeSink final : public TimelineSink {
 public:
  explicit ChromeSink(File& file) : output_(file) {}

  Status Begin(const TraceHead& head);
  Status End(const TraceEnd& end, const std::vector<std::string>& contradictions);

  Status Define(const TimelineTrack& track) override;
  Status Begin(TimelineTrackId track, TimeNs time, SliceState state, const std::string& name,
               const TimelineArguments& arguments) override;
  Status End(TimelineTrackId track, TimeNs time) override;
  Status Instant(TimelineTrackId track, TimeNs time, const TraceEvent& event,
                 const TraceEventKind& kind) override;
  Status Count(TimelineTrackId track, TimeNs time, uint64_t value) override;
  Status Flow(uint64_t id, TimelineTrackId from, TimeNs from_time, TimelineTrackId to,
              TimeNs to_time, const std::string& name, bool wakes) override;
  Status Gap(TimelineTrackId track, const TimeSpan& time, const TimelineGap& gap) override;

 private:
  struct Row {
    int process = kCoresProcess;
    std::string name;
    std::string counter;                 // kCounter: as it is called among all
    std::vector<std::string> open = {};  // names and arguments of slices, as written
  };

  // One event; `rest` is what follows ph, pid, tid, ts: empty, or begins with a comma.
  Status Event(char phase, TimelineTrackId track, TimeNs time, std::string_view rest);
  Status Line(std::string_view json);
  Status Metadata(const char* what, int process, TimelineTrackId track,
                  const JsonObject& arguments);

  TraceOutput output_;
  std::vector<Row> rows_;  // by track, from 1
  TraceFacts facts_;
  bool first_ = true;
};

Status ChromeSink::Begin(const TraceHead& head) {
  facts_ = FactsOf(head);
  Status status = output_.Add("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
  for (const auto& [process, name] : {std::pair(kCoresProcess, std::string("cores")),
                                      std::pair(kTasksProcess, std::string("tasks"))}) {
    JsonObject arguments;
    arguments.Text("name", name + TimesRemark(head));
    if (status.ok()) status = Metadata("process_name", process, 0, arguments);
  }
  if (head.trigger && status.ok()) {
    status = Line(fmt::format(
        R"({{"ph":"i","s":"g","pid":{},"tid":0,"ts":{},"name":"trigger","cat":"hangscope"}})",
        kCoresProcess, Microseconds(*head.trigger)));
  }
  return status;
}

Status ChromeSink::End(const TraceEnd& end, const std::vector<std::string>& contradictions) {
  JsonObject other;
  for (const auto& [name, text] : facts_) other.Text(name, text);
  for (const auto& [name, text] : FactsOf(end, contradictions)) other.Text(name, text);
  const Status status = output_.Add("\n],\"otherData\":" + other.Whole() + "}\n");
  return status.ok() ? output_.Flush() : status;
}

Status ChromeSink::Line(std::string_view json) {
  const Status status = output_.Add(std::exchange(first_, false) ? "\n" : ",\n");
  return status.ok() ? output_.Add(json) : status;
}

Status ChromeSink::Event(char phase, TimelineTrackId track, TimeNs time, std::string_view rest) {
  return Line(fmt::format(R"({{"ph":"{}","pid":{},"tid":{},"ts":{}{}}})", phase,
                          rows_[track - 1].process, track, Microseconds(time), rest));
}

Status ChromeSink::Metadata(const char* what, int process, TimelineTrackId track,
                            const JsonObject& arguments) {
  return Line(fmt::format(R"({{"ph":"M","pid":{},"tid":{},"name":"{}","args":{}}})", process, track,
                          what, arguments.Whole()));
}

Status ChromeSink::Define(const TimelineTrack& track) {
  Row row{track.row == TimelineRow::kTask ? kTasksProcess : kCoresProcess, track.name, ""};
  // Counters are told apart by their names alone.
  if (track.row == TimelineRow::kCounter)
    row.counter = track.parent == 0 ? track.name : rows_[track.parent - 1].name + ": " + track.name;
  if (track.row == TimelineRow::kState) row.name = rows_[track.parent - 1].name + ": " + track.name;
  rows_.push_back(row);
  if (track.row == TimelineRow::kCounter) return {};
  JsonObject name, order;
  name.Text("name", row.name);
  const bool below = track.row == TimelineRow::kState;
  order.Number("sort_index", static_cast<int64_t>(below ? track.parent : track.id));
  const Status told = Metadata("thread_name", row.process, track.id, name);
  return told.ok() ? Metadata("thread_sort_index", row.process, track.id, order) : told;
}

Status ChromeSink::Begin(TimelineTrackId track, TimeNs time, SliceState state,
                         const std::string& name, const TimelineArguments& arguments) {
  JsonObject object;
  for (const auto& [argument, text] : arguments) object.Text(argument, text);
  const std::string args = object.empty() ? "" : ",\"args\":" + object.Whole();
  std::vector<std::string>& open = rows_[track - 1].open;
  open.push_back(",\"name\":" + Quoted(name) + args);
  return Event('B', track, time,
               fmt::format(R"({},"cat":"{}")", open.back(), SliceStateName(state)));
}

// Speedscope knows an end by its name and, where time has not passed, its arguments.
Status ChromeSink::End(TimelineTrackId track, TimeNs time) {
  std::vector<std::string>& open = rows_[track - 1].open;
  const std::string rest = std::move(open.back());
  open.pop_back();
  return Event('E', track, time, rest);
}

Status ChromeSink::Instant(TimelineTrackId track, TimeNs time, const TraceEvent& event,
                           const TraceEventKind& kind) {
  JsonObject object;
  const size_t count = std::min(kind.fields.size(), event.values.size());
  for (size_t i = 0; i < count; ++i) {
    const TraceField& field = kind.fields[i];
    const TraceValue& value = event.values[i];
    const bool plain = value.known && field.names.empty();
    if (plain && field.type == TraceFieldType::kUnsigned) {
      object.Unsigned(field.name, value.bits);
    } else if (plain && field.type == TraceFieldType::kSigned) {
      object.Number(field.name, static_cast<int64_t>(value.bits));
    } else {
      object.Text(field.name, plain && field.type == TraceFieldType::kText
                                  ? value.text
                                  : FieldText(field, value));
    }
  }
  if (event.task) object.Number("task", *event.task);
  if (event.ambiguous) object.Text("time", "may be wrong by whole turns of a 32-bit clock");
  const std::string args = object.empty() ? "" : ",\"args\":" + object.Whole();
  return Event('i', track, time,
               fmt::format(R"(,"s":"t","name":{},"cat":{}{})", Quoted(kind.name),
                           Quoted(kind.category), args));
}

Status ChromeSink::Count(TimelineTrackId track, TimeNs time, uint64_t value) {
  return Event(
      'C', track, time,
      fmt::format(R"(,"name":{},"args":{{"value":{}}})", Quoted(rows_[track - 1].counter), value));
}

Status ChromeSink::Flow(uint64_t id, TimelineTrackId from, TimeNs from_time, TimelineTrackId to,
                        TimeNs to_time, const std::string& name, bool) {
  const std::string rest = fmt::format(R"(,"id":{},"name":{},"cat":"flow")", id, Quoted(name));
  const Status told = Event('s', from, from_time, rest);
  // e: in the slice around it, not the next
  return told.ok() ? Event('f', to, to_time, rest + ",\"bp\":\"e\"") : told;
}

Status ChromeSink::Gap(TimelineTrackId track, const TimeSpan& time, const TimelineGap& gap) {
  return Event('i', track, time.from,
               fmt::format(R"(,"s":"t","name":{},"cat":"missing","args":{{"length_ns":{}}})",
                           Quoted(gap.Text()), time.to - time.from));
}

}  // namespace

std::unique_ptr<TraceWriter> MakeChromeWriter(File& file) {
  return std::make_unique<TimelineWriter<ChromeSink>>(file);
}

}  // namespace hangscope
