#include "stream/line_matcher.h"

#include <fmt/format.h>

#include "base/build_features.h"
#if HANGSCOPE_HAS_RE2
#include <re2/re2.h>
#endif

#include <algorithm>

namespace hangscope {

#if HANGSCOPE_HAS_RE2

namespace {

RE2::Options Options() {
  RE2::Options options;
  options.set_log_errors(false);
  options.set_never_nl(true);  // [^x] and \s stay within the line
  options.set_never_capture(true);
  return options;
}

std::unique_ptr<RE2> Compiled(const std::string& pattern) {
  return std::make_unique<RE2>("(?m)" + pattern, Options());
}

}  // namespace

struct LinePatterns::Library {
  // Finds lines that some of `members` may match.
  struct Filter {
    std::unique_ptr<RE2> expression;
    std::vector<size_t> members;
  };
  std::vector<std::unique_ptr<RE2>> expressions;
  std::vector<Filter> filters;
};

LinePatterns::LinePatterns() : library_(std::make_unique<Library>()) {}
LinePatterns::~LinePatterns() = default;

Result<std::shared_ptr<const LinePatterns>> LinePatterns::Compile(
    std::string_view option, const std::vector<std::string>& patterns) {
  std::shared_ptr<LinePatterns> compiled(new LinePatterns);
  Library& library = *compiled->library_;
  std::string all;
  Library::Filter together;
  for (size_t i = 0; i < patterns.size(); ++i) {
    library.expressions.push_back(Compiled(patterns[i]));
    const RE2& expression = *library.expressions.back();
    if (!expression.ok() || patterns[i].empty()) {
      const std::string why =
          patterns[i].empty() ? "it would match every line" : RE2(patterns[i], Options()).error();
      return Status::Usage(fmt::format("{} '{}': {}; for example {} 'panic|assert(ion)? failed'",
                                       option, patterns[i], why, option));
    }
    all += (i == 0 ? "(?:" : "|(?:") + patterns[i] + ")";
    together.members.push_back(i);
  }
  together.expression = Compiled("(?:" + all + ")");
  if (together.expression->ok()) {
    library.filters.push_back(std::move(together));
    return std::shared_ptr<const LinePatterns>(compiled);
  }
  // Too large together: one pass each.
  for (size_t i = 0; i < patterns.size(); ++i)
    library.filters.push_back({Compiled(patterns[i]), {i}});
  return std::shared_ptr<const LinePatterns>(compiled);
}

void LinePatterns::Search(std::string_view text,
                          const std::function<void(size_t, size_t, size_t)>& hit) const {
  const re2::StringPiece whole(text.data(), text.size());
  for (const Library::Filter& filter : library_->filters) {
    size_t at = 0;
    re2::StringPiece match;
    while (at < text.size() &&
           filter.expression->Match(whole, at, text.size(), RE2::UNANCHORED, &match, 1)) {
      const auto found = static_cast<size_t>(match.data() - text.data());
      if (found >= text.size()) break;  // the empty end behind the last newline is no line
      const size_t before = found == 0 ? std::string_view::npos : text.rfind('\n', found - 1);
      const size_t begin = before == std::string_view::npos ? 0 : before + 1;
      const size_t end = std::min(text.find('\n', found), text.size());
      const re2::StringPiece line(text.data() + begin, end - begin);
      for (const size_t member : filter.members) {
        const bool alone = filter.members.size() == 1;
        if (alone ||
            library_->expressions[member]->Match(line, 0, line.size(), RE2::UNANCHORED, nullptr, 0))
          hit(member, begin, end);
      }
      at = end + 1;
    }
  }
}

#else

struct LinePatterns::Library {};

LinePatterns::LinePatterns() = default;
LinePatterns::~LinePatterns() = default;

Result<std::shared_ptr<const LinePatterns>> LinePatterns::Compile(std::string_view option,
                                                                  const std::vector<std::string>&) {
  return Status::Usage(fmt::format(
      "{} needs RE2, which this hangscope was built without (HANGSCOPE_WITH_RE2)", option));
}

void LinePatterns::Search(std::string_view,
                          const std::function<void(size_t, size_t, size_t)>&) const {}

#endif

namespace {

// An open line that grows beyond this is searched as it is and given up.
constexpr size_t kLongestLine = 64 * 1024;

}  // namespace

void LineMatcher::Search(std::string_view text, uint64_t offset) {
  patterns_->Search(text, [&](size_t pattern, size_t begin, size_t end) {
    LineHit hit{pattern, offset + begin, offset + end + (end < text.size() ? 1 : 0),
                std::string(text.substr(begin, end - begin))};
    const bool told =
        hit.begin_offset == told_offset_ && std::count(told_.begin(), told_.end(), pattern) != 0;
    if (!told) hit_(hit);
  });
}

void LineMatcher::Keep(std::string_view open, uint64_t offset) {
  open_.assign(open);
  open_offset_ = offset;
  if (open_.size() < kLongestLine) return;
  Search(open_, open_offset_);
  Cut();
}

void LineMatcher::Add(std::string_view bytes, uint64_t offset) {
  const size_t last = bytes.rfind('\n');
  if (last == std::string_view::npos) {
    if (open_.empty()) return Keep(bytes, offset);
    open_.append(bytes);
    if (open_.size() >= kLongestLine) Keep(std::string(open_), open_offset_);
    return;
  }
  if (!open_.empty()) {
    const size_t first = bytes.find('\n');
    open_.append(bytes.substr(0, first + 1));
    Search(open_, open_offset_);
    bytes.remove_prefix(first + 1);
    offset += first + 1;
  }
  const size_t whole = bytes.rfind('\n') + 1;  // 0 where there is none
  if (whole > 0) Search(bytes.substr(0, whole), offset);
  Cut();
  Keep(bytes.substr(whole), offset + whole);
}

void LineMatcher::MatchOpenLine() {
  if (open_.empty()) return;
  std::vector<size_t> matched;
  const uint64_t begin = open_offset_;
  patterns_->Search(open_, [&](size_t pattern, size_t, size_t) { matched.push_back(pattern); });
  Search(open_, open_offset_);
  if (told_offset_ != begin) told_.clear();
  told_.insert(told_.end(), matched.begin(), matched.end());
  told_offset_ = begin;
}

void LineMatcher::Cut() {
  open_.clear();
  told_.clear();
}

}  // namespace hangscope
