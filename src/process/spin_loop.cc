#include "process/spin_loop.h"

#include <algorithm>
#include <unordered_set>

#include "base/build_features.h"
#include "proc/steps/step_calls.h"
#include "process/steps/step_examiner.h"

namespace hangscope {
namespace {

#if HANGSCOPE_HAS_CAPSTONE

constexpr size_t kMostWrites = 256;  // more, and the loop is not understood
constexpr size_t kMostReads = 65536;

// Ranges, each once.
class RangeSet {
 public:
  explicit RangeSet(std::vector<StepRange>* ranges) : ranges_(ranges) {}
  void Add(uint64_t address, uint64_t bytes, size_t most) {
    constexpr uint64_t kLongest = 1 << 16;
    const bool is_new = seen_.insert(address * kLongest + bytes % kLongest).second;
    if (is_new && ranges_->size() < most) ranges_->push_back({address, bytes});
    is_full_ = is_full_ || (is_new && ranges_->size() >= most);
  }
  bool is_full() const { return is_full_; }

 private:
  std::vector<StepRange>* ranges_;
  std::unordered_set<uint64_t> seen_;
  bool is_full_ = false;
};

#endif

}  // namespace

LoopAccess ExamineSteps(std::span<const StepState> states, const ReadMemory& read) {
  LoopAccess access;
#if HANGSCOPE_HAS_CAPSTONE
  StepExaminer examiner(read);
  RangeSet reads(&access.reads);
  RangeSet writes(&access.writes);
  for (const StepState& state : states) {
    const StepEffect effect = examiner.EffectOf(state);
    access.understood = access.understood && effect.understood;
    access.yields = access.yields || effect.use == CallUse::kYields;
    access.calls_kernel = access.calls_kernel || effect.use == CallUse::kNever;
    access.reads_clock = access.reads_clock || effect.reads_clock;
    access.uses_vectors = access.uses_vectors || effect.uses_vectors;
    if (effect.size == 0) continue;
    access.begin = access.begin == 0 ? state.pc : std::min(access.begin, state.pc);
    access.end = std::max(access.end, state.pc + effect.size);
    for (const StepRange& range : effect.reads) reads.Add(range.address, range.bytes, kMostReads);
    for (const StepRange& range : effect.writes)
      writes.Add(range.address, range.bytes, kMostWrites);
  }
  access.understood = access.understood && !writes.is_full();
#else
  (void)read;
  access.understood = false;
  for (const StepState& state : states) {
    access.begin = access.begin == 0 ? state.pc : std::min(access.begin, state.pc);
    access.end = std::max(access.end, state.pc + 4);
  }
#endif
  return access;
}

namespace {

constexpr uint64_t kWord = 8;
constexpr size_t kMostWords = 8192;
constexpr size_t kMostProgressions = 4096;
constexpr size_t kMostStores = 200'000;
constexpr int kOften = 8;

uint64_t HashOf(uint64_t word, uint64_t value) {
  uint64_t hash = (word ^ (value << 32 | value >> 32)) * 0x9e3779b97f4a7c15u;
  hash = (hash ^ (hash >> 29) ^ value) * 0xbf58476d1ce4e5b9u;
  return hash ^ (hash >> 32);
}

}  // namespace

LoopMemory::LoopMemory(const ReadMemory& read)
    : read_(read), examiner_(std::make_unique<StepExaminer>(read)) {}

LoopMemory::~LoopMemory() = default;

void LoopMemory::Progression::Add(uint64_t value) {
  const uint64_t its_step = value - last;
  length = its_step == step && step != 0 ? length + 1 : 0;
  step = its_step;
  last = value;
}

// What the word holds, whoever has written it.
void LoopMemory::Know(uint64_t word, uint64_t value) {
  const auto [at, is_new] = words_.emplace(word, std::pair(value, value));
  auto& [first, now] = at->second;
  if (is_new || now == value) return;
  contents_ += HashOf(word, value) - HashOf(word, now);
  now = value;
}

void LoopMemory::Touch(const StepRange& range) {
  const uint64_t begin = range.address / kWord * kWord;
  const uint64_t count = (range.address + range.bytes - begin + kWord - 1) / kWord;
  std::vector<uint64_t> values(count);
  if (!read_(begin, values.data(), count * kWord)) return;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t word = begin + i * kWord;
    const auto known = words_.find(word);
    if (known == words_.end() && words_.size() >= kMostWords) {
      is_understood_ = false;
      return;
    }
    Know(word, values[i]);
  }
}

void LoopMemory::Load(const StepRange& range) {
  constexpr uint64_t kPart = 4;
  for (uint64_t part = range.address / kPart * kPart; part < range.address + range.bytes;
       part += kPart) {
    uint32_t value = 0;
    if (read_(part, &value, sizeof value)) loads_[part] = value;
  }
}

std::optional<uint32_t> LoopMemory::Loaded(uint64_t part) const {
  const auto at = loads_.find(part);
  return at == loads_.end() ? std::nullopt : std::optional(at->second);
}

void LoopMemory::Before(const StepState& state) {
  touched_.clear();
#if HANGSCOPE_HAS_CAPSTONE
  if (is_counting_ && counting_.second < kCountsMemory &&
      (progressions_.size() < kMostProgressions || progressions_.count(counting_) != 0))
    progressions_[counting_].Add(state.general[counting_.second]);
  is_counting_ = false;
  if (!is_understood_) return;
  StepEffect effect = examiner_->EffectOf(state);
  is_understood_ = effect.understood;
  uses_vectors_ = uses_vectors_ || effect.uses_vectors;
  is_counting_ = effect.counts.has_value();
  counting_ = {state.pc, effect.counts.value_or(0)};
  if (keeps_loads_) {
    for (const StepRange& range : effect.reads) Load(range);
  }
  touched_ = std::move(effect.writes);
  for (const StepRange& range : touched_) Touch(range);
#else
  (void)state;
  is_understood_ = false;
#endif
}

uint64_t LoopMemory::After() {
  for (const StepRange& range : touched_) {
    const uint64_t begin = range.address / kWord * kWord;
    const uint64_t count = (range.address + range.bytes - begin + kWord - 1) / kWord;
    std::vector<uint64_t> before(count);
    for (uint64_t i = 0; i < count; ++i) {
      const auto known = words_.find(begin + i * kWord);
      if (known != words_.end()) before[i] = known->second.second;
    }
    Touch(range);
    for (uint64_t i = 0; i < count; ++i) {
      const auto known = words_.find(begin + i * kWord);
      if (known == words_.end()) continue;
      if (before[i] != known->second.second) changed_.insert(begin + i * kWord);
      if (stores_.size() < kMostStores)
        stores_.push_back({step_, begin + i * kWord, before[i], known->second.second});
      else
        is_understood_ = false;
    }
  }
#if HANGSCOPE_HAS_CAPSTONE
  if (is_counting_ && counting_.second == kCountsMemory && !touched_.empty()) {
    const auto known = words_.find(touched_[0].address / kWord * kWord);
    if (known != words_.end() &&
        (progressions_.size() < kMostProgressions || progressions_.count(counting_) != 0)) {
      progressions_[counting_].Add(known->second.second);
      progressions_[counting_].word = known->first;
    }
  }
#endif
  ++step_;
  return is_understood_ ? contents_ : 0;
}

bool LoopMemory::Counts() const {
  return std::any_of(progressions_.begin(), progressions_.end(),
                     [](const auto& each) { return each.second.length >= kOften; });
}

bool LoopMemory::CountsIn(const LoopSlice& slice) const {
  const auto is_polled = [&](uint64_t word) {
    return std::any_of(slice.polls.begin(), slice.polls.end(),
                       [&](uint64_t part) { return part / kWord * kWord == word; });
  };
  return std::any_of(progressions_.begin(), progressions_.end(), [&](const auto& each) {
    const size_t where = each.first.second;
    return each.second.length >= kOften &&
           (where == kCountsMemory
                ? is_polled(each.second.word)
                : std::count(slice.registers.begin(), slice.registers.end(), where) != 0);
  });
}

std::vector<uint64_t> LoopMemory::TakeChanged() {
  std::vector<uint64_t> changed(changed_.begin(), changed_.end());
  changed_.clear();
  return changed;
}

}  // namespace hangscope
