#include "ring/history.h"

#include <algorithm>

namespace hangscope {
namespace {

std::string WithoutSlash(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

// "PREFIX.NAME.index" and the like, for all rings whose name begins with `stem`.
std::vector<HistorySource> RingsBeginning(FileSystem& files, const std::string& folder,
                                          const std::string& stem) {
  std::vector<HistorySource> found;
  for (const std::string& name : files.List(folder)) {
    if (!name.starts_with(stem) || !name.ends_with(".index")) continue;
    const std::string ring = name.substr(0, name.size() - 6);
    const std::string stream = ring.substr(stem.size());
    if (stream.find('.') == std::string::npos) found.push_back({stream, folder + "/" + ring});
  }
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.stream > b.stream; });
  return found;  // stdout before stderr
}

}  // namespace

std::vector<HistorySource> FindHistory(FileSystem& files, const std::string& given) {
  const std::string target = WithoutSlash(given);
  if (files.IsFolder(target)) return RingsBeginning(files, target, "");
  if (files.Exists(IndexPath(target))) return {{"", target}};
  auto of_run = RingsBeginning(files, FolderOf(target), NameOf(target) + ".");
  if (!of_run.empty()) return of_run;
  // A file of the ring: P.index, P.current, P.7.
  const size_t dot = target.rfind('.');
  if (dot != std::string::npos && files.Exists(target) &&
      files.Exists(IndexPath(target.substr(0, dot)))) {
    return {{"", target.substr(0, dot)}};
  }
  return {};
}

std::string LastLines(FileSystem& files, const std::string& prefix, size_t lines,
                      uint64_t most_bytes) {
  auto reader = BlockReader::Open(files, prefix);
  if (!reader.ok()) return {};
  const uint64_t end = reader->end_offset();
  reader->Seek(std::max(reader->begin_offset(), end - std::min(end, most_bytes)));
  bool cut = reader->position() > 0;
  std::string text;
  for (auto event = reader->Next(); event != BlockReader::Event::kEnd; event = reader->Next()) {
    if (event == BlockReader::Event::kLoss) {
      text.clear();
      cut = true;
    } else {
      text += reader->block();
    }
  }
  if (cut && text.find('\n') + 1 < text.size()) text.erase(0, text.find('\n') + 1);
  size_t at = text.size();
  for (size_t left = lines + (text.ends_with('\n') ? 1 : 0); left > 0; --left) {
    const size_t newline = at == 0 ? std::string::npos : text.rfind('\n', at - 1);
    if (newline == std::string::npos) return text;
    at = newline;
  }
  return text.substr(at + 1);
}

HistoryPrinter::HistoryPrinter(BlockReader* reader, Write write, AnnounceLoss tell_loss)
    : reader_(reader),
      write_(std::move(write)),
      tell_loss_(std::move(tell_loss)),
      cut_(reader->MayCutLine()) {}

bool HistoryPrinter::Emit(std::string_view bytes) {
  if (cut_) {
    const size_t newline = bytes.find('\n');
    if (newline == std::string_view::npos) return true;
    bytes.remove_prefix(newline + 1);
    cut_ = false;
  }
  const size_t last = bytes.rfind('\n');
  if (last == std::string_view::npos) {
    partial_.append(bytes);
    return true;
  }
  if (!partial_.empty() && !write_(partial_)) return false;
  partial_.assign(bytes.substr(last + 1));
  return write_(bytes.substr(0, last + 1));
}

bool HistoryPrinter::PrintAvailable() {
  for (;;) {
    switch (reader_->Next()) {
      case BlockReader::Event::kEnd:
        return true;
      case BlockReader::Event::kLoss:
        tell_loss_(reader_->loss());
        partial_.clear();
        cut_ = true;
        break;
      case BlockReader::Event::kBlock:
        if (!Emit(reader_->block())) return false;
        break;
    }
  }
}

bool HistoryPrinter::PrintRest() {
  if (!PrintAvailable()) return false;
  const bool more = partial_.empty() || write_(partial_);
  partial_.clear();
  return more;
}

}  // namespace hangscope
