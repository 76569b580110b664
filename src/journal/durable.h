/* durable.h -- bytes that are on the disk. */
#ifndef JOURNAL_DURABLE_H
#define JOURNAL_DURABLE_H

#include "statrec/base.h"

/* What has been written to a file, or the names in a directory, survives the machine; file systems that
 * know nothing of it are fine. */
sr_status durable_synchronise(const char *path, sr_failure *why);
/* The same of the directory that a path is in: what names it holds. */
sr_status durable_directory(const char *path, sr_failure *why);

#endif
