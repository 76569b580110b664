/* shared_tables.h -- sites, metrics and names that open run files have in common. */
#ifndef RUNFILE_READ_FILE_SHARED_TABLES_H
#define RUNFILE_READ_FILE_SHARED_TABLES_H

#include "runfile/read/file/reader.h"

/* Replaces the tables of f by equal ones in the list, or adds them to it. Without memory f keeps
 * its own. */
void shared_tables_join(sr_runfile *f, shared_tables **list);
/* Frees the tables of f when no other file of the list uses them. */
void shared_tables_leave(sr_runfile *f, shared_tables **list);
/* Frees the tables of a file without a list. */
void shared_tables_free(sr_runfile *f);

#endif
