// The records of perf record -z: one zstd stream, cut into records of its own.
#ifndef HANGSCOPE_PERF_PERF_INFLATER_H
#define HANGSCOPE_PERF_PERF_INFLATER_H

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace hangscope {

// One thread. Memory is bounded, however much the stream grows: it hands on piece by piece.
class PerfInflater {
 public:
  enum class Outcome { kGoOn, kStop, kDamaged };

  // `turn`: records are of the other byte order, and stay so.
  explicit PerfInflater(bool turn = false);
  ~PerfInflater();
  // The next compressed bytes; hands each whole record to `take`, which says whether to go on. A
  // record that is not whole yet waits for the next bytes. Once damaged, it stays so: where the
  // next record begins is lost.
  Outcome Feed(std::string_view compressed,
               const std::function<bool(std::string_view record)>& take);
  // Of a record whose rest never came.
  size_t left_over_bytes() const { return waiting_.size(); }

 private:
  struct Context;
  Outcome HandOut(const std::function<bool(std::string_view record)>& take);

  std::unique_ptr<Context> context_;
  const bool turn_;
  std::string waiting_;
  bool damaged_ = false;
};

}  // namespace hangscope

#endif
