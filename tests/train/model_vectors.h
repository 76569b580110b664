/* model_vectors.h -- the shared vectors of layers, models and optimizers
 * (reference/vectors/models/README.md): reading a case, comparing with it, and one checker for each
 * kind of file. Settings come from a case's attributes and sizes from its datasets. No function
 * here ends the test program: a failure prints one line and marks the case. */
#ifndef TESTS_TRAIN_MODEL_VECTORS_H
#define TESTS_TRAIN_MODEL_VECTORS_H

#include <hdf5.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/tape.h"

typedef struct kept kept; /* memory that lives as long as its case */

typedef struct model_case {
    hid_t group;
    int number;
    char where[256]; /* "conv.h5: case3 (4x4 k3 s1)": start of every message */
    int compared, wrong;
    bool broken;       /* something is missing or failed, and was reported */
    char skipped[192]; /* missing feature that the case needs; "": none */
    kept *kept, *outputs;
} model_case;

/* One file's cases, each in turn. */
typedef void model_checker(model_case *c);

/* A text attribute; false when absent or longer. */
bool vectors_read_text(hid_t at, const char *name, char *text, size_t size);
/* Opens caseN; false, reported, if the group is missing. */
bool case_open(model_case *c, hid_t file, const char *file_name, int number);
/* Reports results that no comparison read, and frees the case's memory. */
void case_close(model_case *c);
bool case_fine(const model_case *c); /* nothing failed or was skipped so far */
void case_fail(model_case *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
void case_skip(model_case *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Zeros; NULL, reported, if out of memory. */
void *case_alloc(model_case *c, int64_t count, size_t size);

bool case_has(const model_case *c, const char *path);
/* Names of the datasets of in/ in turn; false past the end. */
bool case_input(const model_case *c, int i, char *name, size_t size);
/* Attributes. Without `otherwise` a missing one is a failure. */
double case_number(model_case *c, const char *name);
double case_number_or(model_case *c, const char *name, double otherwise);
const char *case_text(model_case *c, const char *name);
/* least when it is absent, broken or beyond, which are failures. */
int64_t case_whole(model_case *c, const char *name, int64_t least, int64_t most);

/* Datasets "in/x" of any number type. rank: required rank; 0: any up to 4. dim [4] (may be NULL) is
 * padded with ones. NULL, reported, if absent, of another rank, empty or unreadable. */
double *case_read(model_case *c, const char *path, int rank, int64_t *dim);
int32_t *case_ints(model_case *c, const char *path, int rank, int64_t *dim);
/* A text, which may be empty, followed by a zero byte. */
char *case_bytes(model_case *c, const char *path, int64_t *size);
/* A mask of `rows` rows, 1 where the number is not 0. */
uint8_t *case_mask(model_case *c, const char *path, int64_t rows);
/* Into memory of that size, or NaN when the case has failed. */
void case_fill(model_case *c, const char *path, tensor *x);

/* A tape in training mode; 1 to 3 threads, by the case's number. */
tape *case_tape(model_case *c);
bool case_tape_fine(model_case *c, const tape *t); /* reports its failure */
/* A tensor that wants a gradient. */
tensor *case_tensor(model_case *c, tape *t, const char *path, int rank);
/* dL/dy = in/dy in the rows of the mask (NULL: all), zero elsewhere; then every gradient. */
void case_backward(model_case *c, tape *t, tensor *y, const uint8_t *mask);

/* Compares with out/NAME within its tolerances; whole numbers without tolerances must be equal.
 * mask [count / width] selects the rows to compare, NULL: all. */
void case_compare(model_case *c, const char *name, const double *got, int64_t count,
                  const uint8_t *mask, int64_t width);
void case_compare_reals(model_case *c, const char *name, const real *got, int64_t count,
                        const uint8_t *mask, int64_t width);
/* Byte for byte. */
void case_compare_text(model_case *c, const char *name, const char *got, int64_t size);

/* vectors_directory.c: a file by its checker, with a line for it; every .h5 file of a directory.
 * Files of normalizations are left out: tests/norm/test_vectors.c takes them. */
typedef struct vector_tally {
    int passed, failed, skipped; /* cases; a file that is not one of vectors counts as one */
    int left_out;                /* files */
    bool quiet;                  /* print failures only */
} vector_tally;
void vectors_run_file(const char *path, vector_tally *sum);
void vectors_run_directory(const char *directory, vector_tally *sum);

/* vectors_layers.c */
model_checker check_encoder_layer, check_decoder_layer;
/* vectors_whole.c */
model_checker check_transformer_full;
/* vectors_images.c */
model_checker check_conv, check_resnet;
/* vectors_words.c */
model_checker check_positions, check_label_smoothing;
/* vectors_language.c */
model_checker check_memory_attention, check_adaptive_softmax;
/* vectors_tagging.c */
model_checker check_crf, check_tener_attention;
/* vectors_optim.c */
model_checker check_optim, check_clip, check_lr;
/* vectors_beam.c */
model_checker check_beam;
/* vectors_bleu.c */
model_checker check_bleu;
/* vectors_bpe.c */
model_checker check_bpe;
/* vectors_trees.c */
model_checker check_oracle, check_uas;
/* vectors_spans.c */
model_checker check_span_f1;

#endif
