/* declare.h -- creates the groups, datasets and attributes of a run file. */
#ifndef RUNFILE_WRITE_DECLARE_H
#define RUNFILE_WRITE_DECLARE_H

#include "runfile/write/run_writer.h"

/* Creates the datasets that w->layout describes; fills the dataset handles of w. */
sr_status declare_run_file(run_writer *w, const sr_run_info *info, sr_failure *why);

#endif
