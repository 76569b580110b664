/* progress.c -- writes the progress line with rate and remaining time. */
#include "base/program/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

/* Earlier rates are misleading: the first update waits for memory and libraries. */
static const double rate_seconds = 1;
static const int64_t rate_count = 10;

/* Seconds between two lines: on a terminal, and in a log. */
static const double terminal_interval = 0.2, plain_interval = 10;

double progress_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double progress_lap(double *mark) {
    const double now = progress_clock(), passed = now - *mark;
    *mark = now;
    return passed;
}

static bool is_terminal(void) {
    const char *term = getenv("TERM");
    return isatty(STDERR_FILENO) && term && *term && strcmp(term, "dumb") != 0;
}

void progress_begin(progress *p, const char *label, const char *unit, int64_t total, bool quiet) {
    double now = progress_clock();
    *p = (progress){.label = label, .unit = unit, .total = total, .quiet = quiet};
    p->start = p->last = now;
    p->terminal = is_terminal();
    p->interval = p->terminal ? terminal_interval : plain_interval;
}

void progress_duration(double seconds, char *text, size_t size) {
    int64_t s = seconds < 1e9 ? (int64_t)(seconds + 0.5) : 999999999;
    if (s < 60)
        snprintf(text, size, "%" PRId64 "s", s);
    else if (s < 3600)
        snprintf(text, size, "%" PRId64 "m%02" PRId64 "s", s / 60, s % 60);
    else if (s < 86400)
        snprintf(text, size, "%" PRId64 "h%02" PRId64 "m", s / 3600, s / 60 % 60);
    else
        snprintf(text, size, "%" PRId64 "d%02" PRId64 "h", s / 86400, s / 3600 % 24);
}

/* "train: 120/4000 updates (3.0%), loss 4.21, 12.3 updates/s, 5m15s left" */
static void format_line(const progress *p, int64_t done, const char *detail, char *text,
                        size_t size) {
    double seconds = progress_clock() - p->start;
    const bool known = seconds >= rate_seconds || done >= rate_count;
    double rate = known && seconds > 0 ? (double)done / seconds : 0;
    char count[96], pace[96] = "", left[64] = "";
    if (p->total > 0)
        snprintf(count, sizeof count, "%" PRId64 "/%" PRId64 " %.20s (%.1f%%)", done, p->total,
                 p->unit, 100.0 * (double)done / (double)p->total);
    else
        snprintf(count, sizeof count, "%" PRId64 " %.20s", done, p->unit);
    if (rate > 0)
        snprintf(pace, sizeof pace, rate < 1000 ? ", %.3g %.20s/s" : ", %.0f %.20s/s", rate,
                 p->unit);
    if (p->total > done && rate > 0) {
        char duration[32];
        progress_duration((double)(p->total - done) / rate, duration, sizeof duration);
        snprintf(left, sizeof left, ", %s left", duration);
    }
    snprintf(text, size, "%s: %s%s%s%s%s", p->label, count, detail ? ", " : "",
             detail ? detail : "", pace, left);
}

/* Columns of the terminal on stderr; a longer line would wrap and not be rewritten. */
static int terminal_width(void) {
#ifdef TIOCGWINSZ
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1) return size.ws_col - 1;
#endif
    return 79;
}

void progress_show(progress *p, int64_t done, const char *detail) {
    if (p->quiet) return;
    double now = progress_clock();
    bool finished = p->total > 0 && done >= p->total;
    if (now - p->last < p->interval && !finished) return;
    char line[512];
    format_line(p, done, detail, line, sizeof line);
    if (p->terminal)
        fprintf(stderr, "\r%.*s\033[K", terminal_width(), line);
    else
        fprintf(stderr, "%s\n", line);
    p->drawn = p->terminal;
    p->last = now;
}

void progress_end(progress *p) {
    if (p->drawn) fputc('\n', stderr);
    p->drawn = false;
}
