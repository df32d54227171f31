#include "stream/loop_proof.h"

#include <algorithm>
#include <deque>
#include <utility>

namespace hangscope {
namespace {

constexpr uint64_t kChunk = 8u << 20;
constexpr uint64_t kLongestRecord = 64 * 1024;  // a trace line with its register dump
constexpr size_t kLeadIn = 4096;                // steps
constexpr uint64_t kLongestOpenTrap = 4096;     // steps; a handler that takes longer hangs itself

// One core's way through one chunk, oldest step first.
class ChunkWalk {
 public:
  ChunkWalk(const CoreFinding& loop, ProgramCode& code) : loop_(loop), code_(code) {}

  void Take(const Step& step) {
    if (in_trap_) {
      if (!tentative_ || !Inside(step)) {
        ++trap_steps_;
        if (tentative_) NoteLeadIn(step);
        LeaveTrapAt(step);
        previous_ = step;
        return;
      }
      in_trap_ = false;  // no return from a trap came: those steps were the way into the loop
      Outside();
    }
    if (Inside(step)) {
      if (!entered_) entered_ = step;
      lead_in_open_ = false;
      if (step.pc == loop_.loop.front()) ++heads_;
    } else if (!previous_ || !code_.EndOf(*previous_).MayLeadTo(step.pc) ||
               loop_.trap_places.count(step.pc) != 0) {
      in_trap_ = true;
      tentative_ = !previous_;  // the chunk may begin inside a handler
      trap_steps_ = 1;
      if (tentative_) NoteLeadIn(step);
      LeaveTrapAt(step);
    } else {
      Outside();
      NoteLeadIn(step);
    }
    previous_ = step;
  }

  void Finish(bool newest_chunk) {
    if (in_trap_ && (tentative_ || (newest_chunk && trap_steps_ > kLongestOpenTrap))) Outside();
  }

  bool left() const { return left_; }  // a step outside of the loop was seen
  const std::optional<Step>& entered() const { return entered_; }
  uint64_t heads() const { return heads_; }
  // The steps before the entry, oldest first.
  std::vector<Step> lead_in() const { return {lead_in_.begin(), lead_in_.end()}; }
  uint64_t traps() const { return traps_; }

 private:
  bool Inside(const Step& step) const {
    if (loop_.loop_places.count(step.pc) == 0) return false;
    if (loop_.loop_states.empty() || !step.has_values) return true;
    return loop_.loop_states.count(StateOf(step)) != 0;
  }
  void LeaveTrapAt(const Step& step) {
    if (code_.EndOf(step).kind != StepEnd::Kind::kReturnFromTrap) return;
    in_trap_ = false;
    ++traps_;
    if (tentative_) lead_in_.clear();  // it was a handler
  }
  // Steps since the core was last in the loop; a visit to it begins anew.
  void NoteLeadIn(const Step& step) {
    if (!lead_in_open_) lead_in_.clear();
    lead_in_open_ = true;
    lead_in_.push_back(step);
    if (lead_in_.size() > kLeadIn) lead_in_.pop_front();
  }
  void Outside() {
    left_ = true;
    entered_.reset();
    heads_ = traps_ = 0;
  }

  const CoreFinding& loop_;
  ProgramCode& code_;
  std::optional<Step> previous_;
  bool in_trap_ = false;
  bool tentative_ = false;
  uint64_t trap_steps_ = 0;
  bool left_ = false;
  std::optional<Step> entered_;
  std::deque<Step> lead_in_;
  bool lead_in_open_ = false;
  uint64_t heads_ = 0;
  uint64_t traps_ = 0;
};

// Feeds the lines that begin in [from, to) to `sink`, each whole and once: from
// the newline before the chunk to past its end.
void ReadChunk(BlockReader& reader, const StepSourceMaker& make_source, ProgramCode& code,
               uint64_t from, uint64_t to, uint64_t end,
               const std::function<void(uint32_t, const Step&)>& sink) {
  const std::unique_ptr<StepSource> source = make_source([&](uint32_t core, const Step& step) {
    if (step.offset < to) sink(core, step);
  });
  const uint64_t limit = std::min(end, to + kLongestRecord);
  reader.Seek(from == 0 ? 0 : from - 1);
  while (reader.position() < limit) {
    const auto event = reader.Next(std::min<uint64_t>(1u << 20, limit - reader.position()));
    if (event == BlockReader::Event::kEnd) break;
    if (event == BlockReader::Event::kBlock) source->Feed(reader.block(), reader.block_offset());
  }
  source->Flush();
  code.Learn(source->code());
}

// How often the head occurs in one round (an inner loop may pass it many times).
uint64_t HeadsPerRound(const CoreFinding& finding) {
  return static_cast<uint64_t>(
      std::count(finding.loop.begin(), finding.loop.end(), finding.loop.front()));
}

// A part of the ring that was not read.
struct Unread {
  BlockReader& reader;
  const StepSourceMaker& make_source;
  ProgramCode& code;
  uint64_t begin;
  uint64_t end;
  uint64_t most_bytes;
};

// A sample saw a core there, and no later one did: it fell silent soon after that. And a core may
// say something at the start, between samples, and never again.
void SearchForSilent(const Unread& part, const std::vector<const CoreFinding*>& findings,
                     const std::function<bool()>& stop, std::vector<CoreProof>* proofs) {
  std::vector<std::pair<uint64_t, uint64_t>> pieces = {{part.begin, kChunk}};  // from where, bytes
  std::vector<bool> sought(findings.size());
  for (size_t i = 0; i < findings.size(); ++i) {
    const CoreFinding& finding = *findings[i];
    sought[i] = !finding.IsLoop() && !(*proofs)[i].last && finding.steps != 0 &&
                finding.last.offset >= part.begin && finding.last.offset < part.end;
    if (sought[i]) pieces.emplace_back(finding.last.offset, part.most_bytes);
  }
  std::sort(pieces.begin(), pieces.end());
  uint64_t read_to = part.begin;
  for (const auto& [offset, most] : pieces) {
    const uint64_t limit = offset + std::min(most, part.end - offset);
    for (uint64_t from = std::max(offset, read_to); from < limit && !stop(); from = read_to) {
      read_to = from + std::min(kChunk, limit - from);
      ReadChunk(part.reader, part.make_source, part.code, from, read_to, part.end,
                [&](uint32_t core, const Step& step) {
                  if (core >= proofs->size()) proofs->resize(core + 1);
                  CoreProof& proof = (*proofs)[core];
                  const bool is_sought = core >= sought.size() || sought[core];
                  if (!is_sought || (proof.last && proof.last->offset > step.offset)) return;
                  proof.last = step;
                  proof.lead_in.push_back(step);
                  if (proof.lead_in.size() < 2 * kLeadIn) return;
                  proof.lead_in.erase(proof.lead_in.begin(), proof.lead_in.end() - kLeadIn);
                });
    }
  }
}

}  // namespace

std::vector<CoreProof> ProveLoops(BlockReader& reader, const StepSourceMaker& make_source,
                                  const std::vector<const CoreFinding*>& findings,
                                  ProgramCode& code, uint64_t back_to,
                                  const std::function<bool()>& stop, uint64_t search_bytes) {
  const size_t count = findings.size();
  const uint64_t end = reader.end_offset();
  const uint64_t begin = reader.begin_offset();
  std::vector<CoreProof> proofs(count);
  std::vector<bool> open(count);  // its entry is not found yet
  for (size_t i = 0; i < count; ++i) {
    open[i] = findings[i]->IsLoop();
    proofs[i].entered_offset = begin;
    proofs[i].at_least = open[i] && begin > 0;
  }
  uint64_t read_from = end;
  for (uint64_t to = end; to > begin;) {
    if (stop()) {
      for (size_t i = 0; i < count; ++i) {
        if (!open[i]) continue;
        proofs[i].entered_offset = to;
        proofs[i].at_least = true;
      }
      break;
    }
    const uint64_t from = to - std::min(kChunk, to - begin);
    std::vector<ChunkWalk> walks;
    walks.reserve(count);
    std::vector<std::deque<Step>> latest(count);
    for (const CoreFinding* finding : findings) walks.emplace_back(*finding, code);

    ReadChunk(reader, make_source, code, from, to, end, [&](uint32_t core, const Step& step) {
      if (core >= proofs.size()) proofs.resize(core + 1);
      CoreProof& proof = proofs[core];
      if (!proof.last || proof.last->offset < step.offset) {
        proof.last = step;
        if (core < count && !findings[core]->IsLoop()) latest[core].push_back(step);
      }
      if (core < count && open[core]) walks[core].Take(step);
      if (core < count && latest[core].size() > kLeadIn) latest[core].pop_front();
    });
    // What a core did last is in the newest chunk that has anything of it.
    for (size_t i = 0; i < count; ++i) {
      if (!latest[i].empty()) proofs[i].lead_in.assign(latest[i].begin(), latest[i].end());
    }

    bool all_found = true;
    for (size_t i = 0; i < count; ++i) {
      if (!open[i]) continue;
      walks[i].Finish(to == end);
      proofs[i].rounds += walks[i].heads();
      proofs[i].traps += walks[i].traps();
      if (walks[i].left()) {
        open[i] = false;
        proofs[i].at_least = false;
        const std::optional<Step>& entered = walks[i].entered();
        // Without one the chunk after this begins in the loop.
        proofs[i].entered_offset = entered ? entered->offset : to;
        if (entered) proofs[i].entered_at = entered->pc;
        proofs[i].lead_in = walks[i].lead_in();
      } else {
        all_found = false;
      }
    }
    const bool all_heard = std::all_of(proofs.begin(), proofs.end(),
                                       [](const CoreProof& p) { return p.last.has_value(); });
    read_from = from;
    if (all_found && from <= back_to && (all_heard || end - from >= search_bytes)) break;
    to = from;
  }
  SearchForSilent({reader, make_source, code, begin, read_from, search_bytes}, findings, stop,
                  &proofs);
  for (size_t i = 0; i < count; ++i) {
    if (findings[i]->IsLoop()) proofs[i].rounds /= HeadsPerRound(*findings[i]);
  }
  return proofs;
}

}  // namespace hangscope
