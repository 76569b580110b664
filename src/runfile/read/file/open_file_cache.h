/* open_file_cache.h -- limits how many of many run files HDF5 has open; data that an open file
   caches. */
#ifndef RUNFILE_READ_FILE_OPEN_FILE_CACHE_H
#define RUNFILE_READ_FILE_OPEN_FILE_CACHE_H

#include "journal/trailer.h"
#include "runfile/read/file/reader.h"
#include "runfile/read/file/scalar_cache.h"

/* A column that stays open between reads: opening costs more than reading a few rows. */
typedef struct reader_kept {
    const run_column *column; /* NULL: unused */
    h5_id set;
    int64_t chunk[2];
    bool direct; /* chunks are not cached */
} reader_kept;

/* Whether a column has values: programs ask for every site, and opening a dataset is slow. */
typedef struct reader_answer {
    const run_column *column;
    bool has;
} reader_answer;

/* Means of tokens and rows at some steps of a site (comparable.c). */
typedef struct reader_looks {
    bool known;
    int64_t site;
    double tokens, rows;
} reader_looks;

typedef struct open_file_cache open_file_cache;

/* Data that an open file caches. */
typedef struct reader_cache {
    reader_kept kept[16]; /* each caches up to 1 MiB of chunks */
    int next;             /* slot of `kept` to replace next */
    scalar_cache band[16];
    int next_band;
} reader_cache;

typedef struct reader_shelf {
    h5_id file;            /* 0: closed for now */
    open_file_cache *pool; /* NULL: stays open */
    int64_t identity[2];   /* device and inode of the opened file */
    reader_cache *cache;   /* NULL: nothing cached */
    reader_answer *answer; /* [answers] */
    int64_t answers, answer_capacity;
    reader_looks looks[4];
    int next_looks;
    int64_t last_step; /* last step of a file that no longer grows; -1: not read yet */
} reader_shelf;

/* The open file; opens it again if necessary. 0 when that fails. */
h5_id reader_file(const sr_runfile *f);
/* Opens the file again if it is closed for now. */
sr_status reader_wake(const sr_runfile *f, sr_failure *why);
/* Its cache. NULL when out of memory. */
reader_cache *reader_cache_of(const sr_runfile *f, sr_failure *why);
/* Closes the datasets in the cache, and frees it. */
void reader_drop_cache(const sr_runfile *f);
/* Adds f, just opened, to the pool of `beside` (sr_run_open_beside); reader_leave removes it. */
sr_status reader_join(sr_runfile *f, const sr_runfile *beside, sr_failure *why);
void reader_leave(sr_runfile *f);
/* Opens the HDF5 file at path; *cut_at and *unfinished as in superblock_check. */
sr_status reader_open_file(const char *path, trailer *end, bool *unfinished, int64_t *cut_at,
                           h5_id *file, sr_failure *why);

#endif
