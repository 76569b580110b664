/* piped_ranks.h -- ranks of one run as processes of the test, connected by pipes: replaces MPI in
 * builds and on machines without it. */
#ifndef TESTS_PIPED_RANKS_H
#define TESTS_PIPED_RANKS_H

#include "ranks/ranks_private.h"

enum { PIPED_MOST = 4 };

typedef struct piped_fault {
    int rank;
    long at; /* this exchange of the rank fails, from 1; 0: none */
} piped_fault;

/* Runs `body` in `count` processes, the given fault among their exchanges. Returns how many ended
 * with another status than 0. The body ends its process by its result, or complains
 * (child_complaint.h). */
int piped_run(int count, const piped_fault *fault, int (*body)(ranks *k));
/* Exchanges of this rank so far. */
long piped_exchanges(const ranks *k);

#endif
