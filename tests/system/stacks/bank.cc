// Two threads want each other's mutex, in functions compiled into one another.
#include <atomic>
#include <cstdio>
#include <mutex>
#include <thread>

namespace bank {

std::mutex red;
std::mutex green;
std::atomic<int> began{0};

struct Account {
  int sum = 0;
  [[gnu::always_inline]] inline void Enter(std::mutex& other) {
    std::lock_guard<std::mutex> guard(other);  // waits
    ++sum;
  }
};

template <typename First, typename Second>
[[gnu::noinline]] void Transfer(First& first, Second& second, Account& account) {
  std::lock_guard<std::mutex> guard(first);
  ++began;
  while (began < 2) std::this_thread::yield();
  account.Enter(second);  // calls
  std::puts("never");
}

}  // namespace bank

int main() {
  bank::Account account;
  std::puts("ready");
  std::fflush(stdout);
  std::thread one([&] { bank::Transfer(bank::red, bank::green, account); });  // begins
  std::thread two([&] { bank::Transfer(bank::green, bank::red, account); });  // begins
  one.join();
  two.join();
}
