#include "export/ctf_metadata.h"

#include <fmt/format.h>

#include <algorithm>

#include "export/ctf_text.h"
#include "hangscope/version.h"

namespace hangscope {
namespace {

std::string UuidText(const CtfUuid& uuid) {
  std::string text;
  for (size_t i = 0; i < uuid.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text.push_back('-');
    text += fmt::format("{:02x}", uuid[i]);
  }
  return text;
}

std::string ClockName(const CtfDescription& trace) {
  return trace.counts_clock ? "counts" : "monotonic";
}

std::string Integer(int bits, bool is_signed = false, const std::string& more = {}) {
  return fmt::format("integer {{ size = {}; align = 8; signed = {};{} }}", bits, is_signed, more);
}

std::string TimeInteger(const CtfDescription& trace) {
  return Integer(64, false, fmt::format(" map = clock.{}.value;", ClockName(trace)));
}

bool Fits(const TraceField& field, uint64_t value) {
  const int bits = CtfBits(field);
  if (bits == 64) return true;
  if (field.type != TraceFieldType::kSigned) return value >> bits == 0;
  const int64_t signed_value = static_cast<int64_t>(value);
  return signed_value >= -(int64_t{1} << (bits - 1)) && signed_value < int64_t{1} << (bits - 1);
}

std::string Number(const TraceField& field, uint64_t value) {
  return field.type == TraceFieldType::kSigned ? fmt::format("{}", static_cast<int64_t>(value))
                                               : fmt::format("{}", value);
}

// Without names that no value of the field can have.
std::string Enumerators(const TraceField& field) {
  std::string text;
  for (const auto& [value, name] : field.names) {
    if (Fits(field, value))
      text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", CtfLiteral(name),
                          Number(field, value));
  }
  if (field.type != TraceFieldType::kBool || !text.empty()) return text;
  return fmt::format("\"false\" = 0, \"true\" = 1 ... {}", ~uint64_t{0} >> (64 - CtfBits(field)));
}

std::string FieldType(const TraceField& field) {
  if (field.type == TraceFieldType::kText) return "string { encoding = UTF8; }";
  const std::string integer = Integer(CtfBits(field), field.type == TraceFieldType::kSigned,
                                      field.type == TraceFieldType::kPointer ? " base = 16;" : "");
  const std::string names = Enumerators(field);
  return names.empty() ? integer : fmt::format("enum : {} {{ {} }}", integer, names);
}

std::string TraceText(const CtfDescription& trace) {
  return fmt::format(
      "trace {{\n\tmajor = 1;\n\tminor = 8;\n\tuuid = \"{}\";\n\tbyte_order = le;\n"
      "\tpacket.header := struct {{\n\t\t{} magic;\n\t\t{} uuid[16];\n\t\t{} stream_id;\n\t\t{} "
      "stream_instance_id;\n\t}};\n}};\n\n",
      UuidText(trace.uuid), Integer(32), Integer(8), Integer(32), Integer(64));
}

std::string EnvironmentText(const CtfDescription& trace) {
  std::string text = "env {\n";
  for (const auto& [name, value] : trace.environment) {
    const int64_t* number = std::get_if<int64_t>(&value);
    text +=
        fmt::format("\t{} = {};\n", name,
                    number ? fmt::format("{}", *number) : CtfLiteral(std::get<std::string>(value)));
  }
  return text + "};\n\n";
}

std::string ClockText(const CtfDescription& trace) {
  TimeNs seconds = trace.offset / kSecond;
  TimeNs rest = trace.offset % kSecond;
  if (rest < 0) {
    rest += kSecond;
    --seconds;
  }
  return fmt::format(
      "clock {{\n\tname = \"{}\";\n\tuuid = \"{}\";\n\tdescription = {};\n\tfreq = "
      "1000000000;\n\tprecision = {};\n"
      "\toffset_s = {};\n\toffset = {};\n\tabsolute = {};\n}};\n\n",
      ClockName(trace), UuidText(trace.uuid),
      CtfLiteral(trace.counts_clock ? trace.times : "Monotonic, of the machine that recorded"),
      std::max<TimeNs>(trace.clock_error, 0), seconds, rest, trace.offset != 0);
}

std::string TasksText(const CtfDescription& trace) {
  if (trace.tasks.empty())
    return fmt::format("typealias {} := task_number;\n\n", Integer(64, true));
  std::string names;
  for (const auto& [task, name] : trace.tasks)
    names += fmt::format("\t{} = {},\n", CtfLiteral(name), task);
  return fmt::format("typealias enum : {} {{\n{}}} := task_number;\n\n", Integer(64, true), names);
}

std::string StreamText(const CtfDescription& trace) {
  const std::string time = TimeInteger(trace);
  return fmt::format(
      "stream {{\n\tid = 0;\n\tevent.header := struct {{\n\t\t{} id;\n\t\t{} timestamp;\n\t}};\n"
      "\tpacket.context := struct {{\n\t\t{} timestamp_begin;\n\t\t{} timestamp_end;\n\t\t{} "
      "content_size;\n\t\t{} packet_size;\n"
      "\t\t{} events_discarded;\n\t\t{} cpu_id;\n\t\tstring {{ encoding = UTF8; }} "
      "_track;\n\t}};\n}};\n\n",
      Integer(32), time, time, time, Integer(64), Integer(64), Integer(64), Integer(32));
}

std::string ContextText(const CtfEventClass& event) {
  if (!event.has_task && !event.ambiguous) return {};
  std::string text = "\tcontext := struct {\n";
  if (event.has_task) text += "\t\ttask_number _task;\n";
  if (event.ambiguous)
    text += fmt::format(
        "\t\tenum : {} {{ \"the time may be wrong by turns of a 32-bit clock\" = 1 }} "
        "_ambiguous;\n",
        Integer(8));
  return text + "\t};\n";
}

std::string FieldsText(const CtfEventClass& event) {
  const std::vector<TraceField> fields = CtfFields(*event.kind);
  CtfFieldNames names;
  std::string text;
  for (size_t i = 0; i < std::min(event.fields, fields.size()); ++i) {
    const std::string name = names.Add(fields[i].name, i);
    const std::string original =
        std::string_view(name).substr(1) == fields[i].name ? "" : "  " + CtfComment(fields[i].name);
    text += fmt::format("\t\t{} {};{}\n", FieldType(fields[i]), name, original);
  }
  return text;
}

std::string EventName(const TraceEventKind& kind) {
  if (kind.meaning == TraceMeaning::kFunctionEnter) return "function_enter";
  if (kind.meaning == TraceMeaning::kFunctionLeave) return "function_leave";
  return kind.name.empty() ? "(no name)" : kind.name;  // babeltrace2 takes an empty one for none
}

std::string EventText(const CtfEventClass& event, size_t id) {
  std::string text = "event {";
  if (!event.kind->category.empty()) text += "  " + CtfComment(event.kind->category);
  text += fmt::format(
      "\n\tid = {};\n\tname = {};\n\tstream_id = 0;\n{}\tfields := struct {{\n{}\t}};\n", id,
      CtfLiteral(EventName(*event.kind)), ContextText(event), FieldsText(event));
  if (!event.kind->format.empty()) text += "\t" + CtfComment(event.kind->format) + "\n";
  return text + "};\n\n";
}

}  // namespace

int CtfBits(const TraceField& field) {
  return field.bits <= 8 ? 8 : field.bits <= 16 ? 16 : field.bits <= 32 ? 32 : 64;
}

std::vector<TraceField> CtfFields(const TraceEventKind& kind) {
  std::vector<TraceField> fields;
  if (kind.meaning == TraceMeaning::kFunctionEnter)
    fields = {{"function", TraceFieldType::kText, 0, {}}, {"where", TraceFieldType::kText, 0, {}}};
  fields.insert(fields.end(), kind.fields.begin(), kind.fields.end());
  return fields;
}

std::string CtfMetadata(const CtfDescription& trace) {
  std::string text = "/* CTF 1.8 */\n\n/* Written by hangscope " HANGSCOPE_VERSION " */\n\n";
  text += TraceText(trace) + EnvironmentText(trace) + ClockText(trace) + TasksText(trace) +
          StreamText(trace);
  for (size_t id = 0; id < trace.classes.size(); ++id) text += EventText(trace.classes[id], id);
  return text;
}

}  // namespace hangscope
