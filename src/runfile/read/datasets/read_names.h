/* read_names.h -- the names of a run file's columns, by group (sr_run_name). */
#ifndef RUNFILE_READ_DATASETS_READ_NAMES_H
#define RUNFILE_READ_DATASETS_READ_NAMES_H

#include "runfile/read/file/reader.h"

/* Fills f->names. Call it after metrics and custom scalars were listed. */
sr_status reader_list_names(sr_runfile *f, sr_failure *why);

#endif
