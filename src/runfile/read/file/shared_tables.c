/* shared_tables.c -- runs of a study have the same sites, metrics and columns. Otherwise each of
 * 1,000 open runs with 13 sites would keep 25 kB of names and definitions. */
#include "runfile/read/file/shared_tables.h"

#include <stdlib.h>
#include <string.h>

#include "runfile/read/datasets/read_custom.h"
#include "runfile/read/datasets/read_metrics.h"

struct shared_tables {
    shared_tables *next;
    int users;
    sr_runfile like; /* its tables, and nothing else */
};

static void copy_tables(sr_runfile *to, const sr_runfile *from) {
    to->info.sites = from->info.sites;
    to->site = from->site, to->site_names = from->site_names, to->site_of = from->site_of;
    to->metric = from->metric, to->metrics = from->metrics;
    to->declared = from->declared, to->declared_count = from->declared_count;
    memcpy(to->names, from->names, sizeof to->names);
}

static bool same_metrics(const sr_runfile *a, const sr_runfile *b) {
    bool same = a->metrics == b->metrics;
    for (int i = 0; i < a->metrics && same; i++) {
        const reader_metric *x = &a->metric[i], *y = &b->metric[i];
        same = strcmp(x->name, y->name) == 0 && strcmp(x->unit, y->unit) == 0 &&
               strcmp(x->definition, y->definition) == 0 && x->better == y->better &&
               x->place == y->place;
    }
    return same;
}

static bool same_declared(const sr_runfile *a, const sr_runfile *b) {
    bool same = a->declared_count == b->declared_count && !a->declared == !b->declared;
    for (int i = 0; a->declared && i < a->declared_count && same; i++) {
        const reader_declared *x = &a->declared[i], *y = &b->declared[i];
        same = strcmp(x->name, y->name) == 0 && strcmp(x->unit, y->unit) == 0 &&
               strcmp(x->definition, y->definition) == 0 && x->shown.scope == y->shown.scope;
    }
    return same;
}

static bool same_names(const sr_runfile *a, const sr_runfile *b) {
    for (int g = 0; g < READER_GROUPS; g++) {
        if (a->names[g].count != b->names[g].count) return false;
        for (int i = 0; i < a->names[g].count; i++)
            if (strcmp(a->names[g].name[i], b->names[g].name[i]) != 0) return false;
    }
    return true;
}

/* Sites are zero where nothing is. */
static bool same_tables(const sr_runfile *a, const sr_runfile *b) {
    return a->info.sites == b->info.sites &&
           memcmp(a->site, b->site, (size_t)a->info.sites * sizeof *a->site) == 0 &&
           same_metrics(a, b) && same_declared(a, b) && same_names(a, b);
}

void shared_tables_free(sr_runfile *f) {
    map_free(&f->site_names), free(f->site_of), free(f->site), free(f->metric), free(f->declared);
    for (int g = 0; g < READER_GROUPS; g++) free(f->names[g].name);
    const int64_t sites = f->info.sites;
    copy_tables(f, &(sr_runfile){.site = NULL});
    f->info.sites = sites;
}

void shared_tables_join(sr_runfile *f, shared_tables **list) {
    shared_tables *t = *list;
    while (t && !same_tables(&t->like, f)) t = t->next;
    if (t) {
        shared_tables_free(f);
    } else {
        if (!(t = calloc(1, sizeof *t))) return;
        copy_tables(&t->like, f);
        t->next = *list, *list = t;
    }
    copy_tables(f, &t->like);
    t->users++;
    f->shared = t;
}

void shared_tables_leave(sr_runfile *f, shared_tables **list) {
    shared_tables *t = f->shared, **at = list;
    if (!t) return;
    copy_tables(f, &(sr_runfile){.site = NULL});
    f->shared = NULL;
    if (--t->users) return;
    while (*at != t) at = &(*at)->next;
    *at = t->next;
    shared_tables_free(&t->like);
    free(t);
}
