// Writes a trace as CTF, and as JSON lines what must be read from it: for test_ctf.py.
//
//   ctf_zoo fields FOLDER            every type and size of field, names and texts of all sorts,
//                                    one track
//   ctf_zoo tracks FOLDER N TURNS    N tracks of so many events: losses, gaps, stale spans, equal
//                                    times, empty tracks
//   ctf_zoo counts FOLDER            a clock whose rate nobody knows
//   ctf_zoo many FOLDER N TURNS      likewise N tracks; prints the most memory that it had, in KiB,
//                                    and lists nothing
//
// FOLDER/trace is the trace, FOLDER/written what it holds: events, and losses, of each track in
// their order.
#include <fmt/format.h>
#include <sys/resource.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "base/utf8.h"
#include "export/ctf_writer.h"

namespace hangscope {
namespace {

using Json = nlohmann::ordered_json;

void Need(const Status& status) {
  if (status.ok()) return;
  std::cerr << status.message() << "\n";
  std::exit(1);
}

class Zoo {
 public:
  explicit Zoo(const std::string& folder)
      : written_(folder + "/written"), writer_(PosixFileSystem(), folder + "/trace") {}

  TraceHead head;
  TraceEnd end;

  size_t AddKind(const std::string& name, std::vector<TraceField> fields,
                 TraceMeaning meaning = TraceMeaning::kPlain) {
    TraceEventKind kind;
    kind.name = name;
    kind.fields = std::move(fields);
    kind.meaning = meaning;
    head.kinds.push_back(kind);
    return head.kinds.size() - 1;
  }
  void AddTrack(RingKind kind, int64_t number, const std::string& name) {
    head.tracks.push_back({{kind, number}, name});
  }
  void Begin() { Need(writer_.Begin(head)); }
  void End() { Need(writer_.End(end)); }

  void Write(const TraceEvent& event) {
    Need(writer_.Write(event));
    const TraceEventKind& kind = head.kinds[event.kind];
    Json json{{"track", event.track},
              {"time", event.time},
              {"name", kind.name.empty() ? "(no name)" : Printable(kind.name)},
              {"task", event.task ? Json(*event.task) : Json(nullptr)},
              {"ambiguous", event.ambiguous},
              {"values", Json::array()},
              {"labels", Json::array()}};
    if (kind.meaning == TraceMeaning::kFunctionEnter)
      AddText(event.what, &json), AddText(event.where, &json);
    for (size_t i = 0; i < std::min(kind.fields.size(), event.values.size()); ++i) {
      if (!event.values[i].known) break;
      AddValue(kind.fields[i], event.values[i], &json);
    }
    written_ << json.dump() << "\n";
  }
  void Write(const TraceLoss& loss) {
    Need(writer_.Write(loss));
    const bool counted = loss.unit == AmountUnit::kRecords && loss.amount != 0;
    written_ << Json{{"track", loss.track},
                     {"from", loss.time.from},
                     {"to", loss.time.to},
                     {"discarded", counted ? loss.amount : 1},
                     {"reason", GapReasonName(loss.reason)},
                     {"amount", loss.amount}}
                    .dump()
             << "\n";
  }

 private:
  static void AddText(const std::string& text, Json* json) {
    (*json)["values"].push_back(text);
    (*json)["labels"].push_back(nullptr);
  }
  static void AddValue(const TraceField& field, const TraceValue& value, Json* json) {
    if (field.type == TraceFieldType::kText) return AddText(value.text, json);
    (*json)["values"].push_back(field.type == TraceFieldType::kSigned
                                    ? Json(static_cast<int64_t>(value.bits))
                                    : Json(value.bits));
    Json labels = Json::array();
    for (const auto& [number, name] : field.names) {
      if (number == value.bits) labels.push_back(Printable(name));
    }
    if (field.type == TraceFieldType::kBool && field.names.empty())
      labels.push_back(value.bits == 0 ? "false" : "true");
    (*json)["labels"].push_back(labels);
  }

  std::ofstream written_;
  CtfWriter writer_;
};

TraceEvent Event(size_t track, size_t kind, TimeNs time, std::vector<TraceValue> values) {
  TraceEvent event;
  event.track = track;
  event.kind = kind;
  event.time = time;
  event.values = std::move(values);
  return event;
}

TraceValue Text(const std::string& text) { return {0, text, true}; }

void WriteBits(Zoo* zoo, size_t first_kind) {
  TimeNs time = 1000;
  for (int bits = 1; bits <= 64; ++bits) {
    const uint64_t all = ~uint64_t{0} >> (64 - bits);
    const uint64_t most = all >> 1, least = ~most;  // with a sign
    for (const uint64_t pattern : {uint64_t{0}, uint64_t{1}, all, all / 3 * 2}) {
      const uint64_t as_signed = (pattern & (most + 1)) != 0 ? pattern | ~all : pattern;
      zoo->Write(Event(0, first_kind + static_cast<size_t>(bits) - 1, time++,
                       {{pattern}, {as_signed}, {pattern}, {pattern}}));
    }
    zoo->Write(Event(0, first_kind + static_cast<size_t>(bits) - 1, time++,
                     {{all}, {least}, {all}, {all}}));
    zoo->Write(
        Event(0, first_kind + static_cast<size_t>(bits) - 1, time++, {{0}, {most}, {0}, {0}}));
  }
}

void WriteNames(Zoo* zoo) {
  const std::string long_name(300, 'n');
  const std::vector<std::string> names = {"struct",
                                          "int",
                                          "enum",
                                          "event",
                                          "_struct",
                                          "__x",
                                          "",
                                          "1st",
                                          "a b",
                                          "a_b",
                                          "a-b",
                                          "a*/b",
                                          "/*",
                                          "\"",
                                          "\\",
                                          "\n",
                                          "\x1b[31mred",
                                          "größe",
                                          "\xff\xfe",
                                          "string",
                                          "integer",
                                          "env",
                                          "_",
                                          "timestamp",
                                          "id",
                                          long_name,
                                          long_name + "x",
                                          "</script><script>alert(1)</script>",
                                          "field_6",
                                          "typealias",
                                          "u8",
                                          "task_number"};
  std::vector<TraceField> fields;
  std::vector<TraceValue> values;
  for (size_t i = 0; i < names.size(); ++i) {
    TraceField field;
    field.name = names[i];
    field.names = {{i, names[i]}, {i, "second " + names[i]}, {i + 1000, names[i]}};
    fields.push_back(field);
    values.push_back({i});
  }
  // The kinds are added while the trace is written.
  zoo->Write(Event(0, zoo->AddKind("all names", fields), 5000, values));
  for (const std::string& name : names)
    zoo->Write(
        Event(0, zoo->AddKind(name, {{"value", TraceFieldType::kUnsigned, 8, {}}}), 5000, {{7}}));
  TraceEvent of_a_task = Event(0, zoo->AddKind("of tasks", {}), 5000, {});
  for (size_t i = 0; i < names.size(); ++i) {
    of_a_task.task = static_cast<int64_t>(i) - 3;
    zoo->end.tasks[*of_a_task.task] = names[i];
    zoo->Write(of_a_task);
  }
  for (const int64_t number :
       {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()}) {
    of_a_task.task = number;
    zoo->Write(of_a_task);
  }
}

void WriteTexts(Zoo* zoo) {
  const TraceField text{"text", TraceFieldType::kText, 0, {}};
  const size_t two =
      zoo->AddKind("two texts", {text, {"number", TraceFieldType::kUnsigned, 32, {}}, text});
  const std::vector<std::string> texts = {
      "", "plain", "", "größe °µ漢", "\x1b[2J", "\"quoted\"\n\t\\", std::string(70000, 'x'),
      "", "%s%n"};
  TimeNs time = 6000;
  for (const std::string& first : texts) {
    for (const std::string& second : texts)
      zoo->Write(Event(0, two, time++, {Text(first), {42}, Text(second)}));
  }
  TraceEvent entered =
      Event(0, zoo->AddKind("function_enter", {}, TraceMeaning::kFunctionEnter), time, {});
  for (const std::string& name : texts) {
    entered.what = name;
    zoo->Write(entered);
    entered.where = "main.c:7";
    zoo->Write(entered);
    entered.where.clear();
  }
  zoo->Write(Event(0, zoo->AddKind("function_leave", {}, TraceMeaning::kFunctionLeave), time, {}));
  // Records that are too short, with and without what else may be in an event.
  const size_t many = zoo->AddKind("many", {{"a", TraceFieldType::kUnsigned, 32, {}},
                                            text,
                                            {"c", TraceFieldType::kSigned, 24, {}},
                                            {"d", TraceFieldType::kUnsigned, 7, {}}});
  for (size_t known = 0; known <= 4; ++known) {
    TraceEvent event = Event(0, many, ++time, {{1}, Text("t"), {static_cast<uint64_t>(-5)}, {3}});
    for (size_t i = known; i < 4; ++i) event.values[i].known = false;
    zoo->Write(event);
    event.values.resize(known);
    event.ambiguous = true;
    zoo->Write(event);
    event.task = 5;
    zoo->Write(event);
  }
}

void Fields(const std::string& folder) {
  Zoo zoo(folder);
  zoo.head.wall_minus_monotonic = 1'700'000'000 * kSecond + 5;
  zoo.head.time = {0, 10000};
  zoo.AddTrack(RingKind::kCore, 3, "core 3 \"writer\"");
  for (int bits = 1; bits <= 64; ++bits) {
    const uint64_t all = ~uint64_t{0} >> (64 - bits);
    zoo.AddKind(fmt::format("bits_{}", bits),
                {{"u", TraceFieldType::kUnsigned, bits, {{0, "none"}, {all, "all"}}},
                 {"i",
                  TraceFieldType::kSigned,
                  bits,
                  {{~(all >> 1), "least"}, {~uint64_t{0}, "minus one"}, {all >> 1, "most"}}},
                 {"b", TraceFieldType::kBool, bits, {}},
                 {"p", TraceFieldType::kPointer, bits, {}}});
  }
  zoo.Begin();
  WriteBits(&zoo, 0);
  WriteNames(&zoo);
  WriteTexts(&zoo);
  zoo.end.standings.push_back(
      {{false, 3}, Activity::kWaiting, 12, "cb3 of (1,2)", {{true, 5}}, "CRBW, dataflow.c:88", ""});
  zoo.End();
}

// Of `tracks` tracks each third stays empty; the others lose something before, between and behind
// their events.
void Tracks(const std::string& folder, size_t tracks, uint32_t turns) {
  Zoo zoo(folder);
  zoo.head.host = "zoo";
  zoo.head.release = "6.1";
  zoo.head.command = {"sh", "-c", "echo \"x\""};
  zoo.head.verdict = "deadlock: core 1 and core 2 wait for each other";
  zoo.head.trigger = 99000;
  zoo.head.time = {50, 100000};
  zoo.head.window.emplace();
  zoo.head.window->clock_error = 12;
  const size_t kind = zoo.AddKind("step", {{"turn", TraceFieldType::kUnsigned, 32, {}},
                                           {"half", TraceFieldType::kUnsigned, 16, {}}});
  for (size_t i = 0; i < tracks; ++i) {
    zoo.AddTrack(RingKind::kCpu, static_cast<int64_t>(i),
                 i % 2 == 0 ? fmt::format("CPU {}", i) : "");
    RingCoverage ring;
    ring.ring = zoo.head.tracks[i].ring;
    ring.stale = {{{60, 80}, 20, 640}};
    zoo.head.window->rings.push_back(ring);
    zoo.head.window->gaps.push_back(
        {i, 7, {500 + static_cast<TimeNs>(i), 600}, GapReason::kTorn, 3, AmountUnit::kRecords});
  }
  zoo.head.window->gaps.push_back(
      {tracks + 5, {}, {1, 2}, GapReason::kTorn, 0, AmountUnit::kUnknown});
  zoo.Begin();
  const auto lose = [&](size_t track, TimeNs from, TimeNs to, uint64_t amount, AmountUnit unit,
                        GapReason reason) {
    TraceLoss loss;
    loss.track = track;
    loss.time = {from, to};
    loss.amount = amount;
    loss.unit = unit;
    loss.reason = reason;
    zoo.Write(loss);
  };
  for (size_t track = 0; track < tracks; ++track) {
    if (track % 3 != 2 && track % 2 == 0)
      lose(track, 50, 100, 1000 + track, AmountUnit::kRecords, GapReason::kOverwritten);
  }
  for (uint32_t turn = 0; turn < turns; ++turn) {
    for (size_t track = 0; track < tracks; ++track) {
      if (track % 3 == 2) continue;
      const TimeNs time = 100 + turn / 3 * 10;  // three at each time
      if (turn == turns / 9 * 3)
        lose(track, time - 10, time - 5, 17, AmountUnit::kRecords, GapReason::kTorn);
      if (turn == turns / 9 * 3)
        lose(track, time - 4, time - 2, 4096, AmountUnit::kBytes, GapReason::kUnreadable);
      if (turn == turns / 9 * 6 + 1 && track % 2 == 1)
        lose(track, time, time, 0, AmountUnit::kUnknown, GapReason::kBlind);
      zoo.Write(Event(track, kind, time, {{turn}, {turn & 0xffff}}));
    }
  }
  for (size_t track = 0; track < tracks; ++track) {
    if (track % 3 != 2)
      lose(track, 99000, 100000, std::numeric_limits<uint64_t>::max() / 2, AmountUnit::kRecords,
           GapReason::kNoRoom);
  }
  zoo.End();
}

void Counts(const std::string& folder) {
  Zoo zoo(folder);
  zoo.head.counts_clock = true;
  zoo.head.wall_minus_monotonic = 5;
  zoo.AddTrack(RingKind::kStream, 0, "");
  zoo.AddTrack(RingKind::kStream, 1, "nothing was recorded");
  const size_t kind = zoo.AddKind("e", {{"narrow", TraceFieldType::kUnsigned, 8, {}}});
  zoo.Begin();
  zoo.Write(Event(0, kind, 10, {{255}}));
  zoo.Write(Event(0, kind, std::numeric_limits<TimeNs>::max(), {{1}}));
  zoo.End();
}

void Many(const std::string& folder, size_t tracks, uint32_t turns) {
  TraceHead head;
  for (size_t i = 0; i < tracks; ++i)
    head.tracks.push_back({{RingKind::kCore, static_cast<int64_t>(i), "events"}, "core"});
  TraceEventKind kind;
  kind.name = "turn";
  kind.fields = {{"turn", TraceFieldType::kUnsigned, 32, {}}};
  head.kinds.push_back(kind);
  CtfWriter writer(PosixFileSystem(), folder + "/trace");
  Need(writer.Begin(head));
  for (uint32_t turn = 0; turn < turns; ++turn) {
    for (size_t i = 0; i < tracks; ++i) Need(writer.Write(Event(i, 0, turn, {{turn}})));
  }
  Need(writer.End({}));
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  std::cout << used.ru_maxrss << "\n";
}

}  // namespace
}  // namespace hangscope

int main(int argc, char** argv) {
  const std::string what = argc > 2 ? argv[1] : "";
  if (what == "fields") {
    hangscope::Fields(argv[2]);
  } else if (what == "tracks" && argc == 5) {
    hangscope::Tracks(argv[2], std::stoul(argv[3]), static_cast<uint32_t>(std::stoul(argv[4])));
  } else if (what == "many" && argc == 5) {
    hangscope::Many(argv[2], std::stoul(argv[3]), static_cast<uint32_t>(std::stoul(argv[4])));
  } else if (what == "counts") {
    hangscope::Counts(argv[2]);
  } else {
    std::cerr << "usage: ctf_zoo fields|counts FOLDER | ctf_zoo tracks|many FOLDER N TURNS\n";
    return 2;
  }
}
