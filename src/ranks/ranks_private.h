/* ranks_private.h -- what the files of src/ranks know of each other. */
#ifndef RANKS_RANKS_PRIVATE_H
#define RANKS_RANKS_PRIVATE_H

#include "ranks/ranks.h"

/* One way of being several, or alone. Functions as those of ranks.h. */
typedef struct ranks_kind {
    sr_status (*gather)(ranks *k, double *all, int64_t width, sr_failure *why);
    sr_status (*broadcast)(ranks *k, int from, void *data, size_t bytes, sr_failure *why);
    sr_status (*send)(ranks_transfer *t, real *const *own, sr_failure *why);
    bool (*here)(ranks_transfer *t);
    sr_status (*give_back)(ranks_transfer *t, real *to, sr_failure *why);
    sr_status (*finish)(ranks_transfer *t, sr_failure *why);
    void (*free)(ranks_transfer *t);
    void (*close)(ranks *k, const sr_failure *failure);
} ranks_kind;

struct ranks {
    const ranks_kind *kind;
    int rank, count, neighbours;
    double seconds;       /* of patience */
    bool broken;          /* an exchange failed: nobody may begin another one */
    bool all_know;        /* every rank has the failure that ends the run */
    char text[160];       /* ranks_describe */
    const char *launcher; /* "mpirun", "srun", "": none */
    void *own;            /* of the kind */
};

struct ranks_transfer {
    ranks *ranks;
    int64_t length, width; /* of a row, of this rank's piece */
    const int *parts;      /* [count]; the caller's */
    int total;             /* their sum */
    real *piece;           /* [total, width] */
    void *own;             /* of the kind */
};

/* Where rank r's piece of a row begins; that of the rank behind the last is the end. */
static inline int64_t piece_begins(const ranks_transfer *t, int r) {
    return t->length * r / t->ranks->count;
}

extern const ranks_kind ranks_alone;
#ifdef USE_MPI
/* (all) Fills in what MPI knows; SR_OK with count 1 where nobody started several. */
sr_status ranks_mpi_open(ranks *k, sr_failure *why);
#endif
/* Processes that a launcher says it started, from its variables; 1 without one. *name of it, or
 * "". */
int ranks_launched(const char **name);
/* Cores of this host that Slurm gave the run; 0: it says nothing. */
int ranks_granted_cores(void);

#endif
