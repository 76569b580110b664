/* dataset_layout.h -- from the tables of statrec/format.h to datasets: chunk shapes, sizes,
 * attributes.
 * */
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

enum { RUN_STEP_INTS = 3, RUN_STEP_REALS = 5, RUN_RUNNING = 4 };
/* Those that a host declares, and two that tell of the recorder (overhead_limit.c). */
enum { RUN_DECLARED_MAX = SR_DECLARED_MAX + 2 };

/* Where a column comes from: its group, name and text for the attributes. */
typedef struct run_column {
    const char *group, *name, *unit, *definition;
    h5_type type;
} run_column;

extern const run_column run_step_ints[RUN_STEP_INTS], run_step_reals[RUN_STEP_REALS];
extern const run_column run_scalars[SR_SCALAR_COUNT], run_vectors[SR_VECTOR_COUNT];
extern const run_column run_vector_step, run_eval_step, run_eval_epoch;
extern const char *const run_better_words[3]; /* of better + 1 */
extern const run_column run_spectra[SR_SPECTRUM_COUNT], run_spectra_step, run_spectra_rows;
extern const run_column run_finals[SR_FINAL_COUNT];
extern const run_column run_pairs[SR_PAIR_COUNT];
extern const run_column run_running[RUN_RUNNING], run_running_step;

/* Counts under /state of rows that are whole. */
enum { COMMITTED_STEPS, COMMITTED_VECTORS, COMMITTED_EVALS, COMMITTED_COUNT };
extern const char *const run_committed_names[COMMITTED_COUNT];

/* Texts under /state that are filled in at the end. */
enum { RUN_FINISHED_SIZE = 32 };

/* An embedding whose singular values are recorded. */
typedef struct run_embedding {
    char name[SR_NAME_SIZE];
    char method[SR_METHOD_SIZE];
    int64_t rows, cols;
    h5_id step, values; /* datasets */
    int64_t records;
} run_embedding;

/* The sites and what is known before the first step. */
typedef struct run_layout {
    int64_t sites, width;             /* S, W */
    const sr_run_site *site;          /* [sites] */
    const uint32_t *expected;         /* [sites] bits 1u << sr_vector: what each site will put */
    const uint32_t *expected_scalars; /* [sites] bits 1u << sr_scalar */
    bool scalars, vectors;            /* recorded at all */
    bool spectra, final, running;
    int64_t pairs; /* of each site, below /final; 0: none */
    int metrics;
    bool has_host;                          /* scalars of its own, or ranks */
    const char *ranks;                      /* sr_options.ranks, or "" */
    int64_t declared_sites, declared_steps; /* scalars of the host's per site, and per step */
    int64_t planned_steps, vectors_every;   /* 0: unknown; 0: none */
} run_layout;

/* Vectors and scalars that a family's sites put, as bits. */
uint32_t run_family_vectors(sr_family family);
uint32_t run_family_scalars(sr_family family);

/* Chunk shape of a column. */
void run_chunk_steps(const run_layout *l, int64_t chunk[2]);
void run_chunk_scalars(const run_layout *l, int64_t chunk[2]);
void run_chunk_vectors(const run_layout *l, int64_t chunk[2]);
enum { RUN_EVAL_CHUNK = 128 };

/* As a whole number; what is beyond all disks is cut. */
int64_t run_bytes(double bytes);
/* Bytes of a file of planned_steps steps with vectors every `every` steps (0: none). */
int64_t run_project(const run_layout *l, int64_t every);
/* Smallest spacing whose projection stays within limit. */
int64_t run_spacing(const run_layout *l, int64_t limit);
/* Bytes of one row of vectors. */
int64_t run_vector_bytes(const run_layout *l);
/* The column of this name among `count`; NULL: none. */
const run_column *run_find_column(const run_column *c, int count, const char *name);

#endif
