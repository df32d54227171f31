#include "perf/traces/last_branches.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "base/json_text.h"
#include "base/side_process.h"
#include "base/units.h"
#include "perf/code/recorded_code.h"
#include "perf/perf_activity.h"
#include "perf/perf_file.h"
#include "perf/perf_rings.h"
#include "perf/traces/span_decoder.h"

namespace hangscope {
namespace {

using Json = nlohmann::json;

constexpr size_t kBranchesRead = 256;        // of a thread: what repeats is told once
constexpr size_t kBranchesOfSink = 100'000;  // of all CPUs that share it

// A span of a ring that has what a thread did last.
struct LastSpan {
  size_t ring = 0;
  size_t span = 0;
  int cpu = -1;
};

class LastBranchReader {
 public:
  LastBranchReader(FileSystem& files, Clock& clock, const std::string& path,
                   const LastBranchLimits& limits, std::unique_ptr<PerfFile> file)
      : clock_(clock),
        limits_(limits),
        deadline_(clock.Monotonic() + limits.time),
        file_(std::move(file)),
        activity_(file_->events()),
        rings_(*file_, NameOfTracer(*file_)),
        decoder_(*file_, limits.bytes),
        code_(file_->facts(), PlacesOf(files, path, limits.code)) {}

  Status Read();
  // Of no CPU and without branches where nothing is known; `why_none` says why.
  FindingTrace TraceOf(const FindingSubject& subject);

 private:
  std::string FindSpan(int tid, LastSpan* last) const;
  bool IsOf(const PerfAuxRing& ring, const PerfAuxSpan& span, int tid, int cpu) const;
  PerfAuxRing RingUpTo(const LastSpan& last, const PerfThreadActivity& thread) const;
  std::string Decode(const LastSpan& last, const PerfThreadActivity& thread, FindingTrace* trace);
  void AddBranch(const TraceBranch& branch, FindingTrace* trace) const;
  std::string WhyNone(const TraceSummary& summary) const;

  Clock& clock_;
  const LastBranchLimits& limits_;
  const TimeNs deadline_;
  std::unique_ptr<PerfFile> file_;
  PerfActivity activity_;
  PerfRingsReader rings_;
  SpanDecoder decoder_;
  RecordedCode code_;
  bool read_to_end_ = true;
};

Status LastBranchReader::Read() {
  size_t records = 0;
  const Status status = file_->ForEach([&](const PerfRecord& record) {
    activity_.Add(record);
    rings_.Add(record);
    if (++records % 4096 == 0 && clock_.Monotonic() > deadline_) read_to_end_ = false;
    if (record.type == PERF_RECORD_SAMPLE) return read_to_end_;
    decoder_.Add(record);
    code_.Add(record);
    return read_to_end_;
  });
  activity_.Finish();
  rings_.Finish(activity_, std::max<TimeNs>(activity_.last(), 0));
  return status;
}

// Where a sink is shared, a span has bytes of other CPUs than its ring's.
bool LastBranchReader::IsOf(const PerfAuxRing& ring, const PerfAuxSpan& span, int tid,
                            int cpu) const {
  if (span.held_bytes == 0) return false;
  if (span.shares.empty()) return ring.cpu == cpu && (span.tid == tid || activity_.whole_machine());
  return std::any_of(span.shares.begin(), span.shares.end(), [&](const PerfTraceShare& share) {
    return share.cpu == cpu && share.bytes > 0 &&
           std::find(share.threads.begin(), share.threads.end(), tid) != share.threads.end();
  });
}

// Returns a sentence where there is none.
std::string LastBranchReader::FindSpan(int tid, LastSpan* last) const {
  const PerfThreadActivity& thread = activity_.threads().at(tid);
  const PerfInstant& ran = std::max(thread.ran, thread.switched_out,
                                    [](const auto& a, const auto& b) { return a.time < b.time; });
  if (!ran.happened() || ran.cpu < 0) return "on which CPU it ran last is not recorded";
  last->cpu = ran.cpu;
  // A trace of a whole CPU does not say whose it is, but for who is there to its end.
  if (activity_.whole_machine()) {
    const auto cpu = activity_.cpus().find(ran.cpu);
    if (!thread.IsRunning() || cpu == activity_.cpus().end() || cpu->second.last_tid != tid)
      return fmt::format("others ran on CPU {} after it, and its trace does not say whose it is",
                         ran.cpu);
  }
  const PerfAuxSpan* newest = nullptr;
  for (size_t r = 0; r < rings_.aux().size(); ++r) {
    const PerfAuxRing& ring = rings_.aux()[r];
    for (size_t s = 0; s < ring.spans.size(); ++s) {
      const PerfAuxSpan& span = ring.spans[s];
      if (!IsOf(ring, span, tid, ran.cpu) || (newest != nullptr && span.time.to < newest->time.to))
        continue;
      newest = &span;
      last->ring = r;
      last->span = s;
    }
  }
  if (newest == nullptr)
    return fmt::format("the snapshot has no trace of it on CPU {}, where it ran last", ran.cpu);
  // A tracer stops behind the record of the switch.
  if (newest->time.to < std::max(thread.came.time, thread.switched_out.time))
    return fmt::format("the newest trace of it on CPU {} is older than its last run there",
                       ran.cpu);
  return {};
}

// The ring as if it ended with the span, whose oldest bytes are left out where it has too many.
PerfAuxRing LastBranchReader::RingUpTo(const LastSpan& last,
                                       const PerfThreadActivity& thread) const {
  PerfAuxRing ring = rings_.aux()[last.ring];
  ring.spans.resize(last.span + 1);
  PerfAuxSpan& span = ring.spans.back();
  if (span.end_offset - span.begin_offset > limits_.bytes) {
    span.begin_offset = span.end_offset - limits_.bytes;
    span.held_bytes = std::min(span.held_bytes, limits_.bytes);
    span.restarted = true;
    span.begin_known = false;
  }
  span.pid = thread.pid;  // that of a shared or a whole CPU's span may be another's
  return ring;
}

std::string LastBranchReader::WhyNone(const TraceSummary& summary) const {
  std::string text =
      fmt::format("no branch could be followed in {} of its trace", FormatSize(summary.bytes));
  if (const std::string breaks = DiscontinuitiesText(summary); !breaks.empty())
    text += ": " + breaks;
  for (const std::string& warning : code_.warnings()) text += "; " + warning;
  return text;
}

void LastBranchReader::AddBranch(const TraceBranch& branch, FindingTrace* trace) const {
  if (!trace->branches.empty() && trace->branches.back().from == branch.from &&
      trace->branches.back().to == branch.to) {
    ++trace->branches.back().times;
    return;
  }
  trace->branches.push_back({branch.from, branch.to});
  if (trace->branches.size() > limits_.branches) trace->branches.erase(trace->branches.begin());
}

// Returns a sentence where there are none.
std::string LastBranchReader::Decode(const LastSpan& last, const PerfThreadActivity& thread,
                                     FindingTrace* trace) {
  const PerfAuxRing ring = RingUpTo(last, thread);
  const PerfAuxSpan& span = ring.spans.back();
  SpanDecodeRequest request;
  request.auxtrace_info = rings_.AuxTraceInfoFor(ring.cpu);
  request.first_span = last.span;
  request.last_branches = span.shares.empty() ? kBranchesRead : kBranchesOfSink;
  request.code = [this](const PerfAuxSpan& of, int cpu) {
    return code_.CodeOf(code_.ProcessOf(of, cpu), of.time.to);
  };
  auto decoded = decoder_.Decode(ring, request);
  if (!decoded.ok()) return decoded.status().message();
  const std::optional<TraceSummary>& summary = decoded->back();
  if (!summary) return "its trace cannot be read";
  for (const TraceBranch& branch : summary->last_branches) {
    if (branch.cpu < 0 || branch.cpu == last.cpu) AddBranch(branch, trace);
  }
  const int process = code_.ProcessOf(span, last.cpu == ring.cpu ? -1 : last.cpu);
  for (FindingBranch& branch : trace->branches) {
    if (branch.from != 0) branch.from_place = code_.PlaceOf(process, span.time.to, branch.from);
    if (branch.to != 0) branch.to_place = code_.PlaceOf(process, span.time.to, branch.to);
  }
  return trace->branches.empty() ? WhyNone(*summary) : std::string();
}

FindingTrace LastBranchReader::TraceOf(const FindingSubject& subject) {
  FindingTrace trace{subject.name, subject.thread};
  const auto thread = activity_.threads().find(subject.thread);
  if (clock_.Monotonic() > deadline_ || !read_to_end_) {
    trace.why_none =
        fmt::format("the traces were not decoded to it within {}", FormatElapsed(limits_.time));
  } else if (thread == activity_.threads().end()) {
    trace.why_none = "the snapshot has no record of it";
  } else {
    LastSpan last;
    trace.why_none = FindSpan(subject.thread, &last);
    trace.cpu = last.cpu;
    if (trace.why_none.empty()) trace.why_none = Decode(last, thread->second, &trace);
  }
  return trace;
}

std::string SideText(uint64_t address, const std::string& place) {
  if (address == 0) return "(not in the trace)";
  return place.empty() ? fmt::format("{:#x}", address) : place;
}

void AddTraceLines(const FindingTrace& trace, std::vector<std::string>* lines) {
  if (trace.branches.empty()) {
    lines->push_back(trace.name + "  last branches: none, " + trace.why_none);
    return;
  }
  lines->push_back(fmt::format(
      "{}  last branches, by the trace of CPU {}, the newest last:", trace.name, trace.cpu));
  for (const FindingBranch& branch : trace.branches)
    lines->push_back(
        fmt::format("  {} -> {}{}", SideText(branch.from, branch.from_place),
                    SideText(branch.to, branch.to_place),
                    branch.times > 1 ? fmt::format("  ({} times)", branch.times) : std::string()));
}

bool IsTraceable(const FindingSubject& subject) {
  return subject.thread > 0 && subject.host.empty();
}

bool NamesThread(const Finding& finding) {
  return std::any_of(finding.subjects.begin(), finding.subjects.end(), IsTraceable) ||
         std::any_of(finding.partners.begin(), finding.partners.end(), IsTraceable);
}

// By finding and, in each, in the order of its threads.
using TracesOfFindings = std::vector<std::vector<FindingTrace>>;

TracesOfFindings ReadTraces(LastBranchReader* reader, size_t most_threads,
                            const std::vector<Finding>& findings) {
  TracesOfFindings traces(findings.size());
  std::set<int> told;
  for (size_t f = 0; f < findings.size(); ++f) {
    if (!findings[f].traces.empty()) continue;
    for (const auto* subjects : {&findings[f].subjects, &findings[f].partners}) {
      for (const FindingSubject& subject : *subjects) {
        if (IsTraceable(subject) && told.size() < most_threads &&
            told.insert(subject.thread).second)
          traces[f].push_back(reader->TraceOf(subject));
      }
    }
  }
  return traces;
}

// Between two processes of the same program. A status that is not ok is its message alone.
std::string Packed(const Status& status, const TracesOfFindings& traces) {
  Json list = Json::array();
  for (const auto& of_finding : traces) {
    Json& each = list.emplace_back(Json::array());
    for (const FindingTrace& trace : of_finding) {
      Json branches = Json::array();
      for (const FindingBranch& branch : trace.branches)
        branches.push_back(
            {branch.from, branch.to, branch.from_place, branch.to_place, branch.times});
      each.push_back({trace.name, trace.thread, trace.cpu, trace.why_none, std::move(branches)});
    }
  }
  return JsonText(Json{status.message(), std::move(list)});
}

Result<TracesOfFindings> Unpacked(const std::string& bytes) {
  const Json json = Json::parse(bytes, nullptr, false);
  if (!json.is_array() || json.size() != 2)
    return Status::Corrupt("the process that decodes traces gave no answer");
  if (!json[0].get_ref<const std::string&>().empty())
    return Status::Corrupt(json[0].get<std::string>());
  TracesOfFindings traces;
  for (const Json& each : json[1]) {
    std::vector<FindingTrace>& of_finding = traces.emplace_back();
    for (const Json& one : each) {
      FindingTrace& trace = of_finding.emplace_back();
      one[0].get_to(trace.name);
      one[1].get_to(trace.thread);
      one[2].get_to(trace.cpu);
      one[3].get_to(trace.why_none);
      for (const Json& part : one[4]) {
        FindingBranch& branch = trace.branches.emplace_back();
        part[0].get_to(branch.from);
        part[1].get_to(branch.to);
        part[2].get_to(branch.from_place);
        part[3].get_to(branch.to_place);
        part[4].get_to(branch.times);
      }
    }
  }
  return traces;
}

}  // namespace

Status AddLastBranches(FileSystem& files, Clock& clock, const std::string& path,
                       const LastBranchLimits& limits, std::vector<Finding>* findings) {
  if (std::none_of(findings->begin(), findings->end(), NamesThread)) return {};
  auto file = PerfFile::Open(files, path);
  if (!file.ok()) return file.status();
  if (!(*file)->has_traces() && (*file)->facts().auxtrace_info.empty()) return {};
  const auto bytes = AskSideProcess("branch-reader", {}, [&] {
    auto opened = PerfFile::Open(files, path);
    if (!opened.ok()) return Packed(opened.status(), {});
    LastBranchReader reader(files, clock, path, limits, std::move(*opened));
    if (Status status = reader.Read(); !status.ok()) return Packed(status, {});
    return Packed({}, ReadTraces(&reader, limits.threads, *findings));
  });
  if (!bytes.ok()) return bytes.status();
  auto traces = Unpacked(bytes.value());
  if (!traces.ok()) return traces.status();
  for (size_t f = 0; f < findings->size() && f < traces->size(); ++f) {
    for (FindingTrace& trace : (*traces)[f]) {
      AddTraceLines(trace, &(*findings)[f].lines);
      (*findings)[f].traces.push_back(std::move(trace));
    }
  }
  return {};
}

}  // namespace hangscope
