/* cmd_info_sites.c -- the sites of a run file: their number, shards (globs.h), and a line per
 * site of the model. */
#include <stdio.h>

#include "base/globs.h"
#include "base/utf8.h"
#include "cli/info/cmd_info_parts.h"

static void print_site_count(const sr_runfile *f) {
    int64_t sites = 0, replicas = 0, least = INT64_MAX, most = 0;
    const sr_run_site *s;
    for (int64_t i = 0; (s = sr_run_get_site(f, i)); i++) {
        if (globs_is_replica(s->name)) {
            replicas++;
            continue;
        }
        char replica[SR_NAME_SIZE + 24];
        int64_t shards = 0;
        do snprintf(replica, sizeof replica, "%s@%lld", s->name, (long long)++shards);
        while (sr_run_find_site(f, replica) >= 0);
        least = shards < least ? shards : least;
        most = shards > most ? shards : most;
        sites++;
    }
    printf("%lld", (long long)sites);
    if (replicas && least == most && replicas == sites * (most - 1))
        printf(" site%s, each of %lld shards (NAME@1 ...)", sites == 1 ? "" : "s", (long long)most);
    else if (replicas)
        printf(" site%s, and %lld of other shards (NAME@1 ...)", sites == 1 ? "" : "s",
               (long long)replicas);
    putchar('\n');
}

static void print_cell(const char *text, int width) {
    char cell[SR_NAME_SIZE];
    snprintf(cell, sizeof cell, "%s", text);
    for (char *c = cell; *c;) {
        const int bytes = utf8_shown(c);
        if (!bytes) *c = '?';
        c += bytes ? bytes : 1;
    }
    printf(" %-*s", width, cell);
}

void info_print_site_name(const sr_runfile *f, int64_t site) {
    printf("  %4lld ", (long long)site);
    print_cell(sr_run_get_site(f, site)->name, 24);
}

void info_print_sites(const sr_runfile *f) {
    const sr_run_site *s;
    print_site_count(f);
    if (!sr_run_get_site(f, 0)) return;
    printf("  %4s  %-24s %-12s %-10s %6s %9s %7s %-11s %s\n", "site", "name", "norm", "kind",
           "width", "eps", "alpha", "layer scale", "observed");
    for (int64_t i = 0; (s = sr_run_get_site(f, i)); i++) {
        if (globs_is_replica(s->name)) continue;
        info_print_site_name(f, i);
        print_cell(s->norm, 12);
        print_cell(s->kind, 10);
        printf(" %6lld %9.3g %7.4g %-11lld %s\n", (long long)s->width, s->eps, s->alpha,
               (long long)s->layer_scale, s->observed ? "batch" : "-");
    }
}
