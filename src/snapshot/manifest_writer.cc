#include "snapshot/manifest_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/units.h"
#include "verdict/json.h"
#include "window/window_json.h"

namespace hangscope {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson CoresList(const std::vector<ScopeCore>& cores) {
  OrderedJson json = OrderedJson::array();
  for (const ScopeCore& core : cores) {
    if (!core.in_use) continue;
    const EventCounts& counts = core.counts;
    json.push_back({{"core", core.index},
                    {"name", core.name},
                    {"owner", core.owner},
                    {"emitted", counts.emitted},
                    {"returned", counts.returned},
                    {"overwritten", counts.overwritten},
                    {"torn", counts.torn},
                    {"refused", counts.refused},
                    {"pending", counts.pending}});
  }
  return json;
}

OrderedJson DeviceObject(const DeviceManifest& device) {
  OrderedJson json{{"file", device.file}, {"name", device.name}};
  json["memories"] = OrderedJson::array();
  for (const MemoryManifest& memory : device.memories) {
    OrderedJson mine{{"name", memory.name}};
    if (!memory.unread.empty()) {
      mine["unread"] = memory.unread;
    } else {
      mine["image"] = memory.image;
      mine["image_bytes"] = memory.image_bytes;
      mine["catalog"] = memory.catalog;
      mine["cores"] = CoresList(memory.cores);
    }
    json["memories"].push_back(std::move(mine));
  }
  return json;
}

OrderedJson ScopeObject(const ScopeManifest& scope) {
  OrderedJson json{{"image", scope.image}};
  if (!scope.catalog.empty()) json["catalog"] = scope.catalog;
  json["cores"] = CoresList(scope.cores);
  for (OrderedJson& core : json["cores"]) {
    for (const ScopeClockFit& fit : scope.clocks) {
      if (core["core"] != fit.core) continue;
      core["clock"] = {{"count", fit.count},
                       {"at_ns", fit.at},
                       {"ns_per_count", fit.ns_per_count},
                       {"error_ns", fit.error}};
    }
  }
  if (!scope.not_in_window.empty()) json["not_in_window"] = scope.not_in_window;
  return json;
}

OrderedJson CpuObject(const CpuManifest& cpu) {
  OrderedJson json{{"file", cpu.file},
                   {"file_bytes", cpu.file_bytes},
                   {"rings", cpu.rings},
                   {"ring_bytes", cpu.ring_bytes},
                   {"bytes", cpu.bytes},
                   {"read_s", RoundedSeconds(cpu.took)},
                   {"discarded_bytes", cpu.discarded_bytes},
                   {"side_band_lost", cpu.side_band_lost},
                   {"threads_at_start", cpu.threads_at_start},
                   {"threads_not_recorded", cpu.threads_not_recorded}};
  json["events"] = cpu.events;
  return json;
}

constexpr size_t kMostOfALine = 4096;

void AddTrigger(const Manifest& manifest, OrderedJson* json) {
  const Trigger& trigger = manifest.trigger;
  (*json)["trigger"] = trigger.name;
  (*json)["trigger_kind"] = TriggerKindName(trigger.kind);
  if (!trigger.detail.empty()) (*json)["trigger_detail"] = trigger.detail.substr(0, kMostOfALine);
  if (trigger.kind == TriggerKind::kRegex) {
    (*json)["trigger_stream"] = trigger.stream;
    (*json)["trigger_offset"] = trigger.begin_offset;
  }
  (*json)["trigger_time"] = FormatWallTime(manifest.wall - (manifest.time - trigger.time));
  (*json)["trigger_s"] = RoundedSeconds(trigger.time - manifest.start);
  if (trigger.suppressed > 0) (*json)["suppressed"] = trigger.suppressed;
  if (manifest.post.time != 0) (*json)["post_s"] = RoundedSeconds(manifest.post.time);
  if (manifest.post.bytes != 0) (*json)["post_bytes"] = manifest.post.bytes;
  if (manifest.since_last) (*json)["since_last"] = true;
}

}  // namespace

std::string ManifestJson(const Manifest& manifest) {
  OrderedJson json{{"format", kManifestFormat},
                   {"version", kManifestVersion},
                   {"run_id", fmt::format("{:#x}", manifest.run_id)}};
  AddTrigger(manifest, &json);
  json.update(OrderedJson{{"time", FormatWallTime(manifest.wall)},
                          {"start", FormatWallTime(manifest.start_wall)},
                          {"elapsed_s", RoundedSeconds(manifest.time - manifest.start)},
                          {"host", manifest.host},
                          {"command", manifest.command},
                          {"pid", manifest.pid},
                          {"elf", manifest.elf}});
  if (!manifest.elf_id.empty()) json["elf_id"] = manifest.elf_id;
  json["streams"] = OrderedJson::array();
  for (const StreamWindow& stream : manifest.streams) {
    OrderedJson mine{
        {"name", stream.name},
        {"begin_offset", stream.begin_offset},
        {"end_offset", stream.end_offset},
        {"bytes", stream.bytes()},
        {"begin_s", RoundedSeconds(std::max<TimeNs>(0, stream.begin_time - manifest.start))},
        {"end_s", RoundedSeconds(manifest.time - manifest.start)}};
    mine["losses"] = OrderedJson::array();
    for (const Loss& loss : stream.losses) {
      mine["losses"].push_back(
          {{"begin", loss.begin}, {"end", loss.end}, {"reason", LossReasonName(loss.reason)}});
    }
    json["streams"].push_back(mine);
  }
  if (!manifest.scope.image.empty()) json["scope"] = ScopeObject(manifest.scope);
  if (!manifest.device.file.empty()) json["device"] = DeviceObject(manifest.device);
  if (!manifest.cpu.file.empty()) json["cpu"] = CpuObject(manifest.cpu);
  if (manifest.window) json["window"] = WindowObject(*manifest.window);
  json["verdict"] = VerdictObject(manifest.verdict, manifest.start);
  return JsonText(json, 2) + "\n";
}

std::string SnapshotJson(const Manifest& manifest, const std::string& path) {
  OrderedJson json{{"type", "snapshot"},
                   {"version", kJsonVersion},
                   {"time", FormatWallTime(manifest.wall)},
                   {"path", path}};
  AddTrigger(manifest, &json);
  uint64_t bytes = 0;
  for (const StreamWindow& stream : manifest.streams) bytes += stream.bytes();
  json["bytes"] = bytes;
  return JsonText(json);
}

}  // namespace hangscope
