#include "watch/core_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <set>
#include <string_view>

#include "base/near_name.h"
#include "base/numbers.h"
#include "base/utf8.h"

namespace hangscope {
namespace {

constexpr size_t kNearDistance = 2;

// "x,y".
std::optional<NodePlace> Pair(std::string_view text) {
  const size_t comma = text.find(',');
  if (comma == std::string_view::npos) return std::nullopt;
  const auto x = ParseWhole<uint32_t>(text.substr(0, comma));
  const auto y = ParseWhole<uint32_t>(text.substr(comma + 1));
  if (!x || !y) return std::nullopt;
  return NodePlace{*x, *y};
}

// At commas and spaces that are not in brackets.
std::vector<std::string_view> Parts(std::string_view word) {
  std::vector<std::string_view> parts;
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i <= word.size(); ++i) {
    const bool end = i == word.size() || (depth == 0 && (word[i] == ',' || word[i] == ' '));
    if (i < word.size() && word[i] == '(') ++depth;
    if (i < word.size() && word[i] == ')') --depth;
    if (!end) continue;
    if (i > begin) parts.push_back(word.substr(begin, i - begin));
    begin = i + 1;
  }
  return parts;
}

class CoreSet {
 public:
  CoreSet(const std::vector<CoreIdentity>& cores, const std::vector<NodePlace>& nodes)
      : cores_(cores),
        nodes_(nodes),
        any_in_use_(std::any_of(cores.begin(), cores.end(),
                                [](const CoreIdentity& c) { return c.in_use; })) {}

  Status AddWord(std::string_view word) {
    const auto pair = Pair(word);
    if (pair && nodes_.size() > 1) return AddNodes(word, *pair, *pair);
    const size_t at = word.find('@');
    if (at != std::string_view::npos && Pair(word.substr(at + 1)))
      return AddOfNodes(word, word.substr(0, at), fmt::format("({})", word.substr(at + 1)));
    for (const std::string_view part : Parts(word)) {
      if (Status status = AddPart(part); !status.ok()) return status;
    }
    return {};
  }
  std::vector<uint32_t> Take() const { return {found_.begin(), found_.end()}; }

 private:
  Status AddPart(std::string_view part) {
    const size_t at = part.find('@');
    if (at != std::string_view::npos && !IsName(part))
      return AddOfNodes(part, part.substr(0, at), part.substr(at + 1));
    if (part.front() == '(') return AddRectangle(part);
    if (part.front() >= '0' && part.front() <= '9') return AddRange(part);
    return AddNamed(part);
  }

  // Those of `who` that are among the cores of `where` as well.
  Status AddOfNodes(std::string_view part, std::string_view who, std::string_view where) {
    if (who.empty() || !where.starts_with('('))
      return Wrong(part, "cores of a node are NAME@(x,y); for example writer@(0,0)");
    CoreSet named(cores_, nodes_);
    CoreSet there(cores_, nodes_);
    if (Status status = named.AddPart(who); !status.ok()) return status;
    if (Status status = there.AddPart(where); !status.ok()) return status;
    std::vector<uint32_t> both;
    std::ranges::set_intersection(named.found_, there.found_, std::back_inserter(both));
    if (both.empty()) return Wrong(part, fmt::format("{} has no core {}", where, Printable(who)));
    found_.insert(both.begin(), both.end());
    return {};
  }

  Status AddRange(std::string_view part) {
    const auto range = ParseRange<uint32_t>(part);
    if (!range) return Wrong(part, "a core's number, or a range of them; for example 1-3");
    const auto [first, last] = *range;
    if (first > last)
      return Wrong(part, fmt::format("a range begins with the smaller number: {}-{}", last, first));
    if (last >= cores_.size())
      return Wrong(part, fmt::format("there are cores 0 to {}", cores_.size() - 1));
    for (uint32_t core = first; core <= last; ++core) found_.insert(core);
    return {};
  }

  // "(x,y)", "(x1,y1)-(x2,y2)".
  Status AddRectangle(std::string_view part) {
    const size_t middle = part.find(")-(");
    const bool one = middle == std::string_view::npos;
    if (part.size() < 5 || part.back() != ')')
      return Wrong(part, "a node is (x,y), a rectangle of them (x1,y1)-(x2,y2)");
    const auto first = Pair(part.substr(1, (one ? part.size() - 1 : middle) - 1));
    const auto last = one ? first : Pair(part.substr(middle + 3, part.size() - middle - 4));
    if (!first || !last) return Wrong(part, "a node is (x,y), a rectangle of them (x1,y1)-(x2,y2)");
    return AddNodes(part, *first, *last);
  }

  Status AddNodes(std::string_view part, const NodePlace& a, const NodePlace& b) {
    const auto inside = [&](const NodePlace& node) {
      return node.x >= std::min(a.x, b.x) && node.x <= std::max(a.x, b.x) &&
             node.y >= std::min(a.y, b.y) && node.y <= std::max(a.y, b.y);
    };
    const auto matches = [&](const CoreIdentity& core) {
      return core.node < nodes_.size() && inside(nodes_[core.node]);
    };
    return AddMatching(matches) ? Status()
                                : Wrong(part, "no core is there; the target has " + NodesText());
  }

  bool IsName(std::string_view part) const {
    return std::ranges::any_of(
        cores_, [&](const CoreIdentity& core) { return core.role == part || core.name == part; });
  }

  Status AddNamed(std::string_view part) {
    const auto matches = [&](const CoreIdentity& core) {
      return part == "all" || core.role == part || core.name == part;
    };
    if (AddMatching(matches)) return {};
    std::vector<std::string> names = {"all"};
    for (const CoreIdentity& core : cores_) {
      if (!core.role.empty()) names.push_back(core.role);
      if (!core.name.empty()) names.push_back(core.name);
    }
    const std::vector<std::string> near = NearNames(part, names, kNearDistance, 1);
    if (!near.empty())
      return Wrong(
          part, fmt::format("no core has this role or name; did you mean {}?", Printable(near[0])));
    return Wrong(part,
                 "no core has this role or name; cores are 0, 1-3, (x,y), NAME@(x,y), all, or the "
                 "name of a role: " +
                     KnownText(names));
  }

  bool AddMatching(const std::function<bool(const CoreIdentity&)>& matches) {
    bool any = false;
    for (uint32_t core = 0; core < cores_.size(); ++core) {
      if ((any_in_use_ && !cores_[core].in_use) || !matches(cores_[core])) continue;
      found_.insert(core);
      any = true;
    }
    return any;
  }

  std::string NodesText() const {
    if (nodes_.size() < 2) return "one node only";
    NodePlace low = nodes_[0];
    NodePlace high = nodes_[0];
    for (const NodePlace& node : nodes_) {
      low = {std::min(low.x, node.x), std::min(low.y, node.y)};
      high = {std::max(high.x, node.x), std::max(high.y, node.y)};
    }
    return fmt::format("nodes from ({},{}) to ({},{})", low.x, low.y, high.x, high.y);
  }

  static std::string KnownText(const std::vector<std::string>& names) {
    constexpr size_t kMost = 8;
    const std::set<std::string> unique(names.begin(), names.end());
    std::string text;
    size_t count = 0;
    for (const std::string& name : unique) {
      if (name == "all") continue;
      if (++count > kMost) return text + ", ...";
      text += (text.empty() ? "" : ", ") + Printable(name);
    }
    return text.empty() ? "there are no such names here" : text;
  }

  static Status Wrong(std::string_view part, const std::string& why) {
    return Status::Usage(fmt::format("cores '{}': {}", Printable(part), why));
  }

  const std::vector<CoreIdentity>& cores_;
  const std::vector<NodePlace>& nodes_;
  const bool any_in_use_;
  std::set<uint32_t> found_;
};

}  // namespace

Result<std::vector<uint32_t>> ParseCoreSet(const std::vector<std::string>& words,
                                           const std::vector<CoreIdentity>& cores,
                                           const std::vector<NodePlace>& nodes) {
  CoreSet set(cores, nodes);
  for (const std::string& word : words) {
    if (Status status = set.AddWord(word); !status.ok()) return status;
  }
  std::vector<uint32_t> found = set.Take();
  if (found.empty())
    return Status::Usage(
        "no cores are named; for example 0, 1-3, (0,0)-(1,1), all, or the name of a role");
  return found;
}

std::string CoreNumbersText(const std::vector<uint32_t>& cores) {
  std::string text;
  for (size_t begin = 0, end = 0; begin < cores.size(); begin = end) {
    for (end = begin + 1; end < cores.size() && cores[end] == cores[end - 1] + 1;) ++end;
    text += text.empty() ? "" : " ";
    text += end - begin == 1 ? fmt::format("{}", cores[begin])
                             : fmt::format("{}-{}", cores[begin], cores[end - 1]);
  }
  return text;
}

}  // namespace hangscope
