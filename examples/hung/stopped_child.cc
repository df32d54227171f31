// Waits for a child that somebody has stopped: SIGSTOP, or a background job that wanted to read its terminal.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "hung.h"

static void child_works() {
  end_with_parent();
  raise(SIGSTOP);
  _exit(0);
}

static void wait_for_job(pid_t job) { must(waitpid(job, nullptr, 0) == job, "waitpid"); }

int main() {
  const pid_t job = fork();
  must(job >= 0, "fork");
  if (job == 0) child_works();
  must(waitpid(job, nullptr, WUNTRACED) == job, "waitpid");
  say("the job has begun");
  wait_for_job(job);
  say("done");
}
