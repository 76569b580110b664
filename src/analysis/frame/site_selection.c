/* Selects the statistics and the sites of a table. */

#include "analysis/frame/site_selection.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/runs/run_config.h"
#include "base/containers/vector.h"
#include "base/options/options.h"
#include "runfile/dataset_layout.h"

/* -- statistics ------------------------------------------------------------------------------ */

static const statistic *statistic_find(const statistic *stats, int count, const char *word) {
    for (int i = 0; i < count; i++)
        if (strcmp(stats[i].word, word) == 0 || strcmp(stats[i].name, word) == 0) return &stats[i];
    return NULL;
}

enum { FEW = 12, DECLARED = 32 }; /* names that fit into a message */

static sr_status unknown_statistic(const statistic *stats, int count, const run_set *set,
                                   const char *word, sr_failure *why) {
    const char *names[ANALYSIS_STATISTICS + DECLARED];
    char known[1024] = "", own[256] = "";
    const int more = set ? declared_list(set, SR_PER_SITE, names + count, DECLARED) : 0;
    for (int i = 0; i < count; i++)
        text_append(known, sizeof known, ", ", names[i] = stats[i].word);
    for (int i = count; i < count + more; i++) text_append(own, sizeof own, ", ", names[i]);
    if (count <= FEW)
        return sr_fail(why, SR_USAGE, "--stat: unknown statistic '%s'; known: %s", word, known);
    if (set && declared_find(set, word, SR_PER_STEP)) {
        sr_fail(why, SR_USAGE, "--stat: '%s' is a number per step, not per site", word);
        sr_hint(why, "stat-curve prints it");
        return SR_USAGE;
    }
    if (run_find_column(run_vectors, SR_VECTOR_COUNT, word)) {
        sr_fail(why, SR_USAGE, "--stat: '%s' is a vector, not a number per site", word);
        sr_hint(why, "`stat-features --stat %s` prints it", word);
        return SR_USAGE;
    }
    const char *nearest = tool_nearest(word, names, count + more);
    sr_fail(why, SR_USAGE, "--stat: unknown statistic '%s'", word);
    sr_hint(why, "%s%s%s--help lists all %d%s%s", nearest ? "did you mean '" : "",
            nearest ? nearest : "", nearest ? "'? " : "", count,
            more ? "; declared by these runs: " : "", own);
    return SR_USAGE;
}

static own_statistic *own_make(const sr_run_declared *d, sr_failure *why) {
    own_statistic *own = calloc(1, sizeof *own);
    if (!own) {
        sr_fail(why, SR_MEMORY, "out of memory");
        return NULL;
    }
    declared_text(d, own->definition);
    own->of = d;
    own->stat = (statistic){d->name, d->name, own->definition, 0, NULL, NULL};
    return own;
}

static sr_status add_statistic(choice *c, const statistic *stats, int count, const run_set *set,
                               const char *word, sr_failure *why) {
    const statistic *stat = statistic_find(stats, count, word);
    const sr_run_declared *d = stat || !set ? NULL : declared_find(set, word, SR_PER_SITE);
    if (!stat && !d) return unknown_statistic(stats, count, set, word, why);
    for (int i = 0; i < c->statistics; i++)
        if (strcmp(c->wanted[i]->name, stat ? stat->name : d->name) == 0) return SR_OK;
    if (c->statistics == ANALYSIS_STATISTICS)
        return sr_fail(why, SR_USAGE, "--stat: more than %d statistics", ANALYSIS_STATISTICS);
    own_statistic *own = d ? own_make(d, why) : NULL;
    if (d && !own) return SR_MEMORY;
    c->own[c->statistics] = own;
    c->wanted[c->statistics++] = own ? &own->stat : stat;
    return SR_OK;
}

sr_status choice_set_statistics(choice *c, const statistic *stats, int count, const run_set *set,
                                const char *words, sr_failure *why) {
    option_text text;
    snprintf(text, sizeof text, "%s", words);
    sr_status status = SR_OK;
    c->statistics = 0;
    for (char *word = text, *comma; word && status == SR_OK; word = comma) {
        if ((comma = strchr(word, ','))) *comma++ = 0;
        status = add_statistic(c, stats, count, set, word, why);
    }
    if (status != SR_OK) choice_free(c);
    return status;
}

void choice_note_own(const choice *c, const run_set *set, bool define, tsv *table) {
    for (int i = 0; i < c->statistics; i++) {
        const char *name = c->wanted[i]->name;
        if (c->own[i]) {
            if (define) tsv_note(table, "statistic", "%s: %s", name, c->own[i]->definition);
            declared_warn(set, name, SR_PER_SITE, table);
            continue;
        }
        for (int r = 0; r < set->count; r++)
            if (declared_named(set->run[r], name, SR_PER_SITE))
                tsv_note(table, "warning", "%s declares another %s; this one is %s", set->path[r],
                         name, statistic_definition(c->wanted[i]));
    }
}

/* -- sites ----------------------------------------------------------------------------------- */

typedef struct site_search {
    const run_set *set;
    int run;
    int64_t sites;
    bool *matched;                       /* [sites] by the pattern */
    bool *any;                           /* [sites] has one of the statistics */
    bool *recorded[ANALYSIS_STATISTICS]; /* [sites] each */
} site_search;

static void search_free(site_search *s) {
    free(s->matched);
    free(s->any);
    for (int i = 0; i < ANALYSIS_STATISTICS; i++) free(s->recorded[i]);
}

static sr_status search_create(site_search *s, const choice *c, const run_set *set, int run,
                               series_source source, sr_failure *why) {
    *s = (site_search){.set = set, .run = run, .sites = sr_run_get_info(set->run[run])->sites};
    sr_status status = SR_OK;
    s->matched = calloc((size_t)s->sites + 1, sizeof *s->matched);
    s->any = calloc((size_t)s->sites + 1, sizeof *s->any);
    if (!s->matched || !s->any) status = sr_fail(why, SR_MEMORY, "out of memory");
    for (int i = 0; i < c->statistics && status == SR_OK; i++) {
        s->recorded[i] = calloc((size_t)s->sites + 1, sizeof *s->recorded[i]);
        if (!s->recorded[i])
            status = sr_fail(why, SR_MEMORY, "out of memory");
        else
            status = series_recorded(set->run[run], c->wanted[i], source, s->recorded[i], why);
        for (int64_t k = 0; k < s->sites && status == SR_OK; k++) s->any[k] |= s->recorded[i][k];
    }
    if (status != SR_OK) search_free(s);
    return status;
}

void choice_list_sites(const sr_runfile *run, char *text, size_t size) {
    const sr_run_site *site;
    text[0] = 0;
    for (int64_t i = 0; (site = sr_run_get_site(run, i)); i++) {
        if (globs_is_replica(site->name)) continue;
        if (strlen(text) + strlen(site->name) + 8 > size) {
            text_append(text, size, " ", "...");
            return;
        }
        text_append(text, size, ", ", site->name);
    }
}

static bool is_batch_layer(const sr_run_site *site) {
    return sr_run_over_batch(site) && !globs_is_final(site->name);
}

bool choice_only_observes(const sr_runfile *run) {
    const sr_run_site *site;
    for (int64_t i = 0; (site = sr_run_get_site(run, i)); i++)
        if (is_batch_layer(site)) return false;
    return true;
}

bool choice_is_bn_layer(const sr_run_site *site, bool only_observes) {
    if (!only_observes) return is_batch_layer(site);
    return site->observed && !globs_is_final(site->name);
}

/* The sites that places such as "last" may mean. */
typedef struct place_search {
    const sr_runfile *run;
    const bool *may; /* NULL: all */
    bool only_observes;
} place_search;

static const char *name_of_site(const void *context, int64_t i) {
    return sr_run_get_site(((const place_search *)context)->run, i)->name;
}

static bool may_be_meant(const void *context, int64_t i, bool bn) {
    const place_search *p = context;
    return (!p->may || p->may[i]) &&
           (!bn || choice_is_bn_layer(sr_run_get_site(p->run, i), p->only_observes));
}

bool choice_match(const sr_runfile *run, const bool *may, const char *pattern, bool *chosen,
                  char missed[GLOBS_WORD]) {
    const place_search places = {run, may, choice_only_observes(run)};
    const globs_sites sites = {sr_run_get_info(run)->sites, &places, name_of_site, may_be_meant};
    return globs_choose(pattern, &sites, chosen, missed);
}

static bool *choose_of(const sr_runfile *run, const bool *may, const char *pattern) {
    char unused[GLOBS_WORD];
    bool *chosen = calloc((size_t)sr_run_get_info(run)->sites + 1, sizeof *chosen);
    if (chosen) choice_match(run, may, pattern, chosen, unused);
    return chosen;
}

bool *choice_in_run(const sr_runfile *run, const char *pattern) {
    return choose_of(run, NULL, pattern);
}

/* One note per statistic that is missing at some of the chosen sites. */
static void note_missing(const site_search *s, const choice *c, tsv *table) {
    for (int i = 0; i < c->statistics; i++) {
        int64_t matched = 0, missing = 0;
        const sr_run_site *example = NULL;
        for (int64_t k = 0; k < s->sites; k++) {
            if (!s->matched[k]) continue;
            matched++;
            if (s->recorded[i][k]) continue;
            if (!missing++) example = sr_run_get_site(s->set->run[s->run], k);
        }
        if (!missing) continue;
        tsv_note(table, "note", "%s: no %s at %lld of %lld sites (%s, norm %s%s): left out",
                 s->set->path[s->run], c->wanted[i]->name, (long long)missing, (long long)matched,
                 example->name, example->norm, missing > 1 ? ", ..." : "");
    }
}

/* "last-bn" of a run without batch normalization. */
static void note_last_bn(const site_search *s, const char *pattern, tsv *table) {
    const sr_runfile *run = s->set->run[s->run];
    bool *last = strstr(pattern, "last-bn") && choice_only_observes(run)
                     ? choose_of(run, s->any, "last-bn")
                     : NULL;
    for (int64_t k = 0; k < s->sites && last; k++)
        if (last[k])
            tsv_note(table, "warning",
                     "%s: no site is normalized over the batch; last-bn is %s, where batch "
                     "statistics are observed",
                     s->set->path[s->run], sr_run_get_site(run, k)->name);
    free(last);
}

/* One note per statistic that is the observer's, not the method's. */
static void note_observed(const site_search *s, const choice *c, tsv *table) {
    for (int i = 0; i < c->statistics; i++) {
        int64_t sites = 0;
        const sr_run_site *example = NULL, *site;
        if (c->own[i]) continue; /* its program defines it */
        for (int64_t k = 0; (site = sr_run_get_site(s->set->run[s->run], k)); k++) {
            if (!s->matched[k] || !s->recorded[i][k]) continue;
            if (!sr_run_only_observed(site, c->wanted[i]->name)) continue;
            if (!sites++) example = site;
        }
        if (!sites) continue;
        tsv_note(table, "note",
                 "%s: %s is the observer's at %lld site%s (%s%s), not used by norm %s",
                 s->set->path[s->run], c->wanted[i]->name, (long long)sites, sites > 1 ? "s" : "",
                 example->name, sites > 1 ? ", ..." : "", example->norm);
    }
}

static sr_status choice_add(choice *c, const site_search *s, sr_failure *why) {
    for (int64_t k = 0; k < s->sites; k++) {
        if (!s->matched[k] || !s->any[k]) continue;
        if (!vector_reserve(&c->site, &c->capacity, c->sites + 1, sizeof *c->site))
            return sr_fail(why, SR_MEMORY, "out of memory");
        site_choice *added = &c->site[c->sites++];
        *added = (site_choice){.run = s->run, .site = k};
        for (int i = 0; i < c->statistics; i++) added->has[i] = s->recorded[i][k];
    }
    return SR_OK;
}

/* Compares one site of the run, its first, with the first run's. Done while the run's file is open:
 * with many runs, each pass opens every file again. */
static void choice_compare(choice *c, const run_set *set, int64_t from) {
    for (int i = 0; i < c->statistics; i++) {
        const site_choice *here = &c->site[from], *end = c->site + c->sites;
        while (here < end && !here->has[i]) here++;
        if (here == end) continue;
        site_choice *first = &c->first[i];
        if (!first->has[0])
            *first = (site_choice){.run = here->run, .site = here->site, .has = {true}};
        c->differences[i] |=
            sr_differences(set->run[first->run], first->site, set->run[here->run], here->site);
    }
}

/* "ln at 3 sites, bn at 1 site", as many as fit. */
static void list_norms(const sr_runfile *run, char *text, size_t size) {
    const sr_run_site *site, *other;
    char one[SR_NAME_SIZE + 40];
    text[0] = 0;
    for (int64_t i = 0; (site = sr_run_get_site(run, i)); i++) {
        int64_t before = 0, same = 0;
        for (int64_t k = 0; (other = sr_run_get_site(run, k)); k++) {
            if (strcmp(other->norm, site->norm) != 0) continue;
            before += k < i;
            same += k >= i && !globs_is_replica(other->name);
        }
        if (globs_is_replica(site->name) || before) continue;
        snprintf(one, sizeof one, "%s at %lld site%s", site->norm, (long long)same,
                 same == 1 ? "" : "s");
        text_append(text, size, ", ", one);
    }
}

static sr_status nothing_left(const choice *c, const run_set *set, sr_failure *why) {
    char names[256] = "", norms[256], sites[128];
    for (int i = 0; i < c->statistics; i++)
        text_append(names, sizeof names, " or ", c->wanted[i]->name);
    list_norms(set->run[0], norms, sizeof norms);
    choice_list_sites(set->run[0], sites, sizeof sites);
    return sr_fail(why, SR_FORMAT, "%s%s has no %s at these sites; it has norm %s (%s)",
                   set->path[0], set->count > 1 ? " (and no other run)" : "", names,
                   norms[0] ? norms : "none", sites);
}

sr_status choice_set_sites(choice *c, const run_set *set, const char *pattern, series_source source,
                           tsv *table, sr_failure *why) {
    memset(c->differences, 0, sizeof c->differences);
    memset(c->first, 0, sizeof c->first);
    for (int i = 0; i < set->count; i++) {
        site_search s;
        const int64_t before = c->sites;
        sr_status status = search_create(&s, c, set, i, source, why);
        if (status != SR_OK) return status;
        char missed[GLOBS_WORD], names[200];
        /* a place without a site is no failure: nothing_left reports it in the end */
        if (!choice_match(set->run[i], s.any, pattern, s.matched, missed) &&
            !globs_is_place(missed)) {
            choice_list_sites(set->run[i], names, sizeof names);
            status =
                sr_fail(why, SR_FORMAT, "--site: no site of %s matches '%s'", set->path[i], missed);
            sr_hint(why, "its sites are %s", names);
        }
        if (status == SR_OK) note_missing(&s, c, table);
        if (status == SR_OK) note_last_bn(&s, pattern, table);
        if (status == SR_OK) note_observed(&s, c, table);
        if (status == SR_OK) status = choice_add(c, &s, why);
        if (status == SR_OK) choice_compare(c, set, before);
        search_free(&s);
        if (status != SR_OK) return status;
    }
    return c->sites ? SR_OK : nothing_left(c, set, why);
}

void comparable_warn(const choice *c, tsv *table) {
    char text[512];
    for (int i = 0; i < c->statistics; i++)
        if (!sr_comparable(c->wanted[i]->name, c->differences[i], text, sizeof text))
            tsv_note(table, "warning", "%s", text);
}

void choice_free(choice *c) {
    free(c->site);
    c->site = NULL;
    c->sites = c->capacity = 0;
    for (int i = 0; i < c->statistics; i++) free(c->own[i]);
    c->statistics = 0;
}
