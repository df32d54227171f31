// usage: ledger_producer LEDGER MILLISECONDS SEED
//
// Writes for that long to standard output, in pieces and with pauses of random
// length, words of eight bytes that hold their own offset; then says in the file
// LEDGER how many bytes it wrote. A producer that was killed leaves it empty.
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  FILE* ledger = fopen(argv[1], "w");
  if (ledger == nullptr) return 1;
  std::mt19937 random(static_cast<unsigned>(atoi(argv[3])));
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(atoi(argv[2]));
  uint64_t offset = 0;
  std::vector<uint64_t> words;
  while (std::chrono::steady_clock::now() < end) {
    words.resize(1 + random() % (random() % 4 == 0 ? 20'000 : 40));
    for (uint64_t& word : words) {
      word = offset;
      offset += sizeof word;
    }
    const char* at = reinterpret_cast<const char*>(words.data());
    for (size_t left = words.size() * sizeof words[0]; left > 0;) {
      const ssize_t written = write(STDOUT_FILENO, at, left);
      if (written < 0) return 1;
      at += written;
      left -= static_cast<size_t>(written);
    }
    if (random() % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
  }
  fprintf(ledger, "%llu\n", static_cast<unsigned long long>(offset));
  return fclose(ledger) == 0 ? 0 : 1;
}
