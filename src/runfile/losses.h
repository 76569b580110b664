/* losses.h -- what could not be read while rows of a run file were copied.
 */
#ifndef RUNFILE_LOSSES_H
#define RUNFILE_LOSSES_H

#include "statrec/runfile.h"

/* A dataset of which something could not be read. */
typedef struct missed {
    struct missed *next;
    char dataset[2 * SR_NAME_SIZE];
    int64_t rows; /* -1: it has none */
    char reason[SR_FAILURE_TEXT];
} missed;

typedef struct copy_losses {
    missed *first;
    int count;
} copy_losses;

/* Notes that `rows` rows of /group/name (-1: all that there is of it) cannot be read. */
void copy_missed(copy_losses *l, const char *group, const char *name, int64_t rows,
                 const sr_failure *why);
void losses_tell(const copy_losses *l, sr_lost_fn *tell, void *context);
void losses_free(copy_losses *l);

#endif
