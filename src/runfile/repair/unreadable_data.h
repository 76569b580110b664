/* unreadable_data.h -- what could not be read while rows of a run file were copied.
 */
#ifndef RUNFILE_REPAIR_UNREADABLE_DATA_H
#define RUNFILE_REPAIR_UNREADABLE_DATA_H

#include "statrec/runfile.h"

/* A dataset of which something could not be read. */
typedef struct missed {
    struct missed *next;
    char dataset[2 * SR_NAME_SIZE];
    int64_t rows; /* -1: it has none */
    char reason[SR_FAILURE_TEXT];
} missed;

typedef struct unreadable_data {
    missed *first;
    int count;
} unreadable_data;

/* Notes that `rows` rows of /group/name (-1: all that there is of it) cannot be read. */
void copy_missed(unreadable_data *l, const char *group, const char *name, int64_t rows,
                 const sr_failure *why);
void unreadable_data_report(const unreadable_data *l, sr_lost_fn *tell, void *context);
void unreadable_data_free(unreadable_data *l);

#endif
