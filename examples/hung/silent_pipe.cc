// Reads a pipe to its end, which never comes: the writer has ended, but the reader has the writing end open, too.
#include <sys/wait.h>
#include <unistd.h>

#include "hung.h"

static void read_all(int fd) {
  char text[256];
  while (read(fd, text, sizeof text) > 0) {
  }
}

int main() {
  int ends[2];
  must(pipe(ends) == 0, "pipe");
  const pid_t writer = fork();
  must(writer >= 0, "fork");
  if (writer == 0) {
    const ssize_t written = write(ends[1], "hello\n", 6);
    _exit(written == 6 ? 0 : 1);
  }
  must(waitpid(writer, nullptr, 0) == writer, "waitpid"); // missing here: close(ends[1])
  say("the writer has ended");
  read_all(ends[0]);
  say("done");
}
