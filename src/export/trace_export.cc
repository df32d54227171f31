#include "export/trace_export.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "base/near_name.h"
#include "base/utf8.h"
#include "export/chrome_writer.h"
#include "export/ctf_writer.h"
#include "export/perfetto_writer.h"
#include "export/trace_jsonl.h"
#include "export/trace_text.h"

namespace hangscope {
namespace {

constexpr uint64_t kItemsBetweenQuestions = 4096;
constexpr char kCtfBegin[] = "/* CTF 1.8 */";  // of the metadata

struct Format {
  TraceFormatInfo info;
  std::unique_ptr<TraceWriter> (*to_file)(File& file) = nullptr;
  std::unique_ptr<TraceWriter> (*to_folder)(FileSystem& files, const std::string& folder) = nullptr;
};

template <typename Writer>
std::unique_ptr<TraceWriter> ToFile(File& file) {
  return std::make_unique<Writer>(file);
}

template <typename Writer>
std::unique_ptr<TraceWriter> ToFolder(FileSystem& files, const std::string& folder) {
  return std::make_unique<Writer>(files, folder);
}

const std::vector<Format>& Formats() {
  static const std::vector<Format> formats = {
      {{"chrome", "JSON of Chrome's trace viewer", false, false, {".json"}},
       MakeChromeWriter,
       nullptr},
      {{"ctf", "the Common Trace Format: babeltrace2, Trace Compass", true, true, {".ctf"}},
       nullptr,
       ToFolder<CtfWriter>},
      {{"jsonl", "JSON Lines", false, false, {".jsonl"}}, ToFile<TraceJsonWriter>, nullptr},
      {{"perfetto", "for ui.perfetto.dev", false, true, {".pftrace", ".perfetto-trace"}},
       MakePerfettoWriter,
       nullptr},
      {{"text", "a line an event", false, false, {".txt"}}, ToFile<TraceTextWriter>, nullptr},
  };
  return formats;
}

const Format* FindFormat(const std::string& name) {
  for (const Format& format : Formats()) {
    if (format.info.name == name) return &format;
  }
  return nullptr;
}

std::string FormatNames() {
  std::string names;
  for (const Format& format : Formats()) names += (names.empty() ? "" : ", ") + format.info.name;
  return names;
}

uint64_t BytesOf(FileSystem& files, const std::string& path) {
  if (!files.IsFolder(path)) {
    auto file = files.Open(path, FileSystem::Mode::kRead);
    return file.ok() ? (*file)->Size().value_or(0) : 0;
  }
  uint64_t bytes = 0;
  for (const std::string& name : files.List(path)) bytes += BytesOf(files, path + "/" + name);
  return bytes;
}

// A folder that an export made, or could have: what else is in somebody's folder is not ours to
// remove.
bool IsExported(FileSystem& files, const std::string& folder) {
  const std::vector<std::string> names = files.List(folder);
  if (names.empty()) return true;
  const auto is_ours = [&](const std::string& name) {
    return (name == "metadata" || name.starts_with("stream_")) &&
           !files.IsFolder(folder + "/" + name);
  };
  if (!std::all_of(names.begin(), names.end(), is_ours)) return false;
  auto metadata = files.Open(folder + "/metadata", FileSystem::Mode::kRead);
  std::string begin(std::size(kCtfBegin) - 1, '\0');
  return metadata.ok() &&
         (*metadata)->ReadAt(0, {begin.data(), begin.size()}).value_or(0) == begin.size() &&
         begin == kCtfBegin;
}

// A name that nobody else uses.
std::string Partial(const std::string& path) {
  return fmt::format("{}.{}.partial", path.substr(0, path.find_last_not_of('/') + 1), getpid());
}

// Those of a program that stands still may be all that there is.
void AddStandings(const TraceHead& head, const std::vector<TraceStanding>& standings,
                  TraceExportSummary* summary) {
  const auto count = [&](const auto& what) {
    return static_cast<uint64_t>(std::count_if(standings.begin(), standings.end(), what));
  };
  summary->standings = standings.size();
  summary->waiting =
      count([](const TraceStanding& standing) { return standing.activity == Activity::kWaiting; });
  const uint64_t tasks = count([](const TraceStanding& standing) { return standing.who.is_task; });
  const std::string task = head.tasks_are_threads ? "thread" : "task";
  const std::string many = summary->standings == 1 ? "" : "s";
  summary->standers = tasks == 0                    ? "core" + many
                      : tasks == summary->standings ? task + many
                                                    : "cores and " + task + "s";
}

Status Pump(TraceSource& source, TraceWriter& writer, const TraceExportOptions& options,
            TraceExportSummary* summary) {
  if (Status status = writer.Begin(source.head()); !status.ok()) return status;
  TraceItem item;
  for (uint64_t items = 0;; ++items) {
    if (options.go_on && items % kItemsBetweenQuestions == 0 && !options.go_on(source.progress())) {
      summary->stopped = true;
      return {};
    }
    auto next = source.Next(&item);
    if (!next.ok()) return next.status();
    if (!*next) break;
    const Status status =
        std::visit([&writer](const auto& one) { return writer.Write(one); }, item);
    if (!status.ok()) return status;
  }
  if (Status status = writer.End(source.end()); !status.ok()) return status;
  summary->events = source.end().events;
  summary->losses = source.end().losses;
  AddStandings(source.head(), source.end().standings, summary);
  summary->time = source.head().time;
  if (source.head().counts_clock) summary->counts = CountsWord(source.head());
  return {};
}

// As the umask says: the user asked for them.
Status MakeFoldersAbove(FileSystem& files, const std::string& path) {
  const std::string folder = FolderOf(path);
  if (folder == "." || files.Exists(folder)) return {};
  if (Status status = MakeFoldersAbove(files, folder); !status.ok()) return status;
  return files.MakeFolder(folder, FileSystem::Mode::kNew);
}

// What was there goes only once the new one is whole; it has been checked before anything was read,
// and is again, for reading takes its time.
Status PutInPlace(FileSystem& files, const Format& format, const std::string& partial,
                  const TraceExportOptions& options) {
  if (Status status = CheckTraceExport(files, options); !status.ok()) return status;
  if (format.to_folder != nullptr && files.Exists(options.path)) {
    if (Status status = files.RemoveFolder(options.path); !status.ok()) return status;
  }
  return files.Rename(partial, options.path);
}

// Into PATH.PID.partial, which is `path` afterwards or nothing; into a device (/dev/null) as it is.
Status WriteToPath(FileSystem& files, TraceSource& source, const Format& format,
                   const TraceExportOptions& options, TraceExportSummary* summary) {
  const bool is_device = format.to_folder == nullptr && files.IsDevice(options.path);
  const std::string partial = is_device ? options.path : Partial(options.path);
  std::unique_ptr<File> file;
  std::unique_ptr<TraceWriter> writer;
  if (format.to_folder != nullptr) {
    Status status = MakeFoldersAbove(files, partial);
    if (status.ok()) status = files.MakeFolder(partial, FileSystem::Mode::kNew);
    if (!status.ok()) return status;
    writer = format.to_folder(files, partial);
  } else {
    auto opened =
        files.Open(partial, is_device ? FileSystem::Mode::kCreate : FileSystem::Mode::kNew);
    if (!opened.ok()) return opened.status();
    file = std::move(*opened);
    writer = format.to_file(*file);
  }
  Status status = Pump(source, *writer, options, summary);
  writer.reset();
  file.reset();
  summary->bytes = is_device ? 0 : BytesOf(files, partial);
  if (is_device) return status;
  if (status.ok() && !summary->stopped) status = PutInPlace(files, format, partial, options);
  if (status.ok() && !summary->stopped) return status;
  (void)(format.to_folder != nullptr ? files.RemoveFolder(partial) : files.Remove(partial)).ok();
  return status;
}

}  // namespace

const std::vector<TraceFormatInfo>& TraceFormats() {
  static const std::vector<TraceFormatInfo> infos = [] {
    std::vector<TraceFormatInfo> all;
    for (const Format& format : Formats()) all.push_back(format.info);
    return all;
  }();
  return infos;
}

std::string TraceFormatOfPath(std::string_view path) {
  path = path.substr(0, path.find_last_not_of('/') + 1);
  for (const TraceFormatInfo& info : TraceFormats()) {
    for (const std::string& ending : info.endings)
      if (path.size() > ending.size() && path.ends_with(ending)) return info.name;
  }
  return "";
}

Status CheckTraceExport(FileSystem& files, const TraceExportOptions& options) {
  const Format* const format = FindFormat(options.format);
  if (options.format.empty())
    return Status::Usage(fmt::format(
        "no format given, and the name of -o says none; for example --to text; there are {}",
        FormatNames()));
  if (format == nullptr)
    return Status::Usage(
        fmt::format("--to '{}': there are {}", Printable(options.format), FormatNames()));
  if (options.path.empty()) {
    if (format->info.is_folder)
      return Status::Usage(
          fmt::format("--to {} writes a folder: say which, for example -o trace.{}",
                      format->info.name, format->info.name));
    return {};
  }
  if (!files.Exists(options.path)) return {};
  if (!format->info.is_folder && files.IsDevice(options.path)) return {};
  const bool is_folder = files.IsFolder(options.path);
  if (!options.force)
    return Status::Usage(
        fmt::format("'{}' is there already; --force replaces it", Printable(options.path)));
  if (is_folder != format->info.is_folder)
    return Status::Usage(fmt::format("'{}' is {}, and --to {} writes {}", Printable(options.path),
                                     is_folder ? "a folder" : "no folder", format->info.name,
                                     is_folder ? "a file" : "one"));
  if (is_folder && !IsExported(files, options.path))
    return Status::Usage(
        fmt::format("'{}' has other things in it than an exported trace: it is not replaced",
                    Printable(options.path)));
  return {};
}

Result<TraceExportSummary> ExportTrace(FileSystem& files, TraceSource& source,
                                       const TraceExportOptions& options) {
  if (Status status = CheckTraceExport(files, options); !status.ok()) return status;
  const Format& format = *FindFormat(options.format);
  TraceExportSummary summary;
  Status status;
  if (options.path.empty()) {
    const std::unique_ptr<TraceWriter> writer = format.to_file(*options.standard_output);
    status = Pump(source, *writer, options, &summary);
  } else {
    status = WriteToPath(files, source, format, options, &summary);
  }
  if (!status.ok()) return status;
  return summary;
}

}  // namespace hangscope
