/* reader.h -- the inside of an open run file, shared by read_open.c (opening), read_values.c (values) and
 * check_run.c. */
#ifndef RUNFILE_READ_READER_H
#define RUNFILE_READ_READER_H

#include "hdf5/h5.h"
#include "journal/trailer.h"
#include "runfile/dataset_layout.h"
#include "runfile/site_index.h"
#include "runfile/site_method.h"
#include "runfile/write/writer.h"
#include "statrec/runfile.h"

enum { READER_GROUPS = 5 };
extern const char *const reader_group_names[READER_GROUPS];

/* A `definition` attribute read once. */
typedef struct reader_text {
    struct reader_text *next;
    char *dataset, *text;
} reader_text;

/* A column that stays open between two reads: opening costs more than reading a few rows. */
typedef struct reader_kept {
    const run_column *column; /* NULL: nothing yet */
    h5_id set;
    int64_t chunk[2];
    bool direct; /* chunks are not cached */
} reader_kept;

/* Rows of some neighbouring sites of a scalar (scalar_cache.c). */
typedef struct scalar_cache {
    const run_column *column; /* NULL: nothing yet */
    h5_rows rows;             /* columns: of these sites */
    float *value;             /* [rows.count, rows.columns] */
} scalar_cache;

/* Whether a column has values: programs ask at every site, and opening a dataset takes its time. */
typedef struct reader_answer {
    const run_column *column;
    bool has;
} reader_answer;

typedef struct open_file_cache open_file_cache;

typedef struct reader_shelf {
    h5_id file;            /* 0: it rests */
    open_file_cache *pool; /* NULL: it never does */
    int64_t identity[2];   /* of the file that was opened: device, number */
    reader_kept kept[16];  /* each may hold 1 MiB of chunks */
    int next;              /* place of the next column that is not there */
    scalar_cache band[16];
    int next_band;
    reader_answer answer[64];
    int answers;
} reader_shelf;

/* Something that was found damaged when the file was opened. */
typedef struct reader_damage {
    struct reader_damage *next;
    bool mended; /* nothing is lost by it */
    char text[SR_FAILURE_TEXT];
} reader_damage;

typedef struct reader_names {
    char (*name)[SR_NAME_SIZE]; /* [count] */
    int count;
} reader_names;

/* A metric that the file declares. */
typedef struct reader_metric {
    char name[SR_NAME_SIZE], unit[SR_NAME_SIZE], definition[SR_DEFINITION_SIZE];
    sr_better better;
    int64_t place; /* in the order of declaration */
    run_column column;
    sr_run_metric shown;
} reader_metric;

/* A scalar of the host's own that the file declares. */
typedef struct reader_declared {
    char name[SR_NAME_SIZE], unit[SR_NAME_SIZE], definition[SR_DEFINITION_SIZE];
    run_column column;
    sr_run_declared shown;
} reader_declared;

struct sr_runfile {
    trailer *end; /* behind const: what of it was looked at */
    char *path;
    bool unfinished;  /* opened for SWMR reading */
    int64_t cut_at;   /* bytes of an unfinished file that lacks its end; 0: it is whole */
    sr_run_info info; /* its texts are owned */
    sr_run_site *site;
    site_index site_of;    /* by name */
    reader_metric *metric; /* [metrics] by place */
    int metrics;
    reader_declared *declared; /* [declared_count] */
    int declared_count;
    int64_t declared_metrics; /* -1: the file is from before metrics were declared */
    reader_names names[READER_GROUPS];
    reader_text **texts; /* head of a list: a cache behind const */
    reader_shelf *shelf; /* the same */
    reader_damage *damage;
    int64_t committed[COMMITTED_COUNT];                                  /* -1: unreadable */
    int64_t extent_least[COMMITTED_COUNT], extent_most[COMMITTED_COUNT]; /* of readable columns */
    int64_t stored_most[COMMITTED_COUNT]; /* rows that the best column has space for */
};

/* superblock.c: what the first bytes say. Fails when it is no run file, truncated, or not begun. */
sr_status reader_check_bytes(const char *path, const trailer *e, bool *unfinished, int64_t *cut_at,
                             sr_failure *why);
/* read_trailer.c: fills end; what it mends of the file, and what is wrong with itself, becomes damage. Once
 * the file is open, and check: all that nobody has read. */
sr_status reader_load_end(sr_runfile *f, sr_failure *why);
sr_status reader_tell_end(sr_runfile *f, sr_failure *why);
void reader_check_end(const sr_runfile *f, void (*tell)(void *context, sr_failure *why),
                      void *context);
/* read_growing.c: the same of a file that may be growing. */
sr_status reader_check_live_bytes(const char *path, const trailer *e, bool *unfinished,
                                  int64_t *cut_at, sr_failure *why);
/* The one of its two names that a run file has; malloc'd, NULL: none. */
char *reader_choose_path(const char *path, sr_failure *why);
/* Whether somebody writes the file of either name. Looks again: after a failure, and a pause; live: it
 * was written when that look began. */
bool reader_is_live(const char *path);
bool reader_looks_again(const char *path, bool live, const sr_failure *why, int looks);
/* Keeps `own`, met while opening, as one damage of the file and returns SR_OK: what else is there can
 * be read. Not where the file was cut, nor what is no damage: that goes to *why. */
sr_status reader_forgive(sr_runfile *f, const sr_failure *own, sr_failure *why);
/* open_file_cache.c: the open file, which may have to be opened again: 0 where that fails. */
h5_id reader_file(const sr_runfile *f);
sr_status reader_wake(const sr_runfile *f, sr_failure *why);
/* f, just opened, may rest; `beside` of sr_run_open_beside. Closed, it leaves. */
sr_status reader_join(sr_runfile *f, const sr_runfile *beside, sr_failure *why);
void reader_leave(sr_runfile *f);
/* Opens the file at path; *cut_at and *unfinished as reader_check_bytes. */
sr_status reader_open_file(const char *path, trailer *end, bool *unfinished, int64_t *cut_at,
                           h5_id *file, sr_failure *why);
/* Opens a dataset that must have this type, rank and (rank 2) number of columns. */
sr_status reader_open(const sr_runfile *f, const char *path, h5_type type, int rank,
                      int64_t columns, h5_id *set, h5_shape *shape, sr_failure *why);
/* The same for one whose size was fixed when the file was made: every value is stored, and memory may
 * be taken for all. */
sr_status reader_open_fixed(const sr_runfile *f, const char *path, h5_type type, int rank,
                            h5_id *set, h5_shape *shape, sr_failure *why);
/* The same for a column of a table of format.h. */
sr_status reader_open_column(const sr_runfile *f, const run_column *c, h5_id *set, h5_shape *shape,
                             sr_failure *why);
/* The same, without a cache of chunks (h5_open_dataset). */
sr_status reader_open_direct(const sr_runfile *f, const run_column *c, h5_id *set, h5_shape *shape,
                             sr_failure *why);
/* read_metrics.c: fills metric; says which one is missing; the column of /evals, or NULL. */
sr_status reader_list_metrics(sr_runfile *f, sr_failure *why);
sr_status reader_check_metrics(const sr_runfile *f, sr_failure *why);
const run_column *reader_eval_column(const sr_runfile *f, const char *name);
/* read_names.c: fills names, once metrics and declared are there. */
sr_status reader_list_names(sr_runfile *f, sr_failure *why);
/* read_custom.c: fills declared and info.ranks; the column of that name, or NULL. */
sr_status reader_list_declared(sr_runfile *f, sr_failure *why);
const run_column *reader_declared_column(const sr_runfile *f, const char *name, sr_scope scope);
/* An attribute that fits into text [size] and is one line (lines: or several). */
sr_status reader_line(const sr_runfile *f, const char *object, const char *attribute, bool lines,
                      char *text, size_t size, sr_failure *why);
/* read_spectra.c: fills info.spectra; reads every row, whose steps must be among those of /steps (exact:
 * of a file whose writer is done, no row may be in parts); reads /final. */
sr_status reader_count_spectra(sr_runfile *f, sr_failure *why);
sr_status reader_check_spectra(const sr_runfile *f, bool exact, sr_failure *why);
sr_status reader_check_final(const sr_runfile *f, sr_failure *why);
/* The pairs of one site, [info.pairs] each. */
typedef struct reader_pairs {
    float *x, *y;
    int32_t *feature;
} reader_pairs;

/* read_pairs.c: fills info.pairs; reads all of them, which may have values only where a pass was made. */
sr_status reader_count_pairs(sr_runfile *f, sr_failure *why);
sr_status reader_check_pairs(const sr_runfile *f, sr_failure *why);
/* False when out of memory; to be freed in any case. */
bool reader_pairs_init(reader_pairs *p, int64_t count);
void reader_pairs_free(reader_pairs *p);
/* The first column of a site's pairs that cannot be read, or NULL. passed: the final pass was made. */
const run_column *reader_read_pairs(const sr_runfile *f, int64_t site, const reader_pairs *p,
                                    sr_failure *why);
sr_status reader_check_site_pairs(const sr_runfile *f, int64_t site, bool passed,
                                  const reader_pairs *p, sr_failure *why);
/* What is wrong with pairs of a site of this width, or NULL: features are of the site, or it kept none. */
const char *reader_pairs_fault(const float *x, const float *y, const int32_t *feature,
                               int64_t count, int64_t width);
/* One row of /spectra in memory. */
typedef struct spectra_copy {
    int64_t step, *rows;              /* [S] */
    double *value[SR_SPECTRUM_COUNT]; /* [W] each, one block */
} spectra_copy;
/* False when out of memory; to be freed in any case. */
bool reader_spectra_init(spectra_copy *c, const sr_runfile *f);
void reader_spectra_free(spectra_copy *c);
/* Rows of one column of /spectra; a fixed dataset of rank 0, or of rank 1 with a value per site. */
sr_status reader_spectra_part(const sr_runfile *f, const run_column *c, const h5_rows *rows,
                              void *value, sr_failure *why);
sr_status reader_fixed(const sr_runfile *f, const char *path, h5_type type, int rank, void *value,
                       sr_failure *why);
/* Singular values: none is negative or larger than the one before; NaN may stand anywhere. */
bool reader_descends(const double *value, int64_t count);
bool reader_has_column(const sr_runfile *f, const run_column *c);

/* scalar_cache.c: whether a site's values are worth a band; rows of one of its sites. */
typedef sr_status reader_part(const sr_runfile *f, const run_column *c, const h5_rows *rows,
                              h5_type type, void *value, sr_failure *why);
void scalar_cache_free(sr_runfile *f);
bool scalar_cache_holds(const sr_runfile *f, int64_t count);
sr_status scalar_cache_read(const sr_runfile *f, const run_column *c, const h5_rows *rows,
                            reader_part *read, float *value, sr_failure *why);

/* display_norm.c: fills `called` from norm and layer_scale. */
void reader_call_site(sr_run_site *site);

#endif
