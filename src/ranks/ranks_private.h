/* ranks_private.h -- declarations shared by the files of src/ranks. */
#ifndef RANKS_RANKS_PRIVATE_H
#define RANKS_RANKS_PRIVATE_H

#include "ranks/ranks.h"

/* One implementation of the functions of ranks.h. */
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
    double seconds;       /* timeout */
    bool broken;          /* an exchange failed: no other may start */
    bool all_know;        /* every rank has the failure that ends the run */
    char text[160];       /* ranks_describe */
    const char *launcher; /* "mpirun", "srun", "": none */
    void *own;            /* data of the kind of ranks */
};

struct ranks_transfer {
    ranks *ranks;
    int64_t length, width; /* length of a row, width of this rank's shard */
    const int *parts;      /* [count]; the caller's */
    int total;             /* their sum */
    real *piece;           /* [total, width] */
    void *own;             /* data of the kind of ranks */
};

/* The start of rank r's shard of a row; r = count: the end. */
static inline int64_t piece_begins(const ranks_transfer *t, int r) {
    return t->length * r / t->ranks->count;
}

extern const ranks_kind ranks_alone;
#ifdef USE_MPI
/* (all) Fills in rank and count from MPI; SR_OK with count 1 without a launcher. */
sr_status ranks_mpi_open(ranks *k, sr_failure *why);
#endif
/* Number of processes by the launcher's variables; 1 without a launcher. *name: its name, or "". */
int ranks_launched(const char **name);
/* Cores of this host that Slurm granted; 0: not known. */
int ranks_granted_cores(void);

#endif
