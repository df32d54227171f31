#include "runtime/jvm/jvm_threads.h"

#include <algorithm>
#include <iterator>

#include "runtime/jvm/jvm_objects.h"

namespace hangscope {
namespace {

constexpr std::string_view kForkJoin = "java/util/concurrent/ForkJoin";  // every condition calls it

struct IdlePlace {
  std::string_view class_name;
  std::string_view method;
};
constexpr IdlePlace kIdlePlaces[] = {
    {"java/util/concurrent/ThreadPoolExecutor", "getTask"},
    {"java/util/concurrent/ForkJoinPool", "awaitWork"},
    {"java/util/concurrent/ForkJoinPool", "runWorker"},
    {"java/util/TimerThread", "mainLoop"},
};

// Of java.util.concurrent itself, not of its locks.
bool IsQueue(const std::string& class_name) {
  return class_name.starts_with(kJavaConcurrent) && !class_name.starts_with(kForkJoin) &&
         class_name.find('/', kJavaConcurrent.size()) == std::string::npos;
}

}  // namespace

bool IsIdleInJava(std::string_view class_name, std::string_view method) {
  return std::any_of(std::begin(kIdlePlaces), std::end(kIdlePlaces), [&](const IdlePlace& place) {
    return method == place.method && class_name == place.class_name;
  });
}

bool LocksInterruptibly(const std::vector<StackFrame>& stack) {
  return std::any_of(stack.begin(), stack.end(), [](const StackFrame& frame) {
    return frame.function.find("nterruptibly") != std::string::npos;
  });
}

std::string TypeOfParked(const std::string& class_name, const std::vector<std::string>& callers) {
  if (class_name.empty()) return "unpark()";
  if (class_name.ends_with("$ConditionObject")) {
    const auto queue = std::find_if(callers.begin(), callers.end(), IsQueue);
    return queue == callers.end() ? "Condition" : SimpleName(*queue);
  }
  const std::string simple = SimpleName(class_name);
  return class_name.starts_with(kJavaConcurrent) ? simple.substr(0, simple.find('$')) : simple;
}

}  // namespace hangscope
