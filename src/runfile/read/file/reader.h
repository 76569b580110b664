/* reader.h -- an open run file, as the files of runfile/read and runfile/repair share it. */
#ifndef RUNFILE_READ_FILE_READER_H
#define RUNFILE_READ_FILE_READER_H

#include "base/containers/map.h"
#include "runfile/dataset_layout.h"
#include "statrec/runfile.h"

/* A `definition` attribute, read once. */
typedef struct reader_text {
    struct reader_text *next;
    char *dataset, *text;
} reader_text;

typedef struct reader_names {
    char (*name)[SR_NAME_SIZE]; /* [count] */
    int count;
} reader_names;

typedef struct shared_tables shared_tables;

enum { READER_GROUPS = 5 };
extern const char *const reader_group_names[READER_GROUPS];

struct sr_runfile {
    struct trailer *end; /* records which extents were verified, even of a const file */
    char *path;
    bool unfinished;  /* opened for SWMR reading */
    int64_t cut_at;   /* bytes of a truncated unfinished file; 0: not truncated */
    sr_run_info info; /* its texts are owned */
    sr_run_site *site;
    map site_names;               /* different names */
    int32_t *site_of;             /* [site_names.count] the first site of each name */
    struct reader_metric *metric; /* [metrics] in the order of declaration */
    int metrics;
    struct reader_declared *declared; /* [declared_count] */
    int declared_count;
    int64_t declared_metrics; /* -1: the file predates the declaration of metrics */
    reader_names names[READER_GROUPS];
    shared_tables
        *shared;         /* has the tables above, from `site` on; NULL: they are this file's own */
    reader_text **texts; /* head of a list; filled even of a const file */
    struct reader_shelf *shelf;
    struct damage *damage; /* [damages] found while opening */
    int64_t damages, damage_capacity;
    int64_t committed[COMMITTED_COUNT];    /* -1: unreadable */
    int64_t extent_least[COMMITTED_COUNT]; /* rows of the shortest readable column */
    int64_t extent_most[COMMITTED_COUNT];  /* rows of the longest readable column */
    int64_t stored_most[COMMITTED_COUNT];  /* most rows that a column has space for */
};

/* As sr_run_definition, with the reason when a definition cannot be read: *text is "" then. */
sr_status reader_definition(const sr_runfile *f, const char *dataset, const char **text,
                            sr_failure *why);

#endif
