#include "control/control_protocol.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/json_text.h"

namespace hangscope {
namespace {

using Json = nlohmann::ordered_json;

// The member if it is there and has the type, else the default.
template <typename T>
T Member(const Json& json, const char* name, T otherwise) {
  const auto at = json.find(name);
  if (at == json.end()) return otherwise;
  bool fits = false;
  if constexpr (std::is_same_v<T, bool>)
    fits = at->is_boolean();
  else if constexpr (std::is_arithmetic_v<T>)
    fits = at->is_number();
  else if constexpr (std::is_same_v<T, std::string>)
    fits = at->is_string();
  return fits ? at->template get<T>() : otherwise;
}

std::vector<std::string> Texts(const Json& json, const char* name) {
  std::vector<std::string> texts;
  const auto at = json.find(name);
  if (at == json.end() || !at->is_array()) return texts;
  for (const Json& text : *at) {
    if (text.is_string()) texts.push_back(text.get<std::string>());
  }
  return texts;
}

// An object of a version that is understood.
Result<Json> ParseObject(std::string_view line, const char* what) {
  Json json = ParseForeignJson<Json>(line);
  if (json.is_discarded() || !json.is_object())
    return Status::Corrupt(fmt::format("the {} is no JSON object", what));
  const int version = Member(json, "version", 0);
  if (version < 1) return Status::Corrupt(fmt::format("the {} names no version", what));
  if (version > kControlVersion) {
    return Status::Corrupt(fmt::format("the {} has version {}; this hangscope speaks {}", what,
                                       version, kControlVersion));
  }
  return json;
}

Result<Json> ParseReply(std::string_view line) {
  auto json = ParseObject(line, "reply");
  if (!json.ok()) return json.status();
  if (!Member(*json, "ok", false))
    return Status::Io(
        Member<std::string>(*json, "error", "the recorder refused, and did not say why"));
  return json;
}

Json StatusObject(const RecorderStatus& status) {
  Json json{{"pid", status.pid}, {"answered", status.answered}};
  if (!status.answered) return json;
  json["child_pid"] = nullptr;
  if (status.child_pid != 0) json["child_pid"] = status.child_pid;
  json.update(Json{{"name", status.name},
                   {"prefix", status.prefix},
                   {"rings", status.rings},
                   {"command", status.command},
                   {"elapsed_s", static_cast<double>(status.age / kMillisecond) / 1000},
                   {"total_bytes", status.total_bytes},
                   {"bytes_per_s", status.bytes_per_second},
                   {"state", status.state},
                   {"confidence", status.confidence},
                   {"hang", status.hang},
                   {"summary", status.summary},
                   {"snapshots", status.snapshots}});
  json["last_snapshot"] = nullptr;
  if (!status.last_snapshot.empty()) json["last_snapshot"] = status.last_snapshot;
  return json;
}

}  // namespace

std::string RequestLine(const ControlRequest& request) {
  Json json{{"version", kControlVersion}};
  if (request.command == ControlRequest::Command::kStatus) {
    json["command"] = "status";
  } else {
    json.update(
        Json{{"command", "snap"}, {"now", request.now}, {"since_last", request.since_last}});
  }
  return JsonText(json);
}

Result<ControlRequest> ParseRequest(std::string_view line) {
  auto json = ParseObject(line, "request");
  if (!json.ok()) return json.status();
  ControlRequest request;
  const auto command = Member<std::string>(*json, "command", "");
  if (command == "snap") {
    request.command = ControlRequest::Command::kSnap;
  } else if (command != "status") {
    return Status::Usage(fmt::format("unknown command '{}'; there are status and snap", command));
  }
  request.now = Member(*json, "now", false);
  request.since_last = Member(*json, "since_last", false);
  return request;
}

std::string StatusReply(const RecorderStatus& status) {
  Json json{{"version", kControlVersion}, {"ok", true}};
  json.update(StatusObject(status));
  return JsonText(json);
}

std::string SnapReply(const std::string& folder) {
  return JsonText({{"version", kControlVersion}, {"ok", true}, {"path", folder}});
}

std::string FailedReply(const std::string& why) {
  return JsonText({{"version", kControlVersion}, {"ok", false}, {"error", why}});
}

Result<RecorderStatus> ParseStatusReply(std::string_view line) {
  auto json = ParseReply(line);
  if (!json.ok()) return json.status();
  RecorderStatus status;
  status.pid = Member(*json, "pid", 0);
  status.child_pid = Member(*json, "child_pid", 0);
  status.name = Member<std::string>(*json, "name", "");
  status.prefix = Member<std::string>(*json, "prefix", "");
  status.rings = Texts(*json, "rings");
  status.command = Texts(*json, "command");
  status.age = static_cast<TimeNs>(Member(*json, "elapsed_s", 0.0) * 1e9);
  status.total_bytes = Member<uint64_t>(*json, "total_bytes", 0);
  status.bytes_per_second = Member(*json, "bytes_per_s", 0.0);
  status.state = Member<std::string>(*json, "state", "");
  status.confidence = Member<std::string>(*json, "confidence", "");
  status.hang = Member(*json, "hang", false);
  status.summary = Member<std::string>(*json, "summary", "");
  status.snapshots = Member<uint64_t>(*json, "snapshots", 0);
  status.last_snapshot = Member<std::string>(*json, "last_snapshot", "");
  return status;
}

Result<std::string> ParseSnapReply(std::string_view line) {
  auto json = ParseReply(line);
  if (!json.ok()) return json.status();
  auto folder = Member<std::string>(*json, "path", "");
  if (folder.empty()) return Status::Corrupt("the reply names no snapshot");
  return folder;
}

std::string RecorderJson(const RecorderStatus& status) {
  Json json{{"type", "recorder"}, {"version", kControlVersion}};
  json.update(StatusObject(status));
  return JsonText(json);
}

}  // namespace hangscope
