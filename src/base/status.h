// Status and Result<T>: how every hangscope library reports failure.
//
// A Status is either ok or a code with one sentence that says what failed,
// where, why and, where one can, what to do. Libraries return it; only cli/
// prints it. Lost data is never a Status: it is a counted result (model/loss.h).
#ifndef HANGSCOPE_BASE_STATUS_H
#define HANGSCOPE_BASE_STATUS_H

#include <optional>
#include <string>
#include <utility>

namespace hangscope {

// What the errno value `error` means: "No space left on device".
std::string ErrorText(int error);

class [[nodiscard]] Status {
 public:
  enum class Code { kOk, kUsage, kIo, kCorrupt, kNotFound, kBusy };

  Status() = default;
  static Status Usage(std::string message) { return {Code::kUsage, std::move(message)}; }
  static Status Io(std::string message) { return {Code::kIo, std::move(message)}; }
  static Status Corrupt(std::string message) { return {Code::kCorrupt, std::move(message)}; }
  static Status NotFound(std::string message) { return {Code::kNotFound, std::move(message)}; }
  static Status Busy(std::string message) { return {Code::kBusy, std::move(message)}; }

  // "cannot WHAT 'PATH': strerror(error)". `error` is an errno value.
  static Status FromErrno(int error, const std::string& what, const std::string& path);

  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }
  // The errno behind an I/O failure, 0 where there was none.
  int error() const { return error_; }

 private:
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  Code code_ = Code::kOk;
  int error_ = 0;
  std::string message_;
};

// A value or the Status that says why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}          // NOLINT: implicit by design
  Result(Status status) : status_(std::move(status)) {}  // NOLINT: implicit by design

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& value() { return *value_; }
  const T& value() const { return *value_; }
  T& operator*() { return *value_; }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }
  T value_or(T other) const { return value_.value_or(std::move(other)); }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace hangscope

#endif
