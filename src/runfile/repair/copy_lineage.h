/* copy_lineage.h -- whether run files are parts of one run. */
#ifndef RUNFILE_REPAIR_COPY_LINEAGE_H
#define RUNFILE_REPAIR_COPY_LINEAGE_H

#include "runfile/read/file/reader.h"

/* SR_USAGE names the first property that differs between f and the run in `first`. */
sr_status copy_lineage_check(const sr_runfile *first, const sr_runfile *f, sr_failure *why);

#endif
