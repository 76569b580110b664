/* plot_report_interactive.c -- the panels of statrec view in a file of the report, written by its
 * program; see plot_report.h. */
#include <stdlib.h>

#include "plot/plot_process.h"
#include "plot/report/plot_report.h"

sr_status report_interactive(report *r, sr_failure *why) {
    static char program[] = "statrec", command[] = "view", option[] = "--export", end[] = "--";
    char output[2 * PLOT_PATH], errors[2 * PLOT_PATH];
    const int count = report_own(r);
    char **argv = calloc((size_t)count + 6, sizeof *argv);
    if (!argv) return sr_fail(why, SR_MEMORY, "out of memory");
    snprintf(output, sizeof output, "%s/%s", r->folder, REPORT_INTERACTIVE);
    snprintf(errors, sizeof errors, "%s/interactive.stderr", r->scratch.path);
    int n = 0;
    argv[n++] = program, argv[n++] = command, argv[n++] = option, argv[n++] = output;
    argv[n++] = end;
    for (int i = 0; i < count; i++) argv[n++] = r->request->run[i].path;
    const plot_process p = {.argv = argv, .output = "/dev/null", .errors = errors};
    r->interactive = plot_process_run(&p, why) == SR_OK;
    free(argv);
    return r->interactive ? SR_OK : why->status;
}
