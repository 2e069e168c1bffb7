// Moves the clock of a process and of its children by MOVED_CLOCK_SECONDS (LD_PRELOAD). Only the time of day moves: timers
// and time limits use the monotonic clock. The calls go to the kernel itself; libfaketime, which looks up those of the C
// library, blocks workerd before it listens.
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long ahead;

__attribute__((constructor)) static void read_ahead(void) {
  const char *text = getenv("MOVED_CLOCK_SECONDS");
  if (text != NULL) ahead = atol(text);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  int result = (int)syscall(SYS_clock_gettime, clock, now);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += ahead;
  return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  (void)zone;
  struct timespec precise;
  clock_gettime(CLOCK_REALTIME, &precise);
  now->tv_sec = precise.tv_sec;
  now->tv_usec = precise.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *now) {
  struct timespec precise;
  clock_gettime(CLOCK_REALTIME, &precise);
  if (now != NULL) *now = precise.tv_sec;
  return precise.tv_sec;
}
