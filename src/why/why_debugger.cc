#include "why/why_debugger.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/units.h"
#include "base/utf8.h"
#include "code/elf_image.h"
#include "hwtrace/debugger_traces.h"
#include "verdict/json.h"

namespace hangscope {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostSourceLines = 16;
constexpr size_t kMostNoteLines = 6;
constexpr size_t kMostCountedBreaks = 100'000;

std::string BreaksText(const TraceSummary& summary) {
  std::string text = DiscontinuitiesText(summary);
  if (summary.more_discontinuities > 0)
    text += fmt::format(" and {} more", FormatCount(summary.more_discontinuities));
  return text;
}

class WhyDebugger {
 public:
  WhyDebugger(const WhyDebuggerOptions& options, DebuggerSnapshot snapshot,
              std::unique_ptr<ElfImage> elf)
      : options_(options), snapshot_(std::move(snapshot)), elf_(std::move(elf)) {}

  void Decode(FileSystem& files) {
    TraceDecodeOptions options;
    // Where a core was last is told in any case.
    options.last_branches = std::max<size_t>(1, options_.branches);
    options.most_discontinuities = kMostCountedBreaks;
    all_ = DecodeDebuggerSnapshot(files, snapshot_, options, true);
    all_.warnings.insert(all_.warnings.begin(), snapshot_.warnings.begin(),
                         snapshot_.warnings.end());
  }

  std::string Text() const {
    std::string text =
        fmt::format("{}: a debugger's snapshot: {} cores, {} trace sources, {} buffers\n",
                    Printable(options_.folder), snapshot_.cores.size(), snapshot_.sources.size(),
                    snapshot_.buffers.size());
    text += "where its cores were is told, not whether they hang: a trace does not say who waits\n";
    text += fmt::format("{:<16} {:>5} {:<24} {:<16} {:>9} {:>9} {:>9} {:>9} {:>9}\n", "source",
                        "id", "core", "buffer", "bytes", "packets", "atoms", "insns", "branches");
    const size_t shown = std::min(all_.traces.size(), kMostSourceLines);
    for (size_t i = 0; i < shown; ++i) text += SourceLines(all_.traces[i]);
    if (all_.traces.size() > shown)
      text += fmt::format("and {} more sources: --json has all\n", all_.traces.size() - shown);
    for (size_t i = 0; i < std::min(all_.warnings.size(), kMostNoteLines); ++i)
      text += all_.warnings[i] + "\n";
    if (all_.warnings.size() > kMostNoteLines)
      text +=
          fmt::format("and {} more notes: --json has all\n", all_.warnings.size() - kMostNoteLines);
    for (const SourceTrace& trace : all_.traces) text += BranchLines(trace);
    return text;
  }

  std::string JsonLines(TimeNs wall) const {
    Json head = TypedObject("debugger_snapshot", options_.folder, wall);
    head["cores"] = snapshot_.cores.size();
    head["sources"] = snapshot_.sources.size();
    head["buffers"] = snapshot_.buffers.size();
    std::string text = JsonLine(head);
    for (const SourceTrace& trace : all_.traces) text += JsonLine(SourceObject(trace, wall));
    for (const SourceTrace& trace : all_.traces) text += BranchObjects(trace, wall);
    for (const std::string& warning : all_.warnings) {
      Json note = TypedObject("note", options_.folder, wall);
      note["text"] = warning;
      text += JsonLine(note);
    }
    return text;
  }

 private:
  const SnapshotSource& SourceOf(const SourceTrace& trace) const {
    return snapshot_.sources[trace.source];
  }
  std::string CoreOf(const SourceTrace& trace, bool with_type) const {
    const auto core = SourceOf(trace).core;
    if (!core) return "-";
    const SnapshotCore& known = snapshot_.cores[*core];
    return with_type ? known.name + " " + known.type : known.name;
  }

  std::string Side(uint64_t address) const {
    if (address == 0) return "?";
    const std::string name = NameOf(address);
    return fmt::format("{:#x}{}{}", address, name.empty() ? "" : " ", name);
  }
  // "function+0x10 file.c:3"; empty: not known.
  std::string NameOf(uint64_t address) const {
    if (elf_ == nullptr || address == 0) return {};
    const Location location = elf_->Locate(address);
    if (location.function.empty()) return {};
    return fmt::format("{}+{:#x}{}{}", Printable(location.function),
                       address - std::min(location.function_begin, address),
                       location.file.empty() ? "" : " ", Printable(location.source()));
  }

  std::string SourceLines(const SourceTrace& trace) const {
    const TraceSummary& summary = trace.summary;
    const auto with_code = [&](uint64_t count) {
      return summary.instructions_known ? fmt::format("{}", count) : std::string("-");
    };
    std::string text = fmt::format(
        "{:<16} {:>#5x} {:<24} {:<16} {:>9} {:>9} {:>9} {:>9} {:>9}\n",
        Printable(SourceOf(trace).name, 40), SourceOf(trace).etm->trace_id,
        Printable(CoreOf(trace, true), 60), Printable(snapshot_.buffers[trace.buffer].name, 40),
        trace.bytes > 0 ? FormatSize(trace.bytes) : "-", summary.packets, summary.atoms,
        with_code(summary.instructions), with_code(summary.branches));
    if (!summary.last_branches.empty()) {
      const TraceBranch& last = summary.last_branches.back();
      text += last.to != 0 ? fmt::format("  last at {}\n", Side(last.to))
                           : fmt::format("  last branched at {}\n", Side(last.from));
    }
    if (const std::string breaks = BreaksText(summary); !breaks.empty())
      text += fmt::format("  {}\n", breaks);
    return text;
  }

  std::string BranchLines(const SourceTrace& trace) const {
    if (options_.branches == 0 || trace.summary.last_branches.empty()) return {};
    std::string text =
        fmt::format("the last {} branches of {}, the newest last:\n",
                    trace.summary.last_branches.size(), Printable(CoreOf(trace, false), 60));
    for (const TraceBranch& branch : trace.summary.last_branches)
      text += fmt::format("  {} -> {}\n", Side(branch.from), Side(branch.to));
    return text;
  }

  Json SourceObject(const SourceTrace& trace, TimeNs wall) const {
    const TraceSummary& summary = trace.summary;
    Json json = TypedObject("trace_source", options_.folder, wall);
    json["source"] = SourceOf(trace).name;
    json["kind"] = SourceOf(trace).type;
    json["trace_id"] = SourceOf(trace).etm->trace_id;
    json["core"] = SourceOf(trace).core ? Json(CoreOf(trace, false)) : Json();
    json["buffer"] = snapshot_.buffers[trace.buffer].name;
    json["bytes"] = trace.bytes > 0 ? Json(trace.bytes) : Json();
    json["packets"] = summary.packets;
    json["atoms"] = summary.atoms;
    json["instructions"] = summary.instructions_known ? Json(summary.instructions) : Json();
    json["branches"] = summary.instructions_known ? Json(summary.branches) : Json();
    json["synchronisations"] = summary.synchronisations;
    json["exceptions"] = summary.exceptions;
    json["discontinuities"] = Json::array();
    for (const Discontinuity& gap : summary.discontinuities)
      json["discontinuities"].push_back(
          {{"offset", gap.offset}, {"why", DiscontinuityReasonName(gap.reason)}});
    json["more_discontinuities"] = summary.more_discontinuities;
    return json;
  }

  std::string BranchObjects(const SourceTrace& trace, TimeNs wall) const {
    std::string text;
    for (const TraceBranch& branch : trace.summary.last_branches) {
      if (options_.branches == 0) break;
      Json json = TypedObject("branch", options_.folder, wall);
      json["core"] = CoreOf(trace, false);
      json["from"] = fmt::format("{:#x}", branch.from);
      json["from_place"] = NameOf(branch.from);
      json["to"] = fmt::format("{:#x}", branch.to);
      json["to_place"] = NameOf(branch.to);
      text += JsonLine(json);
    }
    return text;
  }

  const WhyDebuggerOptions& options_;
  const DebuggerSnapshot snapshot_;
  std::unique_ptr<ElfImage> elf_;
  DebuggerTraces all_;
};

}  // namespace

Result<WhyReport> AskWhyDebugger(FileSystem& files, Clock& clock,
                                 const WhyDebuggerOptions& options) {
  auto snapshot = ReadDebuggerSnapshot(files, options.folder);
  if (!snapshot.ok()) return snapshot.status();
  std::unique_ptr<ElfImage> elf;
  if (!options.elf.empty()) {
    auto opened = ElfImage::Open(options.elf);
    if (!opened.ok()) return opened.status();
    elf = std::move(*opened);
  }
  WhyDebugger why(options, std::move(*snapshot), std::move(elf));
  why.Decode(files);
  return WhyReport{options.json ? why.JsonLines(clock.Wall()) : why.Text(), false};
}

}  // namespace hangscope
