// A client that waits for the answer to a question it never sent, and a server that waits for the question.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hung.h"

static int questions[2];
static int answers[2];

static void serve() {
  char question;
  prctl(PR_SET_NAME, "server");
  close(questions[1]);
  close(answers[0]);
  while (read(questions[0], &question, 1) == 1) {
    if (write(answers[1], "!", 1) != 1) break;
  }
}

static void ask() {
  char answer;
  FILE* const question = fdopen(questions[1], "w");
  must(question != nullptr, "fdopen");
  fputc('?', question); // missing here: fflush(question), for it is still in the buffer
  must(read(answers[0], &answer, 1) == 1, "read");
  fclose(question);
}

int main() {
  must(pipe(questions) == 0 && pipe(answers) == 0, "pipe");
  const pid_t server = fork();
  must(server >= 0, "fork");
  if (server == 0) {
    serve();
    return 0;
  }
  close(questions[0]);
  close(answers[1]);
  say("asking");
  ask();
  waitpid(server, nullptr, 0);
  say("done");
}
