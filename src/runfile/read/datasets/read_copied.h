/* read_copied.h -- the origin of a copied run (/copy). */
#ifndef RUNFILE_READ_DATASETS_READ_COPIED_H
#define RUNFILE_READ_DATASETS_READ_COPIED_H

#include "runfile/read/file/reader.h"

/* The texts of /copy, malloc'd; all NULL if the run is not a copy. Free them in any case. */
sr_status reader_copied(const sr_runfile *f, char *text[COPY_TEXTS], sr_failure *why);

#endif
