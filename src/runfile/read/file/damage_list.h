/* damage_list.h -- damage that was found while a file was opened. */
#ifndef RUNFILE_READ_FILE_DAMAGE_LIST_H
#define RUNFILE_READ_FILE_DAMAGE_LIST_H

#include "runfile/read/file/reader.h"

typedef struct damage {
    bool repaired; /* nothing is lost */
    char text[SR_FAILURE_TEXT];
} damage;

/* Adds the failure `own` to the list and returns SR_OK, so that opening continues. Failures that
 * are not damage, and failures of a truncated file, go to *why. */
sr_status damage_list_add(sr_runfile *f, const sr_failure *own, sr_failure *why);

#endif
