// The index and the segments of a ring, of any damage: read by the block reader
// and printed, and gone on with by the ring store.
#include <algorithm>
#include <map>

#include "base/units.h"
#include "fakes/fake_clock.h"
#include "fakes/fake_file_system.h"
#include "fuzz.h"
#include "ring/block_reader.h"
#include "ring/history.h"
#include "ring/ring_store.h"
#include "ring_image.h"

namespace hangscope::fuzz {
namespace {

constexpr size_t kLargestLimit = 1u << 20;
constexpr size_t kScriptSteps = 64;

// More blocks and losses than this cannot be in so many bytes: a segment's two
// rounds, each block of a plain one, each frame (of at most 64 MiB) of the others.
size_t MostEvents(size_t bytes) {
  const size_t slots = bytes / sizeof(IndexSlot) + 1;
  const size_t frames = bytes / sizeof(FrameHead) + 1;
  return kScriptSteps + 8 * slots + 2 * bytes / kLargestLimit +
         frames * (3 + (64u << 20) / kLargestLimit);
}

// One call of Next: what comes follows what came.
BlockReader::Event CheckedNext(BlockReader* reader, size_t limit) {
  const uint64_t before = reader->position();
  const auto event = reader->Next(limit);
  switch (event) {
    case BlockReader::Event::kBlock:
      FUZZ_REQUIRE(reader->block_offset() == before);
      FUZZ_REQUIRE(!reader->block().empty() && reader->block().size() <= limit);
      FUZZ_REQUIRE(reader->position() == before + reader->block().size());
      break;
    case BlockReader::Event::kLoss:
      FUZZ_REQUIRE(reader->loss().begin == before);
      FUZZ_REQUIRE(reader->loss().end > before);
      FUZZ_REQUIRE(reader->position() == reader->loss().end);
      break;
    case BlockReader::Event::kEnd:
      FUZZ_REQUIRE(reader->position() == before);
      break;
  }
  return event;
}

void CheckWindow(BlockReader* reader) {
  const StreamWindow window = reader->Window();
  FUZZ_REQUIRE(window.begin_offset <= window.end_offset);
  uint64_t at = window.begin_offset;
  for (const Loss& loss : window.losses) {
    FUZZ_REQUIRE(at <= loss.begin && loss.begin < loss.end);
    at = loss.end;
  }
  FUZZ_REQUIRE(at <= window.end_offset);
  FUZZ_REQUIRE(reader->damaged_segments() <= reader->header().segment_count + 1);
  (void)FormatWallTime(reader->header().start_wall);
}

// Reads to the end, from wherever it stands.
uint64_t Drain(BlockReader* reader, size_t most_events) {
  uint64_t bytes = 0;
  for (size_t events = 0;; ++events) {
    FUZZ_REQUIRE(events <= most_events);
    const auto event = CheckedNext(reader, kLargestLimit);
    if (event == BlockReader::Event::kEnd) return bytes;
    if (event == BlockReader::Event::kBlock) bytes += reader->block().size();
  }
}

uint64_t SomeOffset(Choices* choices, const BlockReader& reader) {
  switch (choices->UpTo(3)) {
    case 0:
      return reader.begin_offset() + choices->Take<int8_t>();
    case 1:
      return reader.end_offset() + choices->Take<int8_t>();
    case 2:
      return reader.position() + choices->Take<int16_t>();
    default:
      return choices->Take<uint64_t>();
  }
}

void ReadAsTheScriptSays(const RingImage& ring, FakeFileSystem* disk, BlockReader* reader) {
  Choices choices(ring.script);
  for (size_t step = 0; step < kScriptSteps && !choices.empty(); ++step) {
    switch (choices.UpTo(7)) {
      case 0:
        CheckedNext(reader, 1);
        break;
      case 1:
        CheckedNext(reader, 1 + choices.Take<uint8_t>());
        break;
      case 2:
        CheckedNext(reader, 1 + choices.Take<uint16_t>());
        break;
      case 3:
        reader->Seek(SomeOffset(&choices, *reader));
        break;
      case 4:
        (void)reader->TimeOf(SomeOffset(&choices, *reader));
        break;
      case 5:
        CheckWindow(reader);
        break;
      case 6:
        (void)reader->Refresh().ok();
        break;
      default:
        for (const auto& [path, bytes] : ring.later) {
          if (disk->Exists(path)) disk->BytesOf(path) = bytes;
        }
        break;
    }
  }
}

void ReadRing(const RingImage& ring) {
  FakeFileSystem disk;
  disk.Restore(ring.files);
  auto reader = BlockReader::Open(disk, kRingPrefix);
  if (!reader.ok()) return;
  const size_t most_events = MostEvents(ring.bytes());
  CheckWindow(&*reader);
  (void)reader->OldestTime();
  (void)Drain(&*reader, most_events);
  reader->Seek(reader->begin_offset());
  ReadAsTheScriptSays(ring, &disk, &*reader);
  (void)Drain(&*reader, most_events);
}

// What is printed are whole lines, none of them longer than what was read.
void PrintRing(const RingImage& ring) {
  FakeFileSystem disk;
  disk.Restore(ring.files);
  auto counting = BlockReader::Open(disk, kRingPrefix);
  auto reader = BlockReader::Open(disk, kRingPrefix);
  if (!counting.ok() || !reader.ok()) return;
  const uint64_t held = Drain(&*counting, MostEvents(ring.bytes()));
  uint64_t printed = 0;
  uint64_t lost_end = 0;
  HistoryPrinter printer(
      &*reader, [&](std::string_view bytes) { return printed += bytes.size(), !bytes.empty(); },
      [&](const Loss& loss) {
        FUZZ_REQUIRE(loss.begin >= lost_end);
        lost_end = loss.end;
      });
  FUZZ_REQUIRE(printer.PrintRest());
  FUZZ_REQUIRE(printed <= held);
}

void CheckedAppend(RingStore* store, size_t count, TimeNs stamp) {
  const uint64_t before = store->head();
  const size_t taken = store->Append(std::string(count, 'x'), stamp);
  FUZZ_REQUIRE(taken <= count);
  FUZZ_REQUIRE(store->head() == before + taken);
}

void ResumeRing(const RingImage& ring) {
  FakeFileSystem disk;
  disk.capacity = 4u << 20;  // a disk in memory
  disk.Restore(ring.files);
  FakeClock clock;
  auto store = RingStore::Resume(disk, clock, kRingPrefix);
  if (!store.ok()) return;
  Choices choices(ring.script);
  for (int i = 0; i < 4; ++i)
    CheckedAppend(store->get(), choices.Take<uint8_t>(), clock.Monotonic());
  (*store)->Lose(choices.Take<uint8_t>(), 0);
  clock.Advance(kSecond);
  CheckedAppend(store->get(), 700, clock.Monotonic());
  (void)disk.MakeFolders("ring/snapshot").ok();
  (void)(*store)->Freeze("ring/snapshot", choices.Take<uint16_t>()).ok();
  (*store)->Finish();
  (void)(*store)->fill();
  auto reader = BlockReader::Open(disk, kRingPrefix);
  if (reader.ok()) (void)Drain(&*reader, MostEvents(disk.Used()));
}

}  // namespace

void FuzzRing(std::string_view input) {
  const RingImage ring = MakeRing(input);
  ReadRing(ring);
  PrintRing(ring);
  ResumeRing(ring);
}

}  // namespace hangscope::fuzz
