// A program that a test starts and looks at from outside: it prints "NAME TID" for its threads and
// then "ready", and ends when its standard input does.
#ifndef HANGSCOPE_TESTS_FAKES_STARTED_PROGRAM_H
#define HANGSCOPE_TESTS_FAKES_STARTED_PROGRAM_H

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <string>

namespace hangscope {

class StartedProgram {
 public:
  explicit StartedProgram(const char* path, const char* argument = nullptr) {
    int in[2];
    int out[2];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) abort();
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      dup2(in[0], 0);
      dup2(out[1], 1);
      execl(path, path, argument, nullptr);
      _exit(127);
    }
    close(in[0]);
    close(out[1]);
    in_ = in[1];
    out_ = out[0];
    std::string line;
    while (line != "ready" && ReadLine(&line)) {
      const size_t space = line.find(' ');
      if (space != std::string::npos)
        tids_[line.substr(0, space)] = std::stoi(line.substr(space + 1));
    }
    is_ready_ = line == "ready";
  }
  ~StartedProgram() {
    close(in_);
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    close(out_);
  }
  StartedProgram(const StartedProgram&) = delete;
  StartedProgram& operator=(const StartedProgram&) = delete;

  bool is_ready() const { return is_ready_; }
  int pid() const { return pid_; }
  // 0: it has not spoken of such a thread.
  int Tid(const std::string& name) const {
    const auto found = tids_.find(name);
    return found != tids_.end() ? found->second : 0;
  }
  // What it has printed since, without waiting for more.
  std::string Printed() {
    std::string text;
    pollfd file = {out_, POLLIN, 0};
    char buffer[4096];
    while (poll(&file, 1, 0) == 1) {
      const ssize_t got = read(out_, buffer, sizeof buffer);
      if (got <= 0) break;
      text.append(buffer, static_cast<size_t>(got));
    }
    return text;
  }

 private:
  bool ReadLine(std::string* line) {
    line->clear();
    for (char c = 0; read(out_, &c, 1) == 1;) {
      if (c == '\n') return true;
      *line += c;
    }
    return false;
  }

  pid_t pid_ = -1;
  int in_ = -1;
  int out_ = -1;
  bool is_ready_ = false;
  std::map<std::string, int> tids_;
};

}  // namespace hangscope

#endif
