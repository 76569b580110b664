#define _XOPEN_SOURCE 700
#include "testing/check.h"

#include <dirent.h>
#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Error in units of the tolerance: above 1 is a failure. */
static double excess(double got, double want, double rtol, double atol) {
    if (isnan(got) || isnan(want)) return isnan(got) && isnan(want) ? 0 : INFINITY;
    if (isinf(got) || isinf(want)) return got == want ? 0 : INFINITY;
    double allowed = atol + rtol * fabs(want), error = fabs(got - want);
    if (error <= allowed) return allowed > 0 ? error / allowed : 0;
    return allowed > 0 ? error / allowed : INFINITY;
}

bool check_close(const char *name, const double *got, const double *want, int64_t count,
                 double rtol, double atol) {
    int64_t bad = 0, worst = -1;
    double most = 1;
    for (int64_t i = 0; i < count; i++) {
        double e = excess(got[i], want[i], rtol, atol);
        if (e <= 1) continue;
        bad++;
        if (worst < 0 || e > most) most = e, worst = i;
    }
    if (!bad) return true;
    fprintf(stderr,
            "%s: %lld of %lld elements differ; worst [%lld]: got %.17g want %.17g, %.3g times the "
            "tolerance\n",
            name, (long long)bad, (long long)count, (long long)worst, got[worst], want[worst],
            most);
    return false;
}

void check_near_double(const char *name, const double *got, const double *want, int64_t count,
                       double rtol, double atol) {
    if (!check_close(name, got, want, count, rtol, atol)) fail_msg("%s differs", name);
}

void check_near_float(const char *name, const float *got, const double *want, int64_t count,
                      double rtol, double atol) {
    double *wide = malloc((size_t)count * sizeof *wide + 1);
    assert_non_null(wide);
    for (int64_t i = 0; i < count; i++) wide[i] = (double)got[i];
    bool same = check_close(name, wide, want, count, rtol, atol);
    free(wide);
    if (!same) fail_msg("%s differs", name);
}

static bool holds(double got, check_relation relation, double bound) {
    switch (relation) {
    case CHECK_LESS:
        return got < bound;
    case CHECK_LESS_OR_EQUAL:
        return got <= bound;
    case CHECK_GREATER:
        return got > bound;
    case CHECK_GREATER_OR_EQUAL:
        return got >= bound;
    case CHECK_EQUAL:
        return got == bound;
    case CHECK_UNEQUAL:
        return got != bound;
    }
    return false;
}

void check_numbers(const char *text, double got, check_relation relation, double bound,
                   const char *file, int line) {
    if (holds(got, relation, bound)) return;
    print_error("%s:%d: %s fails: %.17g and %.17g\n", file, line, text, got, bound);
    _fail(file, line);
}

void check_distance(const char *text, double got, double want, check_relation relation,
                    double bound, const char *file, int line) {
    double gap = fabs(got - want);
    if (holds(gap, relation, bound)) return;
    print_error("%s:%d: %s fails: %.17g and %.17g differ by %.17g, bound %.17g\n", file, line, text,
                got, want, gap, bound);
    _fail(file, line);
}

void check_ok(sr_status status, const sr_failure *why) {
    if (status != SR_OK) fail_msg("%s: %s", sr_status_name(status), why ? why->text : "");
}

void check_failure(const sr_failure *why, sr_status status, const char *part) {
    if (why->status != status || !strstr(why->text, part))
        fail_msg("expected %s with '%s', got %s: %s", sr_status_name(status), part,
                 sr_status_name(why->status), why->text);
}

const char *check_shared(const char *below) {
    static char path[4096];
    const char *root = getenv("STATREC_SHARED");
    snprintf(path, sizeof path, "%s/%s", root && *root ? root : "../shared", below);
    if (access(path, R_OK) == 0) return path;
    printf("skipped: %s not found\n", path);
    return NULL;
}

static char temporary[4096];

static int remove_one(const char *path, const struct stat *s, int flag, struct FTW *at) {
    (void)s, (void)flag, (void)at;
    return remove(path);
}

static void remove_temporary(void) {
    nftw(temporary, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *check_temporary(void) {
    if (temporary[0]) return temporary;
    const char *root = getenv("TMPDIR");
    snprintf(temporary, sizeof temporary, "%s/statrec-test-XXXXXX", root && *root ? root : "/tmp");
    if (!mkdtemp(temporary)) fail_msg("mkdtemp: %s", temporary);
    atexit(remove_temporary);
    return temporary;
}

/* -- files ----------------------------------------------------------------------------------- */

void check_write(const char *path, const char *text) {
    FILE *out = fopen(path, "w");
    if (!out) fail_msg("%s is not written", path);
    fputs(text, out);
    assert_int_equal(fclose(out), 0);
}

int check_descriptors(void) {
    DIR *d = opendir("/proc/self/fd");
    int count = 0;
    assert_non_null(d);
    while (readdir(d)) count++;
    closedir(d);
    return count;
}

/* -- choice of tests ------------------------------------------------------------------------- */

__attribute__((constructor)) static void choose_tests(void) {
    const char *pattern = getenv("STATREC_TEST");
    if (pattern) cmocka_set_test_filter(pattern);
}

/* -- places ---------------------------------------------------------------------------------- */

long check_places(long few) {
    static bool told;
    const char *count = getenv("STATREC_TORTURE");
    if (!count) return few;
    if (!told) printf("places: %s\n", count);
    told = true;
    return strtol(count, NULL, 10);
}
