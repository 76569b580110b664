/* write_running.h -- writes running statistics; a run may resume from them. */
#ifndef RUNFILE_WRITE_WRITE_RUNNING_H
#define RUNFILE_WRITE_WRITE_RUNNING_H

#include "runfile/write/run_writer.h"

/* Writes a row of /running: the values [W] of SR_RUNNING after this step. */
sr_status writer_put_running(run_writer *w, int64_t step, const double *const value[RUN_RUNNING],
                             sr_failure *why);

#endif
