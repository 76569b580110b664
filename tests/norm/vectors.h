/* vectors.h -- reads the shared vector files (reference/vectors/README.md) and runs their cases. */
#ifndef TESTS_NORM_VECTORS_H
#define TESTS_NORM_VECTORS_H

#include <hdf5.h>
#include <stdbool.h>

#include "norm/norm_options.h"
#include "norm/norm_site.h"

enum { VECTORS_POOL = 256, VECTORS_RANKS = 8 };

/* One case of a file. Arrays read from it are freed with it. */
typedef struct vector_case {
    hid_t file, group;
    char norm[64];  /* attribute of the file */
    char where[96]; /* "bn.h5 case3", for messages */
    int64_t S, B, d;
    bool padded;        /* padded rows are compared too */
    const double *mask; /* [S, B] or NULL */
    void *pool[VECTORS_POOL];
    int pooled;
    int compared, wrong;
    bool broken; /* a missing dataset, or out of memory */
} vector_case;

/* vectors_read.c */
bool vector_case_open(vector_case *c, hid_t file, const char *file_name, const char *name);
void vector_case_close(vector_case *c);
double *vector_zeros(vector_case *c, int64_t count);
bool vector_has(const vector_case *c, const char *path);
/* The numbers of in/NAME or out/NAME; NULL (and broken) when absent. count may be NULL. */
double *vector_read(vector_case *c, const char *path, int64_t *count);
double vector_number(const vector_case *c, const char *attribute, double absent);
/* Text attribute, "" when absent; buf [size]. */
const char *vector_text(const vector_case *c, const char *attribute, char *buf, size_t size);
/* Iterates over the names in out/: false past the end. */
bool vector_output(const vector_case *c, int64_t i, char *name, size_t size);
/* Compares one step of out/NAME with got [width], within the file's tolerances. Padded rows are
 * skipped where width is B or B*d and the case asks for it. */
void vector_compare(vector_case *c, const char *name, int64_t step, const double *got,
                    int64_t width);
/* Compares the mean over valid rows of out/NAME [S, B]. */
void vector_compare_mean(vector_case *c, const char *name, int64_t step, double got);

/* vectors_run.c: results of one step of one process. Arrays [B, d], [d] ... cover the whole
 * case. */
typedef struct vector_step {
    double *y, *dx, *dgamma, *dbeta;
    const double *x, *dy;
    double *stat[NORM_VECTOR_COUNT]; /* [d] */
    double scalar[NORM_SCALAR_COUNT];
    double *before[NORM_STATE_MAX], *after[NORM_STATE_MAX];
    double *row_mean, *row_deviation; /* [B], row methods */
    double penalty;
    int64_t n, calls, step;
} vector_step;

typedef struct vector_setup {
    const norm_method *method;
    norm_options options;
    double state_scale[NORM_STATE_MAX]; /* file = scale * our value, 0: not in the file */
    const char *state_name[NORM_STATE_MAX];
} vector_setup;

/* vectors_methods.c: method and options of a case; false: unknown method. */
bool vector_setup_case(vector_case *c, vector_setup *s);
/* Options that change from step to step (clip limits of brn). */
void vector_setup_step(vector_case *c, const vector_setup *s, int64_t step, norm_options *o);

void vector_run(vector_case *c, const vector_setup *s);

/* vectors_kinds.c: a case of recorded.h5; false for an unknown kind. */
bool vector_run_kind(vector_case *c);

/* vectors_recorded.c: computes rec_NAME of a step from the layer's statistics, as the README
 * defines it. Returns its width, or 0 for an unknown name. out [B*d]. */
int64_t vector_recorded(vector_case *c, const vector_setup *s, const vector_step *step,
                        const char *name, double *out);

#endif
