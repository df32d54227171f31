// The pieces that run for every byte or every sample, one at a time:
//
//   parse_line/FORMAT        ParseTraceLine, line after line; FORMAT: qemu (-d exec,nochain),
//                            spike (-l --log-commits), gvsoc (--trace=insn, long), plain
//                            (as long as qemu's, of no trace)
//   step_reader/FORMAT       StepReader: bytes in pieces of 256 KiB to steps, as proofs do
//   step_reader_learn/FORMAT the same collecting what the trace says about the code, as samples do
//   log_reader/WHAT          LogReader: the lines of format plain to steps; WHAT: normalized, rule
//   ring_append/SIZE         RingStore::Append of SIZE bytes to a real ring of 64 MiB that
//                            is full already, in /dev/shm where there is one, else in /tmp
//   ring_append_disk/SIZE    the same in the working folder
//   match_lines/WHAT         LineMatcher on QEMU's trace in pieces of 256 KiB; no line matches.
//                            WHAT: word, words (three of them, in any case), class (a set, then a
//                            number)
//   find_period/WHAT         FindPeriod on 100,000 tokens; WHAT: loop7, loop5000, random
//
// bytes_per_second and items_per_second (lines, steps, appends, tokens) are of CPU
// time for all but the rings, where they are of wall time.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file_system.h"
#include "ring/ring_store.h"
#include "stream/line_matcher.h"
#include "stream/log_reader.h"
#include "stream/loop_finder.h"
#include "stream/step_reader.h"
#include "stream/trace_line.h"
#include "trace_text.h"

namespace hangscope::bench {
namespace {

void Count(benchmark::State& state, size_t bytes, size_t items) {
  state.SetBytesProcessed(static_cast<int64_t>(bytes) * state.iterations());
  state.SetItemsProcessed(static_cast<int64_t>(items) * state.iterations());
}

std::vector<std::string_view> Lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  return lines;
}

void ParseLine(benchmark::State& state, TextKind kind) {
  const TraceText text(kind);
  const std::string_view bytes = text.all().substr(0, 16 * kChunkBytes);
  const std::vector<std::string_view> lines = Lines(bytes);
  const bool is_trace = kind != TextKind::kPlain;
  for (auto _ : state) {
    for (const std::string_view line : lines) {
      const TraceLine parsed = ParseTraceLine(line);
      if ((parsed.kind != TraceLine::Kind::kOther) != is_trace)
        state.SkipWithError("not recognised");
      benchmark::DoNotOptimize(parsed);
    }
  }
  Count(state, bytes.size(), lines.size());
}

void ReadSteps(benchmark::State& state, TextKind kind, bool learn_code) {
  constexpr size_t kPiece = 256 * 1024;
  const TraceText text(kind);
  size_t steps = 0;
  for (auto _ : state) {
    steps = 0;
    CoreNames cores;
    StepReader reader(&cores, learn_code ? StepReader::Learn::kAll : StepReader::Learn::kListings,
                      [&](uint32_t, const Step&) { ++steps; });
    for (size_t at = 0; at < text.all().size(); at += kPiece)
      reader.Feed(text.all().substr(at, kPiece), at);
    reader.Flush();
  }
  if (steps == 0) state.SkipWithError("no steps");
  Count(state, text.all().size(), steps);
}

void MatchLines(benchmark::State& state, const std::string& pattern) {
  constexpr size_t kPiece = 256 * 1024;
  const TraceText text(TextKind::kQemu);
  auto patterns = LinePatterns::Compile("pattern", {pattern});
  size_t hits = 0;
  for (auto _ : state) {
    LineMatcher matcher(*patterns, [&](const LineHit&) { ++hits; });
    for (size_t at = 0; at < text.all().size(); at += kPiece)
      matcher.Add(text.all().substr(at, kPiece), at);
  }
  if (hits != 0) state.SkipWithError("a line matches");
  state.SetBytesProcessed(static_cast<int64_t>(text.all().size()) * state.iterations());
}

void ReadLog(benchmark::State& state, bool by_rule) {
  const TraceText text(TextKind::kPlain);
  auto rule = PlaceRule::Compile(R"(\[\w+/(?P<place>\w+)/)");
  size_t steps = 0;
  for (auto _ : state) {
    steps = 0;
    CoreNames cores;
    LogReader reader(&cores, by_rule ? rule->get() : nullptr, nullptr, "stdin",
                     [&](uint32_t, const Step&) { ++steps; });
    reader.Feed(text.all(), 0);
  }
  if (steps == 0) state.SkipWithError("no steps");
  Count(state, text.all().size(), steps);
}

// A ring in a folder of its own that is removed at the end.
class Ring {
 public:
  explicit Ring(const std::string& where) {
    std::string folder = where + "/hangscope-bench-XXXXXX";  // mkdtemp fills in the X's
    if (mkdtemp(folder.data()) == nullptr) return;
    folder_ = folder;
    auto geometry = PlanRing("64M", "1", sizeof "ring");
    auto store =
        RingStore::Create(PosixFileSystem(), clock_, folder_ + "/ring", "stdin", *geometry, 1);
    if (!store.ok()) return;
    store_ = std::move(*store);
    const std::string piece(1 << 20, 'x');
    for (int i = 0; i < 65; ++i) store_->Append(piece, clock_.Monotonic());
  }
  ~Ring() {
    store_.reset();
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }
  RingStore* store() { return store_.get(); }
  Clock& clock() { return clock_; }

 private:
  SystemClock clock_;
  std::string folder_;
  std::unique_ptr<RingStore> store_;
};

void AppendTo(benchmark::State& state, const std::string& where) {
  Ring ring(where);
  if (ring.store() == nullptr) {
    state.SkipWithError("cannot make a ring");
    return;
  }
  const std::string chunk(static_cast<size_t>(state.range(0)), 'x');
  for (auto _ : state) ring.store()->Append(chunk, ring.clock().Monotonic());
  if (ring.store()->fill().lost_bytes != 0) state.SkipWithError("the disk is full");
  Count(state, chunk.size(), 1);
}

std::vector<uint64_t> Tokens(size_t period) {
  std::mt19937_64 random(1);
  std::vector<uint64_t> tokens(100'000);
  for (size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = period != 0 && i >= period ? tokens[i - period] : random() % 700;
  }
  return tokens;
}

void Period(benchmark::State& state, size_t period) {
  const std::vector<uint64_t> tokens = Tokens(period);
  for (auto _ : state) {
    const auto found = FindPeriod(tokens);
    if (period != 0 && (!found || found->length != period)) state.SkipWithError("not found");
    benchmark::DoNotOptimize(found);
  }
  state.SetItemsProcessed(static_cast<int64_t>(tokens.size()) * state.iterations());
}

void Register() {
  constexpr std::pair<const char*, TextKind> kFormats[] = {
      {"qemu", TextKind::kQemu}, {"spike", TextKind::kSpike}, {"gvsoc", TextKind::kGvsoc}};
  for (const auto& [name, kind] : kFormats) {
    benchmark::RegisterBenchmark(("parse_line/" + std::string(name)).c_str(), ParseLine, kind);
  }
  benchmark::RegisterBenchmark("parse_line/plain", ParseLine, TextKind::kPlain);
  for (const bool learn : {false, true}) {
    for (const auto& [name, kind] : kFormats) {
      const std::string title = std::string(learn ? "step_reader_learn/" : "step_reader/") + name;
      benchmark::RegisterBenchmark(title.c_str(), ReadSteps, kind, learn);
    }
  }
  benchmark::RegisterBenchmark("match_lines/word", MatchLines, "panic");
  benchmark::RegisterBenchmark("match_lines/words", MatchLines,
                               "(?i)panic|assert(ion)? failed|abort");
  benchmark::RegisterBenchmark("match_lines/class", MatchLines, "[g-k]+[0-9]+: .*$");
  benchmark::RegisterBenchmark("log_reader/normalized", ReadLog, false);
  benchmark::RegisterBenchmark("log_reader/rule", ReadLog, true);
  const std::string memory = std::filesystem::is_directory("/dev/shm") ? "/dev/shm" : "/tmp";
  for (const auto& [title, where] :
       {std::pair<const char*, std::string>{"ring_append", memory},
        std::pair<const char*, std::string>{"ring_append_disk", "."}}) {
    benchmark::RegisterBenchmark(title, AppendTo, where)
        ->Arg(64)
        ->Arg(4096)
        ->Arg(256 * 1024)
        ->UseRealTime();
  }
  benchmark::RegisterBenchmark("find_period/loop7", Period, size_t{7});
  benchmark::RegisterBenchmark("find_period/loop5000", Period, size_t{5000});
  benchmark::RegisterBenchmark("find_period/random", Period, size_t{0});
}

}  // namespace
}  // namespace hangscope::bench

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  hangscope::bench::Register();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
