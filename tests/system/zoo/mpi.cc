// Ranks of an MPI job that wait for each other for ever, and such as only look so. Started by
// mpirun, `zoo_mpi NAME`; rank 0 says "ready".
#include <fcntl.h>
#include <mpi.h>
#include <sys/file.h>

#include <vector>

#include "zoo.h"

using namespace zoo;

namespace {

int own = 0, all = 0;

void SendNumber(int to, int tag = 0) {
  int number = own;
  MPI_Send(&number, 1, MPI_INT, to, tag, MPI_COMM_WORLD);
}

int ReceiveNumber(int from, int tag = 0) {
  int number = 0;
  MPI_Recv(&number, 1, MPI_INT, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return number;
}

int Next() { return (own + 1) % all; }
int Previous() { return (own + all - 1) % all; }

// All are at this line before any is behind it, rank 0 says so.
void AllReady() {
  MPI_Barrier(MPI_COMM_WORLD);
  if (own == 0) Ready();
}

void Compute(double seconds) {
  timespec begin, now;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  volatile double sum = 0;
  do {
    for (int i = 1; i < 100000; ++i) sum = sum + 1.0 / i;
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while (static_cast<double>(now.tv_sec - begin.tv_sec) < seconds);
}

// --- Hangs.

void BothReceive(long) {
  AllReady();
  ReceiveNumber(1 - own);
}

void RingReceives(long) {
  AllReady();
  ReceiveNumber(Previous());
  SendNumber(Next());
}

// More than fits without a receiver.
void BothSend(long) {
  AllReady();
  std::vector<int> much(1 << 20);
  MPI_Send(much.data(), 1 << 20, MPI_INT, 1 - own, 0, MPI_COMM_WORLD);
  MPI_Recv(much.data(), 1 << 20, MPI_INT, 1 - own, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

void WrongTag(long) {
  AllReady();
  if (own == 0) {
    SendNumber(1, 4);
    ReceiveNumber(1, 5);
  } else {
    ReceiveNumber(0, 7);
    SendNumber(0, 5);
  }
}

// One rank has left the loop early, and goes on to what comes next.
void BarrierOfFewer(long) {
  AllReady();
  if (own == 0)
    ReceiveNumber(1);
  else
    MPI_Barrier(MPI_COMM_WORLD);
}

void CollectivesInOtherOrder(long) {
  AllReady();
  std::vector<int> much(1 << 16);
  int sum = 0, one = 1;
  if (own == 0) {
    MPI_Reduce(&one, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Bcast(much.data(), 1 << 16, MPI_INT, 1, MPI_COMM_WORLD);
  } else {
    MPI_Bcast(much.data(), 1 << 16, MPI_INT, 1, MPI_COMM_WORLD);
    MPI_Reduce(&one, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  }
}

void AwaitRequests(long) {
  AllReady();
  int numbers[2] = {};
  MPI_Request requests[2];
  MPI_Irecv(&numbers[0], 1, MPI_INT, Next(), 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(&numbers[1], 1, MPI_INT, Previous(), 1, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

void ProbeOnly(long) {
  AllReady();
  MPI_Status status;
  MPI_Probe(MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &status);
}

void AllreduceOfFewer(long) {
  AllReady();
  int one = 1, sum = 0;
  if (own == all - 1)
    ReceiveNumber(0);
  else
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

void FinalizeTooEarly(long) {
  AllReady();
  if (own != 0) ReceiveNumber(0);
}

// A rank that waits for a lock of itself, and keeps the others waiting.
pthread_mutex_t table_mutex = PTHREAD_MUTEX_INITIALIZER;

void LockTwice() {
  pthread_mutex_lock(&table_mutex);
  pthread_mutex_lock(&table_mutex);
}

void RankInDeadlock(long) {
  AllReady();
  if (own == 1) LockTwice();
  MPI_Barrier(MPI_COMM_WORLD);
}

// --- Not.

void PingPong(long) {
  AllReady();
  for (;;) {
    if (own == 0) SendNumber(1);
    ReceiveNumber(1 - own);
    if (own == 1) SendNumber(0);
  }
}

void RingPasses(long) {
  AllReady();
  if (own == 0) SendNumber(Next());
  for (;;) {
    ReceiveNumber(Previous());
    SendNumber(Next());
  }
}

void RingPassesSlowly(long) {
  AllReady();
  if (own == 0) SendNumber(Next());
  for (;;) {
    ReceiveNumber(Previous());
    Nap(0.7);
    SendNumber(Next());
  }
}

void OneComputes(long) {
  AllReady();
  for (;;) {
    if (own == 0) Compute(600);
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

void ComputeByTurns(long) {
  AllReady();
  for (int turn = 0;; ++turn) {
    if (turn % all == own) Compute(2);
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

void OneSleeps(long) {
  AllReady();
  if (own == 0) NapForLong();
  MPI_Barrier(MPI_COMM_WORLD);
}

void OneReadsInput(long) {
  AllReady();
  if (own == 0) ReadByte(0);
  MPI_Barrier(MPI_COMM_WORLD);
}

void Reductions(long) {
  AllReady();
  double one = 1, sum = 0;
  for (;;) MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

void FarmerAndWorkers(long) {
  AllReady();
  for (;;) {
    if (own == 0) {
      MPI_Status status;
      int number = 0;
      MPI_Recv(&number, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &status);
      SendNumber(status.MPI_SOURCE);
    } else {
      SendNumber(0);
      ReceiveNumber(0);
      Compute(own);
    }
  }
}

void Polls(long) {
  AllReady();
  for (;;) {
    int is_there = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &is_there, MPI_STATUS_IGNORE);
    Nap(0.01);
  }
}

void OneTakesAFileLock(long) {
  AllReady();
  if (own == 0) {
    const int file = open("x.lock", O_RDWR | O_CREAT, 0600);
    flock(file, LOCK_EX);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
}

// What the program computes in the midst of a collective is no wait.
void AddSlowly(void* from, void* into, int* count, MPI_Datatype*) {
  Compute(3);
  for (int i = 0; i < *count; ++i) static_cast<int*>(into)[i] += static_cast<int*>(from)[i];
}

void AddAfterNap(void* from, void* into, int* count, MPI_Datatype*) {
  Nap(3);
  for (int i = 0; i < *count; ++i) static_cast<int*>(into)[i] += static_cast<int*>(from)[i];
}

void OperationIsSlow(long naps) {
  MPI_Op slowly;
  MPI_Op_create(naps ? AddAfterNap : AddSlowly, 1, &slowly);
  AllReady();
  for (;;) {
    int one = 1, sum = 0;
    MPI_Reduce(&one, &sum, 1, MPI_INT, slowly, 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

constexpr Program kPrograms[] = {
    {"both-receive", BothReceive},
    {"ring-receives", RingReceives},
    {"both-send", BothSend},
    {"wrong-tag", WrongTag},
    {"barrier-of-fewer", BarrierOfFewer},
    {"collectives-in-other-order", CollectivesInOtherOrder},
    {"await-requests", AwaitRequests},
    {"probe-only", ProbeOnly},
    {"allreduce-of-fewer", AllreduceOfFewer},
    {"finalize-too-early", FinalizeTooEarly},
    {"rank-in-deadlock", RankInDeadlock},
    {"ping-pong", PingPong},
    {"ring-passes", RingPasses},
    {"ring-passes-slowly", RingPassesSlowly},
    {"one-computes", OneComputes},
    {"compute-by-turns", ComputeByTurns},
    {"one-sleeps", OneSleeps},
    {"one-reads-input", OneReadsInput},
    {"reductions", Reductions},
    {"farmer-and-workers", FarmerAndWorkers},
    {"polls", Polls},
    {"one-takes-a-file-lock", OneTakesAFileLock},
    {"operation-is-slow", OperationIsSlow},
};

}  // namespace

int main(int count, char** arguments) {
  MPI_Init(&count, &arguments);
  MPI_Comm_rank(MPI_COMM_WORLD, &own);
  MPI_Comm_size(MPI_COMM_WORLD, &all);
  const int status = RunProgram(kPrograms, count, arguments);
  MPI_Finalize();
  return status;
}
