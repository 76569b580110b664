/* Legend labels: of model, norm, data and seed, what differs between the runs. */
#include <stdlib.h>
#include <string.h>

#include "plot.h"
#include "statrec/runfile.h"

enum { PARTS = 4, PART = 80 };

typedef struct parts {
    char text[PARTS][PART]; /* model, norm, data, seed */
} parts;

static void copy(char *to, size_t size, const char *from) {
    snprintf(to, size, "%s", from && from[0] ? from : "?");
}

/* The first site that is a normalization names the run's norm. */
static void read_norm(const sr_runfile *f, char *text, size_t size) {
    const sr_run_site *site;
    snprintf(text, size, "none");
    for (int64_t i = 0; (site = sr_run_get_site(f, i)); i++) {
        if (strcmp(site->norm, "none") == 0) continue;
        snprintf(text, size, "%s", site->norm);
        return;
    }
}

static sr_status read_parts(const char *path, parts *p, sr_failure *why) {
    sr_runfile *f = sr_run_open(path, why);
    if (!f) return why->status;
    const sr_run_info *info = sr_run_get_info(f);
    copy(p->text[0], PART, info->model);
    read_norm(f, p->text[1], PART);
    copy(p->text[2], PART, info->data);
    snprintf(p->text[3], PART, "seed %llu", (unsigned long long)info->seed);
    sr_run_close(f);
    return SR_OK;
}

static void append(char *text, size_t size, const char *part) {
    const size_t used = strlen(text);
    snprintf(text + used, size - used, "%s%s", used ? ", " : "", part);
}

static bool differs(const parts *p, int runs, int part) {
    for (int i = 1; i < runs; i++)
        if (strcmp(p[i].text[part], p[0].text[part]) != 0) return true;
    return false;
}

static bool distinct(const plot_labels *l) {
    for (int i = 0; i < l->runs; i++)
        for (int k = 0; k < i; k++)
            if (strcmp(l->label[i], l->label[k]) == 0) return false;
    return true;
}

static void label_by_parts(plot_labels *l, const parts *p) {
    for (int part = 0; part < PARTS; part++) {
        const bool seed = part == 3, other = differs(p, l->runs, part);
        for (int i = 0; i < l->runs; i++) {
            append(l->full[i], sizeof l->full[i], p[i].text[part]);
            if (seed ? other && !distinct(l) : other || l->runs == 1)
                append(l->label[i], sizeof l->label[i], p[i].text[part]);
        }
        if (!seed && !other) append(l->shared, sizeof l->shared, p[0].text[part]);
    }
}

/* Two runs that agree in all of that can only be told apart by their file names. */
static void label_by_path(plot_labels *l, char **paths) {
    if (distinct(l)) return;
    for (int i = 0; i < l->runs; i++) {
        const char *slash = strrchr(paths[i], '/');
        append(l->label[i], sizeof l->label[i], slash ? slash + 1 : paths[i]);
    }
}

static sr_status label_as_given(plot_labels *l, const char *given, sr_failure *why) {
    int count = 0;
    for (const char *at = given; at; count++) {
        const char *comma = strchr(at, ',');
        const size_t length = comma ? (size_t)(comma - at) : strlen(at);
        if (count < l->runs)
            snprintf(l->label[count], sizeof l->label[count], "%.*s", (int)length, at);
        at = comma ? comma + 1 : NULL;
    }
    if (count == l->runs) return SR_OK;
    return sr_fail(why, SR_USAGE, "--labels: %d labels for %d runs", count, l->runs);
}

sr_status plot_labels_make(plot_labels *l, char **paths, int count, const char *given,
                           sr_failure *why) {
    *l = (plot_labels){.runs = count};
    parts *p = calloc((size_t)count, sizeof *p);
    l->label = calloc((size_t)count, sizeof *l->label);
    l->full = calloc((size_t)count, sizeof *l->full);
    sr_status status = p && l->label && l->full ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    for (int i = 0; i < count && status == SR_OK; i++) status = read_parts(paths[i], &p[i], why);
    if (status == SR_OK) {
        label_by_parts(l, p);
        if (given[0])
            status = label_as_given(l, given, why);
        else
            label_by_path(l, paths);
    }
    free(p);
    if (status != SR_OK) plot_labels_free(l);
    return status;
}

void plot_labels_free(plot_labels *l) {
    free(l->label);
    free(l->full);
    *l = (plot_labels){0};
}
