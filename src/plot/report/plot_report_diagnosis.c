/* plot_report_diagnosis.c -- runs the program statrec diagnose for each run: the modules of figures
 * do not depend on verdicts. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/containers/vector.h"
#include "plot/plot_process.h"
#include "plot/plot_tsv.h"
#include "plot/report/plot_report.h"

/* -- its program ----------------------------------------------------------------------------- */

typedef struct job {
    char *argv[6];
    char output[2 * PLOT_PATH], errors[2 * PLOT_PATH];
} job;

static void make_job(const report *r, int run, job *j, plot_process *p) {
    static char program[] = "statrec", command[] = "diagnose", format[] = "--format=tsv";
    *j = (job){.argv = {program, command, format, r->request->run[run].path, NULL}};
    snprintf(j->output, sizeof j->output, "%s/diagnosis.%d.tsv", r->folder, run + 1);
    snprintf(j->errors, sizeof j->errors, "%s/diagnosis.%d.stderr", r->scratch.path, run + 1);
    *p = (plot_process){.argv = j->argv, .output = j->output, .errors = j->errors};
}

/* -- its table ------------------------------------------------------------------------------- */

typedef struct columns {
    int question, verdict, rank, severity, statistic, value, low, high, limit, site, figure,
        conclusion;
} columns;

static sr_status find_columns(const plot_tsv *t, columns *c, sr_failure *why) {
    const struct {
        const char *name;
        int *at;
    } wanted[] = {
        {"question", &c->question},   {"verdict", &c->verdict}, {"rank", &c->rank},
        {"severity", &c->severity},   {"value", &c->value},     {"low", &c->low},
        {"statistic", &c->statistic}, {"high", &c->high},       {"limit", &c->limit},
        {"site", &c->site},           {"figure", &c->figure},   {"conclusion", &c->conclusion}};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        if ((*wanted[i].at = plot_tsv_find(t, wanted[i].name)) < 0)
            return sr_fail(why, SR_FORMAT, "the table of statrec diagnose has no column %s",
                           wanted[i].name);
    return SR_OK;
}

static int weight_of(const char *severity) {
    static const char *const words[] = {"-", "minor", "notable", "severe"};
    for (int i = 3; i > 0; i--)
        if (strcmp(severity, words[i]) == 0) return i;
    return 0;
}

static sr_status add_finding(report *r, int run, const plot_tsv *t, const columns *c,
                             sr_failure *why) {
    if (!vector_reserve(&r->finding, &r->capacity, r->findings + 1, sizeof *r->finding))
        return sr_fail(why, SR_MEMORY, "out of memory");
    report_finding *f = &r->finding[r->findings++];
    *f = (report_finding){
        .run = run, .weight = weight_of(t->cell[c->severity]), .rank = atoi(t->cell[c->rank])};
#define TAKE(field) snprintf(f->field, sizeof f->field, "%s", t->cell[c->field])
    TAKE(question), TAKE(severity), TAKE(statistic), TAKE(site), TAKE(value), TAKE(low);
    TAKE(high), TAKE(limit), TAKE(figure);
#undef TAKE
    if (f->weight > r->verdict[run].weight) r->verdict[run].weight = f->weight;
    return SR_OK;
}

static sr_status read_table(report *r, int run, const char *path, sr_failure *why) {
    plot_tsv t;
    columns c;
    bool more;
    report_verdict *v = &r->verdict[run];
    sr_status status = plot_tsv_open(&t, path, why);
    if (status != SR_OK) return status;
    status = find_columns(&t, &c, why);
    while (status == SR_OK && (status = plot_tsv_next(&t, &more, why)) == SR_OK && more) {
        snprintf(v->conclusion, sizeof v->conclusion, "%s", t.cell[c.conclusion]);
        if (strcmp(t.cell[c.verdict], "found") == 0) status = add_finding(r, run, &t, &c, why);
    }
    plot_tsv_close(&t);
    return status;
}

/* -- all of them ----------------------------------------------------------------------------- */

static int by_weight(const void *left, const void *right) {
    const report_finding *a = left, *b = right;
    if (a->weight != b->weight) return b->weight - a->weight;
    return a->rank != b->rank ? a->rank - b->rank : a->run - b->run;
}

static sr_status take_result(report *r, int run, const job *j, sr_failure *why) {
    report_verdict *v = &r->verdict[run];
    if (v->failure.status == SR_OK) return read_table(r, run, j->output, why);
    unlink(j->output);
    if (!report_is_fatal(v->failure.status)) return SR_OK;
    *why = v->failure;
    return why->status;
}

sr_status report_diagnose(report *r, sr_failure *why) {
    const int count = report_own(r);
    job *j = calloc((size_t)count, sizeof *j);
    plot_process *p = calloc((size_t)count, sizeof *p);
    sr_failure *each = calloc((size_t)count, sizeof *each);
    r->verdict = calloc((size_t)count, sizeof *r->verdict);
    sr_status status =
        j && p && each && r->verdict ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    for (int i = 0; i < count && status == SR_OK; i++) make_job(r, i, &j[i], &p[i]);
    if (status == SR_OK) status = plot_table_cache_run(&r->kept, p, count, each, why);
    for (int i = 0; i < count && status == SR_OK; i++) {
        r->verdict[i].failure = each[i];
        status = take_result(r, i, &j[i], why);
    }
    if (status == SR_OK && r->findings)
        qsort(r->finding, (size_t)r->findings, sizeof *r->finding, by_weight);
    free(j), free(p), free(each);
    return status;
}
