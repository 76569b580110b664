/* cmd_diagnose_follow.c -- see cmd_diagnose_follow.h. A growing file is diagnosed again when it has
 * new rows. Each finding is printed once; its question and severity identify it. */
#define _POSIX_C_SOURCE 200809L /* popen, setenv */
#include "cli/cmd_diagnose_follow.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "base/tsv.h"
#include "cli/info/cmd_info_parts.h"

enum { FINDINGS = 128, FAILURES = 5 };

typedef struct follower {
    const tool *tool;
    diagnose_follow *of;
    int64_t steps, evals; /* that were diagnosed; -1: none */
    int told;
    char name[FINDINGS][64]; /* [told] "question severity" */
    int gone;                /* looks in a row without a writer, as info --follow counts them */
    bool ended;
    int status;
} follower;

static bool is_new(follower *f, const diagnose_finding *found) {
    char name[64];
    snprintf(name, sizeof name, "%s %s", found->question, found->severity);
    for (int i = 0; i < f->told; i++)
        if (strcmp(f->name[i], name) == 0) return false;
    if (f->told == FINDINGS) return false;
    memcpy(f->name[f->told++], name, sizeof name);
    return true;
}

/* By the shell, with the line in the environment and on standard input, which it need not read. */
static void run_command(const follower *f, const diagnose_finding *found) {
    setenv("STATREC_FINDING", found->line, 1);
    setenv("STATREC_QUESTION", found->question, 1);
    setenv("STATREC_SEVERITY", found->severity, 1);
    setenv("STATREC_RUN", f->of->path, 1);
    FILE *in = popen(f->of->command, "w");
    int status = -1;
    if (in) {
        setvbuf(in, NULL, _IONBF, 0); /* else pclose fails for a command that has not read */
        fprintf(in, "%s\n", found->line);
        status = pclose(in);
    }
    if (status != 0)
        tool_warn(f->tool, "--on-finding: the command ended with status %d",
                  status > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : status);
}

static void tell(void *context, const diagnose_finding *found) {
    follower *f = context;
    if (found->weight > f->of->worst) f->of->worst = found->weight;
    if (!is_new(f, found)) return;
    tsv_escape(stdout, found->line);
    putchar('\n');
    fflush(stdout);
    if (f->of->command[0]) run_command(f, found);
}

static sr_status look(follower *f, sr_failure *why) {
    sr_runfile *run = sr_run_open(f->of->path, why);
    if (!run) return why->status;
    const sr_run_info *info = sr_run_get_info(run);
    const bool running = strcmp(info->status, "running") == 0;
    f->gone = running && cmd_info_writer(info, NULL, NULL) == WRITER_GONE ? f->gone + 1 : 0;
    f->ended = !running || f->gone > 1;
    f->status = f->gone > 1 ? TOOL_FAILED : TOOL_DONE;
    sr_status status = SR_OK;
    if (f->ended || info->steps != f->steps || info->evals != f->evals)
        status = diagnose_findings(run, f->of->path, f->of->synchronizes, tell, f, why);
    f->steps = info->steps, f->evals = info->evals;
    if (status == SR_OK && f->ended) {
        tsv_escape(stdout, running ? "unfinished: its writer is gone" : info->status);
        putchar('\n');
    }
    if (status != SR_OK) f->ended = false;
    sr_run_close(run);
    return status;
}

/* Half a second where the end of the run is near, as info --follow waits. */
static void wait_for_rows(const follower *f, bool soon) {
    const double seconds = soon && f->of->every > 0.5 ? 0.5 : f->of->every;
    struct timespec pause = {.tv_sec = (time_t)seconds};
    pause.tv_nsec = (long)(1e9 * (seconds - (double)pause.tv_sec));
    if (!tool_signal()) nanosleep(&pause, NULL);
}

/* The file may be renamed or written during a look: only a lasting failure counts. */
int cmd_diagnose_follow(const tool *t, diagnose_follow *of) {
    follower f = {.tool = t, .of = of, .steps = -1, .evals = -1};
    tool_catch_signals();
    for (int failures = 0; !f.ended && !tool_signal();) {
        sr_failure why = {0};
        if (look(&f, &why) == SR_OK)
            failures = 0;
        else if (++failures == FAILURES || f.steps < 0)
            return tool_report(t, &why);
        if (!f.ended) wait_for_rows(&f, failures > 0 || f.gone > 0);
    }
    return tool_signal() ? 128 + tool_signal() : f.status;
}
