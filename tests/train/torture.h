/* torture.h -- places at which the statrec that fails on demand (tests/faulty) dies or fails.
 * STATREC_TORTURE=N: up to N of each kind instead of a few (tests/README.md). */
#ifndef TESTS_TRAIN_TORTURE_H
#define TESTS_TRAIN_TORTURE_H

long torture_places(void);
/* Words in front of a command line that run BUILD/faulty/statrec instead of the one in
   BUILD/bin. */
const char *torture_faulty(void);
/* k-th of n places among 1 .. last, the first and the last among them. */
long torture_place(long k, long n, long last);
/* Calls of the system that change files, and allocations, which the command wrote to ./count. */
void torture_read_count(long *calls, long *allocations);
/* Files in memory. */
void torture_begin(void);

#endif
