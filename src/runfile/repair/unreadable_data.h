/* unreadable_data.h -- lists data that could not be read while rows of a run file were copied. */
#ifndef RUNFILE_REPAIR_UNREADABLE_DATA_H
#define RUNFILE_REPAIR_UNREADABLE_DATA_H

#include "runfile/dataset_layout.h"
#include "statrec/runfile.h"

/* A dataset with unreadable data. */
typedef struct missed {
    char dataset[2 * SR_NAME_SIZE];
    int64_t rows; /* -1: it has none */
    char reason[SR_FAILURE_TEXT];
} missed;

/* Zero at first; free(entry) at the end. */
typedef struct unreadable_data {
    missed *entry; /* [count] */
    int count;
    int64_t capacity;
    bool full; /* out of memory: the list is not whole */
} unreadable_data;

/* Notes that `rows` rows of /group/name (-1: the whole dataset) are unreadable. */
void copy_missed(unreadable_data *l, const char *group, const char *name, int64_t rows,
                 const sr_failure *why);
/* SR_MEMORY unless the list is whole. path: of the file that was read. */
sr_status unreadable_data_check(const unreadable_data *l, const char *path, sr_failure *why);
void unreadable_data_report(const unreadable_data *l, sr_lost_fn *report, void *context);

/* Fills a row of a column with NaN or -1, by its type. */
void copy_fill(const run_column *c, int64_t columns, void *to);

#endif
