#include "target/exec_target.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/numbers.h"
#include "base/units.h"
#include "base/utf8.h"
#include "target/helper_process.h"

namespace hangscope {
namespace {

constexpr size_t kLongestLine = 4096;
constexpr size_t kMostRanges = 1024;
constexpr size_t kMostShown = 100;
constexpr std::string_view kGreeting = "hangscope-probe ";

// Up to the next blank, which is taken, too.
std::string_view ScanWord(std::string_view* text) {
  const size_t end = std::min(text->find(' '), text->size());
  const std::string_view word = text->substr(0, end);
  text->remove_prefix(std::min(end + 1, text->size()));
  return word;
}

// Of the protocol: 31 or 0x1f, with a small x.
std::optional<uint64_t> Number(std::string_view text) {
  return text.starts_with("0x") ? ParseHex<uint64_t>(text) : ParseWhole<uint64_t>(text);
}

}  // namespace

ExecTarget::ExecTarget(std::string name, std::unique_ptr<ByteChannel> channel, TimeNs patience,
                       std::function<std::string()> last_words)
    : name_(std::move(name)),
      channel_(std::move(channel)),
      reader_(*channel_),
      patience_(patience),
      last_words_(std::move(last_words)) {}

Result<std::unique_ptr<Target>> ExecTarget::Open(const std::string& command, TimeNs patience) {
  auto helper = HelperProcess::Start(command);
  if (!helper.ok()) return helper.status();
  HelperProcess* const process = helper->get();
  return Open(fmt::format("helper '{}'", Printable(command, kMostShown)), std::move(*helper),
              patience, [process] { return process->LastWords(); });
}

Result<std::unique_ptr<Target>> ExecTarget::Open(std::string name,
                                                 std::unique_ptr<ByteChannel> channel,
                                                 TimeNs patience,
                                                 std::function<std::string()> last_words) {
  std::unique_ptr<ExecTarget> target(
      new ExecTarget(std::move(name), std::move(channel), patience, std::move(last_words)));
  if (Status status = target->Greet(); !status.ok()) return status;
  return std::unique_ptr<Target>(std::move(target));
}

TimeNs ExecTarget::Deadline() const {
  SystemClock clock;
  return clock.Monotonic() + patience_;
}

Status ExecTarget::GiveUp(Status why) {
  // The same kind with more to say.
  const std::string said = why.message() + last_words_();
  switch (why.code()) {
    case Status::Code::kCorrupt:
      warning_ = Status::Corrupt(said);
      break;
    case Status::Code::kUsage:
      warning_ = Status::Usage(said);
      break;
    default:
      warning_ = Status::Io(said);
      break;
  }
  return warning_;
}

Status ExecTarget::GiveUp(ByteChannel::Outcome outcome) {
  if (outcome == ByteChannel::Outcome::kLate) {
    return GiveUp(Status::Io(fmt::format("{} did not answer within {}", name_,
                                         FormatElapsed(greeted_ ? patience_ : 2 * patience_))));
  }
  return GiveUp(Status::Io(fmt::format("{} has ended its output", name_)));
}

Status ExecTarget::Greet() {
  const TimeNs deadline = Deadline() + patience_;  // twice
  auto first = ReceiveLine(deadline);
  if (!first.ok()) return first.status();
  if (!first->starts_with(kGreeting)) {
    return GiveUp(Status::Corrupt(fmt::format("{} begins with '{}' and not with '{}1'", name_,
                                              Printable(*first, kMostShown), kGreeting)));
  }
  if (first->substr(kGreeting.size()) != "1") {
    return GiveUp(Status::Corrupt(
        fmt::format("{} speaks version '{}' of the protocol; this hangscope knows 1", name_,
                    Printable(first->substr(kGreeting.size()), kMostShown))));
  }
  for (;;) {
    auto line = ReceiveLine(deadline);
    if (!line.ok()) return line.status();
    if (*line == "ready") break;
    if (Status status = ParseGreeting(*line); !status.ok()) return GiveUp(status);
  }
  greeted_ = true;
  has_ranges_ = !ranges_.empty();
  if (!has_ranges_) ranges_ = {{0, UINT64_MAX}};
  return {};
}

Status ExecTarget::ParseGreeting(std::string_view line) {
  std::string_view rest = line;
  const std::string_view word = ScanWord(&rest);
  const auto first = Number(ScanWord(&rest));
  if (word == "range" && first) {
    if (const auto size = Number(ScanWord(&rest)); size && rest.empty())
      return AddRange(*first, *size);
  } else if (word == "scope" && first && rest.empty()) {
    scope_address_ = first;
    return {};
  } else if (word == "most" && first && rest.empty() && *first > 0) {
    most_at_once_ = std::min(*first, most_at_once_);
    return {};
  }
  return Status::Corrupt(fmt::format("{} greets with '{}', which is no range, scope, most or ready",
                                     name_, Printable(line, kMostShown)));
}

Status ExecTarget::AddRange(uint64_t begin, uint64_t size_bytes) {
  const uint64_t end_before =
      ranges_.empty() ? 0 : ranges_.back().begin + ranges_.back().size_bytes;
  if (size_bytes == 0 || size_bytes > UINT64_MAX - begin || begin < end_before ||
      ranges_.size() == kMostRanges) {
    return Status::Corrupt(
        fmt::format("{} has a range of {} bytes at {:#x}: ranges are in ascending order, {} at "
                    "most, and end below 2^64",
                    name_, size_bytes, begin, kMostRanges));
  }
  ranges_.push_back({begin, size_bytes});
  return {};
}

Status ExecTarget::Send(std::string_view request, TimeNs deadline) {
  if (!warning_.ok()) return warning_;
  if (reader_.left() > 0)
    return GiveUp(Status::Corrupt(fmt::format("{} says more than it was asked", name_)));
  const auto outcome = channel_->Send(request, deadline);
  return outcome == ByteChannel::Outcome::kDone ? Status() : GiveUp(outcome);
}

Result<std::string> ExecTarget::ReceiveLine(TimeNs deadline) {
  std::string line;
  for (char c = '\0';;) {
    if (const auto outcome = reader_.Next(&c, deadline); outcome != ByteChannel::Outcome::kDone)
      return GiveUp(outcome);
    if (c == '\n') break;
    line.push_back(c);
    if (line.size() > kLongestLine) {
      return GiveUp(Status::Corrupt(fmt::format("{} answers with a line without an end, '{}'",
                                                name_, Printable(line, kMostShown))));
    }
  }
  if (line.ends_with('\r')) line.pop_back();
  return line;
}

Status ExecTarget::ReceiveBytes(std::span<char> bytes, TimeNs deadline) {
  for (char& byte : bytes) {
    if (const auto outcome = reader_.Next(&byte, deadline); outcome != ByteChannel::Outcome::kDone)
      return GiveUp(outcome);
  }
  return {};
}

Result<uint64_t> ExecTarget::ReceiveOk(std::string_view request, uint64_t wanted, TimeNs deadline) {
  auto line = ReceiveLine(deadline);
  if (!line.ok()) return line.status();
  std::string_view rest = *line;
  const std::string_view word = ScanWord(&rest);
  if (word == "error")
    return Status::NotFound(
        fmt::format("{} cannot {}: {}", name_, request, Printable(rest, 2 * kMostShown)));
  if (word == "ok" && Number(rest) == wanted) return wanted;
  return GiveUp(
      Status::Corrupt(fmt::format("{} answers '{}' to '{}', where 'ok {}' or 'error ...' was due",
                                  name_, Printable(*line, kMostShown), request, wanted)));
}

Status ExecTarget::Read(uint64_t address, std::span<char> bytes) {
  if (Status status = CheckRange(address, bytes.size()); !status.ok()) return status;
  while (!bytes.empty()) {
    const size_t count = static_cast<size_t>(std::min<uint64_t>(bytes.size(), most_at_once_));
    const std::string request = fmt::format("read {:#x} {}", address, count);
    const TimeNs deadline = Deadline();
    if (Status status = Send(request + "\n", deadline); !status.ok()) return status;
    if (auto size = ReceiveOk(request, count, deadline); !size.ok()) return size.status();
    if (Status status = ReceiveBytes(bytes.first(count), deadline); !status.ok()) return status;
    bytes = bytes.subspan(count);
    address += count;
  }
  return {};
}

Status ExecTarget::Write(uint64_t address, std::string_view bytes) {
  if (Status status = CheckRange(address, bytes.size()); !status.ok()) return status;
  while (!bytes.empty()) {
    const std::string_view part = bytes.substr(0, static_cast<size_t>(most_at_once_));
    const std::string request = fmt::format("write {:#x} {}", address, part.size());
    const TimeNs deadline = Deadline();
    if (Status status = Send(fmt::format("{}\n{}", request, part), deadline); !status.ok())
      return status;
    if (auto size = ReceiveOk(request, 0, deadline); !size.ok()) return size.status();
    bytes.remove_prefix(part.size());
    address += part.size();
  }
  return {};
}

// A helper that went wrong does not say that its target is dead.
Life ExecTarget::life() {
  const TimeNs deadline = Deadline();
  if (!Send("alive\n", deadline).ok()) return Life::kUnknown;
  auto line = ReceiveLine(deadline);
  if (!line.ok()) return Life::kUnknown;
  if (*line == "live") return Life::kLive;
  if (*line == "dead") return Life::kDead;
  if (*line != "unknown")
    (void)GiveUp(Status::Corrupt(
                     fmt::format("{} answers '{}' to 'alive', where live, dead or unknown was due",
                                 name_, Printable(*line, kMostShown))))
        .ok();
  return Life::kUnknown;
}

}  // namespace hangscope
