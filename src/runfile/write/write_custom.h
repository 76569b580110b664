/* write_custom.h -- writes custom scalars. */
#ifndef RUNFILE_WRITE_WRITE_CUSTOM_H
#define RUNFILE_WRITE_WRITE_CUSTOM_H

#include "runfile/write/run_writer.h"

/* A new custom scalar without a name; NULL when out of memory. */
run_declared *writer_add_declared(run_writer *w, sr_failure *why);
/* Sets the value of scalar i in the current row. */
sr_status writer_put_declared(run_writer *w, int i, int64_t site, double value, sr_failure *why);

#endif
