#include "watch/paused_cores.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/units.h"
#include "base/utf8.h"
#include "scope/target_control.h"
#include "watch/core_set.h"

namespace hangscope {
namespace {

constexpr size_t kMostPaused = 8;  // told of in one line

// As a shell takes it for one word.
std::string ShellWord(const std::string& text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%+,-./:=@_";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

const char* ByWhom(const SubjectState& subject) {
  return subject.sample.paused == PausedState::kByHost ? "from outside" : "by its own code";
}

// ", kernel 2 compute, last waypoint LCKD", as far as it says.
std::string WhereIt(const SubjectState& subject, const WatchScene& scene) {
  std::string text;
  if (subject.sample.kernel != 0)
    text += ", kernel " + scene.NamesOf(subject.subject).ShortKernel(subject.sample.kernel);
  const std::string waypoint = WatchNames::Waypoint(subject.sample.waypoint);
  if (!waypoint.empty()) text += ", last waypoint " + waypoint;
  return text;
}

std::string Joined(std::vector<std::string> texts, const char* separator) {
  const size_t all = texts.size();
  texts.resize(std::min(all, kMostPaused));
  std::string text = fmt::format("{}", fmt::join(texts, separator));
  return texts.size() < all ? text + fmt::format("{}and {} more", separator, all - texts.size())
                            : text;
}

}  // namespace

PausedCores::News PausedCores::See(const std::vector<SubjectState>& subjects, int life,
                                   TimeNs now) {
  if (life != life_) paused_.clear();
  life_ = life;
  News news;
  for (const SubjectState& subject : subjects) {
    if (subject.subject.kind != SubjectId::Kind::kCore) break;  // cores come first
    const CoreSample& sample = subject.sample;
    const bool is_known = !sample.corrupt && !sample.unread;
    const auto at = paused_.find(subject.subject);
    if (sample.paused == PausedState::kNot || !is_known) {
      if (at == paused_.end()) continue;
      if (is_known) {
        news.continued.push_back(subject.subject);
        news.longest = std::max(news.longest, now - at->second.since);
        news.longest_at_least = news.longest_at_least || at->second.since_at_least;
      }
      paused_.erase(at);
    } else if (at == paused_.end()) {
      paused_[subject.subject] = {now, subject.since_at_least, sample.resumes, false};
      news.paused.push_back(subject.subject);
    } else if (at->second.resumes != sample.resumes) {
      // One that was just resumed may not have left yet.
      if (std::exchange(at->second.was_resumed, true)) {
        at->second = {now, false, sample.resumes, false};
        news.paused.push_back(subject.subject);
      }
    }
  }
  return news;
}

std::string PausedText(const std::vector<SubjectId>& cores, const WatchScene& scene) {
  std::vector<std::string> texts;
  for (const SubjectId& core : cores) {
    const SubjectState* const subject = scene.Find(core);
    if (subject == nullptr) continue;
    texts.push_back(SubjectName(core, scene) + (cores.size() == 1 ? " is paused " : " ") +
                    ByWhom(*subject) + WhereIt(*subject, scene));
  }
  if (texts.size() == 1) return texts[0];
  return fmt::format("{} cores are paused: {}", texts.size(), Joined(texts, "; "));
}

std::string ContinuedText(const PausedCores::News& news, const WatchScene& scene) {
  std::vector<std::string> names;
  for (const SubjectId& core : news.continued) names.push_back(SubjectName(core, scene));
  const std::string longest = (news.longest_at_least ? ">" : "") + FormatElapsed(news.longest);
  if (names.size() == 1) return fmt::format("{} goes on, paused for {}", names[0], longest);
  return fmt::format("{} cores go on, paused for {} at most: {}", names.size(), longest,
                     Joined(names, ", "));
}

std::string ResumeCommand(Watchable& target, const std::vector<SubjectId>& cores,
                          const SourceOf& source_of) {
  std::vector<std::pair<LiveScope*, std::vector<uint32_t>>> memories;
  for (const SubjectId& core : cores) {
    const auto [scope, there] = target.HomeOf(core);
    if (scope == nullptr) continue;
    auto at = std::ranges::find(memories, scope, [](const auto& memory) { return memory.first; });
    if (at == memories.end()) at = memories.insert(at, {scope, {}});
    at->second.push_back(there.index);
  }
  std::string text;
  for (const auto& [scope, numbers] : memories) {
    const ScopeSource* const source = source_of(*scope);
    if (source == nullptr) continue;
    text += text.empty() ? "" : "; ";
    text += "hangscope set resume " + ShellWord(source->target);
    if (!source->elf.empty()) text += " --elf " + ShellWord(source->elf);
    if (source->intrusive) text += " --intrusive";
    text += " " + CoreNumbersText(numbers);
  }
  return Printable(text);
}

Result<std::string> ResumeAllOf(Watchable& target, const WatchScene& scene) {
  std::string resumed;
  for (const SubjectState& subject : target.watcher().subjects()) {
    if (subject.subject.kind != SubjectId::Kind::kCore) continue;
    if (subject.sample.paused == PausedState::kNot && !subject.sample.pause_asked) continue;
    const auto [scope, core] = target.HomeOf(subject.subject);
    if (scope == nullptr) continue;
    if (Status status = TargetControl(scope->reader()).Resume(core.index); !status.ok())
      return status;
    resumed += (resumed.empty() ? "" : ", ") + SubjectName(subject.subject, scene);
  }
  return resumed;
}

}  // namespace hangscope
