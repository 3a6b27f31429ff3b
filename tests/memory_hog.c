/* GIB OTHERS: changes the protection of so many GiB all the time, under the lock of its memory, while so many processes
   that share it come and go. All end with it. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 64, STACK = 16384 };
static char stacks[MOST][STACK], workers[STACK];
static size_t size;
static char *place;

static int be_there(void *unused) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  usleep(300000);
  _exit(0);
}

static int work(void *unused) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (int turn = 0;; turn++) mprotect(place, size, turn & 1 ? PROT_READ : PROT_NONE);
}

int main(int count, char **words) {
  size = strtoul(words[1], 0, 10) << 30;
  int others = atoi(words[2]), pids[MOST] = {0};
  place = mmap(0, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place == MAP_FAILED) return 1;
  madvise(place, size, MADV_NOHUGEPAGE);
  if (madvise(place, size, 22 /* MADV_POPULATE_READ */))
    for (size_t at = 0; at < size; at += 4096) (void)*(volatile char *)(place + at);
  puts("ready");
  fflush(stdout);
  clone(work, workers + STACK, CLONE_VM | SIGCHLD, 0);
  for (;;) {
    for (int one = 0; one < others; one++)
      if (!pids[one] || waitpid(pids[one], 0, WNOHANG) == pids[one])
        pids[one] = clone(be_there, stacks[one] + STACK, CLONE_VM | SIGCHLD, 0);
    usleep(5000);
  }
}
