/* dataset_layout.h -- the datasets that follow from the tables of statrec/format.h: chunk shapes,
 * sizes, attributes. */
#ifndef RUNFILE_DATASET_LAYOUT_H
#define RUNFILE_DATASET_LAYOUT_H

#include "hdf5/h5.h"
#include "statrec/format.h"
#include "statrec/runfile.h"

/* Texts of the root's attributes: fields of sr_run_info of the same names. */
#define RUN_TEXTS(X)                                                                               \
    X(program)                                                                                     \
    X(version)                                                                                     \
    X(command)                                                                                     \
    X(config) X(host) X(created) X(git) X(model) X(data) X(task) X(loss_reduction) X(parent)

/* Columns of /steps: integers come first. */
enum { RUN_STEP_INTS = 3, RUN_STEPS = RUN_STEP_INTS + 5, RUN_RUNNING = 4 };
/* Custom scalars of the host program, and two of overhead_limit.c. */
enum { RUN_DECLARED_MAX = SR_DECLARED_MAX + 2 };

/* A value of a column of /steps, by the column's type. */
typedef union step_value {
    int64_t whole;
    double real;
} step_value;

/* A column: its group, name, and texts of its attributes. */
typedef struct run_column {
    const char *group, *name, *unit, *definition;
    h5_type type;
} run_column;

extern const run_column run_steps[RUN_STEPS], run_scalars[SR_SCALAR_COUNT],
    run_vectors[SR_VECTOR_COUNT];
extern const run_column run_vector_step, run_eval_step, run_eval_epoch;
extern const char *const run_better_words[3]; /* index: better + 1 */
extern const run_column run_spectra[SR_SPECTRUM_COUNT], run_spectra_step, run_spectra_rows;
extern const run_column run_finals[SR_FINAL_COUNT];
extern const run_column run_pairs[SR_PAIR_COUNT];
extern const run_column run_running[RUN_RUNNING], run_running_step;

/* Texts of /copy, which only copied runs have: a line each for every copied file, the oldest copy
 * first. */
enum { COPY_SOURCES, COPY_CHECKSUMS, COPY_OPTIONS, COPY_TEXTS };
extern const char *const run_copy_names[COPY_TEXTS];

/* Counts of complete rows under /state. */
enum { COMMITTED_STEPS, COMMITTED_VECTORS, COMMITTED_EVALS, COMMITTED_COUNT };
extern const char *const run_committed_names[COMMITTED_COUNT];

/* Bytes of /state/finished. */
enum { RUN_FINISHED_SIZE = 32 };

/* An embedding whose singular values are recorded. */
typedef struct run_embedding {
    char name[SR_NAME_SIZE];
    char method[SR_METHOD_SIZE];
    int64_t rows, cols;
    h5_id step, values; /* datasets */
    int64_t records;
    int64_t last; /* step of the newest record */
} run_embedding;

/* The sites, and other properties that are fixed before the first step. */
typedef struct run_layout {
    int64_t sites, width;             /* S, W */
    const sr_run_site *site;          /* [sites] */
    const uint32_t *expected;         /* [sites] bits 1u << sr_vector: vectors of each site */
    const uint32_t *expected_scalars; /* [sites] bits 1u << sr_scalar */
    bool scalars, vectors;            /* recorded at all */
    bool spectra, final, running;
    int64_t pairs; /* pairs of each site, below /final; 0: none */
    int metrics;
    bool has_host;                          /* custom scalars or ranks */
    const char *ranks;                      /* sr_options.ranks, or "" */
    const char *const *copied;              /* [COPY_TEXTS]; NULL: the run is not a copy */
    int64_t declared_sites, declared_steps; /* custom scalars */
    int64_t planned_steps, vectors_every;   /* 0: unknown; 0: none */
} run_layout;

/* Vectors and scalars of the sites of a family, as bits. */
uint32_t run_family_vectors(sr_family family);
uint32_t run_family_scalars(sr_family family);

/* Chunk shape of a column. */
void run_chunk_steps(const run_layout *l, int64_t chunk[2]);
void run_chunk_scalars(const run_layout *l, int64_t chunk[2]);
void run_chunk_vectors(const run_layout *l, int64_t chunk[2]);
enum { RUN_EVAL_CHUNK = 128 };

/* Rounded to an integer, and limited to 4e18. */
int64_t run_bytes(double bytes);
/* Bytes of a file of planned_steps steps with vectors every `every` steps (0: none). */
int64_t run_project(const run_layout *l, int64_t every);
/* Smallest spacing of vectors, which are recorded, whose projection stays within limit. */
int64_t run_spacing(const run_layout *l, int64_t limit);
/* Bytes of one row of vectors; 0: they are not recorded. */
int64_t run_vector_bytes(const run_layout *l);
/* The column of this name among `count`; NULL: none. */
const run_column *run_find_column(const run_column *c, int count, const char *name);

#endif
