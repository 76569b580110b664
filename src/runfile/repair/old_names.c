/* old_names.c -- functions under the names that they had up to version 0.1, for programs built
   then. */
#include "statrec/runfile.h"

void sr_own_process(void) {
    sr_disable_hdf5_atexit();
}

const char *sr_run_mended(const sr_runfile *f, int i) {
    return sr_run_repaired(f, i);
}

bool sr_run_has_sums(const sr_runfile *f) {
    return sr_run_has_checksums(f);
}

sr_status sr_run_recover_telling(const char *broken, const char *path, bool force,
                                 int64_t up_to_step, sr_recovery *result, sr_lost_fn *report,
                                 void *context, sr_failure *why) {
    return sr_run_recover_report(broken, path, force, up_to_step, result, report, context, why);
}
