/* torture.h -- call numbers for the fault-injecting statrec (tests/faulty), which then dies or
 * fails. STATREC_TORTURE=N: up to N of each kind instead of a few (tests/README.md). */
#ifndef TESTS_TRAIN_TORTURE_H
#define TESTS_TRAIN_TORTURE_H

long torture_places(void);
/* Prefix of a command line that runs BUILD/faulty/statrec instead of BUILD/bin/statrec. */
const char *torture_faulty(void);
/* k-th of n places among 1 .. last, the first and the last among them. */
long torture_place(long k, long n, long last);
/* Calls of the system that change files, and allocations, which the command wrote to ./count. */
void torture_read_count(long *calls, long *allocations);
/* Files in memory. */
void torture_begin(void);

#endif
