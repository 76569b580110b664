/* cmd_info_follow.c -- statrec info --follow, and the writer of an unfinished run file. The writer
 * is the process that has it open for writing, from /proc on the host named in the file. */
#define _DEFAULT_SOURCE /* d_name of dirent, DT_* */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/tsv.h"
#include "cli/info/cmd_info_parts.h"

enum { PROC_PATH = 300 };

/* -- the writer ------------------------------------------------------------------------------ */

/* True if descriptor `name` of a process is the file, open for writing. */
static bool writes(const char *process, const char *name, const struct stat *file) {
    char path[PROC_PATH], line[64];
    struct stat s;
    unsigned flags = 0;
    snprintf(path, sizeof path, "/proc/%.20s/fd/%.20s", process, name);
    if (stat(path, &s) != 0 || s.st_dev != file->st_dev || s.st_ino != file->st_ino) return false;
    snprintf(path, sizeof path, "/proc/%.20s/fdinfo/%.20s", process, name);
    FILE *in = fopen(path, "r");
    if (!in) return false;
    while (fgets(line, sizeof line, in))
        if (sscanf(line, "flags: %o", &flags) == 1) break;
    fclose(in);
    return (flags & O_ACCMODE) != O_RDONLY;
}

/* True when the process writes the file; *hidden when that is unknown. */
static bool process_writes(const char *process, const struct stat *file, bool *hidden) {
    char path[PROC_PATH];
    snprintf(path, sizeof path, "/proc/%.20s/fd", process);
    DIR *fds = opendir(path);
    if (!fds) {
        *hidden |= errno == EACCES || errno == EPERM;
        return false;
    }
    bool found = false;
    for (struct dirent *e; !found && (e = readdir(fds));)
        found = isdigit((unsigned char)e->d_name[0]) && writes(process, e->d_name, file);
    closedir(fds);
    return found;
}

static writer_state search_processes(const struct stat *file, long *pid) {
    bool hidden = false, found = false;
    DIR *processes = opendir("/proc");
    if (!processes) return WRITER_UNKNOWN;
    for (struct dirent *e; !found && (e = readdir(processes));) {
        if (!isdigit((unsigned char)e->d_name[0])) continue;
        found = process_writes(e->d_name, file, &hidden);
        if (found && pid) *pid = strtol(e->d_name, NULL, 10);
    }
    closedir(processes);
    /* Only root sees all processes of other users, which can hardly write my file. */
    if (!found && hidden && file->st_uid != geteuid()) return WRITER_UNKNOWN;
    return found ? WRITER_ALIVE : WRITER_GONE;
}

writer_state cmd_info_writer(const sr_run_info *info, long *pid, double *idle) {
    char host[256] = "";
    struct stat file;
    struct timespec now;
    if (stat(info->path, &file) != 0) return WRITER_UNKNOWN;
    clock_gettime(CLOCK_REALTIME, &now);
    if (idle)
        *idle = fmax(0, difftime(now.tv_sec, file.st_mtim.tv_sec) +
                            1e-9 * (double)(now.tv_nsec - file.st_mtim.tv_nsec));
    gethostname(host, sizeof host - 1);
    if (*info->host && strcmp(info->host, host) != 0) return WRITER_UNKNOWN;
    return search_processes(&file, pid);
}

/* -- following ------------------------------------------------------------------------------- */

typedef struct progress_seen {
    int64_t steps, evals;
    /* checks in a row without a writer: a run that ends closes its file before renaming */
    int gone;
} progress_seen;

/* Prints a line for new rows. */
static sr_status print_news(const sr_runfile *f, progress_seen *seen, sr_failure *why) {
    const sr_run_info *info = sr_run_get_info(f);
    int64_t step = 0;
    double loss = NAN;
    if (info->steps <= seen->steps && info->evals <= seen->evals) return SR_OK;
    sr_status status = SR_OK;
    if (info->steps > 0) status = sr_run_step_ints(f, "step", info->steps - 1, 1, &step, why);
    if (status == SR_OK && info->steps > 0)
        status = sr_run_step_reals(f, "loss", info->steps - 1, 1, &loss, why);
    if (status != SR_OK) return status;
    printf("step %lld, loss %.6g, %lld steps, %lld vectors, %lld evaluations\n", (long long)step,
           loss, (long long)info->steps, (long long)info->vectors, (long long)info->evals);
    fflush(stdout);
    seen->steps = info->steps, seen->evals = info->evals;
    return SR_OK;
}

/* Checks the file once; *ended: with the exit status, when the run or its writer ended. */
static sr_status look(const char *path, progress_seen *seen, bool *ended, int *exit_status,
                      sr_failure *why) {
    sr_runfile *f = sr_run_open(path, why);
    if (!f) return why->status;
    const sr_run_info *info = sr_run_get_info(f);
    const bool running = strcmp(info->status, "running") == 0;
    seen->gone = running && cmd_info_writer(info, NULL, NULL) == WRITER_GONE ? seen->gone + 1 : 0;
    const bool gone = seen->gone > 1;
    sr_status status = print_news(f, seen, why);
    *ended = !running || gone;
    *exit_status = gone ? TOOL_FAILED : TOOL_DONE;
    if (status == SR_OK && !running) {
        tsv_escape(stdout, info->status);
        if (*info->reason) fputs(": ", stdout);
        tsv_escape(stdout, info->reason);
        putchar('\n');
    }
    if (status == SR_OK && gone) printf("unfinished: its writer is gone\n");
    sr_run_close(f);
    return status;
}

/* The file may be renamed or written during a check: only a lasting failure counts. */
int cmd_info_follow(const tool *t, const char *path) {
    enum { FAILURES = 5 };
    const struct timespec pause = {.tv_nsec = 500000000};
    progress_seen seen = {0, 0, 0};
    bool ended = false;
    int exit_status = TOOL_DONE;
    tool_catch_signals();
    for (int failures = 0; !ended && !tool_signal();) {
        sr_failure why = {0};
        if (look(path, &seen, &ended, &exit_status, &why) == SR_OK)
            failures = 0;
        else if (++failures == FAILURES || seen.steps == 0)
            return tool_report(t, &why);
        if (!ended) nanosleep(&pause, NULL);
    }
    return tool_signal() ? 128 + tool_signal() : exit_status;
}
