/* copy_run.c -- copies a run, or a part of it, into a new, finished run file. The rows go through
 * the copier of recover (copy_rows.c). Damage is a failure here: the copy has new checksums, which
 * would approve of damaged values. */
#include "runfile/repair/copy_run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32.h"
#include "record/recorder_state.h"
#include "runfile/read/datasets/read_copied.h"
#include "runfile/read/file/damage_list.h"
#include "runfile/repair/copy.h"
#include "runfile/repair/copy_anonymous.h"
#include "runfile/repair/copy_declare.h"
#include "runfile/repair/copy_lineage.h"

#define RECOVER_HINT "`statrec recover` copies the readable data"

typedef struct part {
    sr_runfile *f;
    copy_plan plan;
} part;

typedef struct run_copier {
    const run_copy_options *o;
    part *part; /* [count], in the order of their steps */
    int count;
    sr_recorder *r;
    char *text[COPY_TEXTS]; /* texts of /copy */
    char *config;           /* configuration of an anonymous copy */
    run_copied done;
} run_copier;

static int64_t bytes_of(const char *path) {
    struct stat s;
    return stat(path, &s) == 0 ? (int64_t)s.st_size : 0;
}

static sr_status damaged(const char *text, sr_failure *why) {
    sr_fail(why, SR_FORMAT, "%s", text);
    sr_hint(why, "%s", RECOVER_HINT);
    return SR_FORMAT;
}

/* -- the parts ------------------------------------------------------------------------------- */

static sr_status check_damage(const sr_runfile *f, sr_failure *why) {
    const char *text;
    for (int i = 0; (text = sr_run_damage(f, i)); i++)
        if (!f->damage[i].repaired) return damaged(text, why);
    return SR_OK;
}

static sr_status check_sites(const sr_runfile *f, const copy_choice *choice, sr_failure *why) {
    for (int64_t i = 0; choice->site && i < choice->sites; i++)
        if (choice->site[i] < (i ? choice->site[i - 1] + 1 : 0) || choice->site[i] >= f->info.sites)
            return sr_fail(why, SR_USAGE, "%s: site number %lld of %lld", f->path,
                           (long long)choice->site[i], (long long)f->info.sites);
    return SR_OK;
}

static sr_status open_parts(run_copier *c, char *const *paths, int count, const char *path,
                            sr_failure *why) {
    c->part = calloc((size_t)count + 1, sizeof *c->part);
    if (!c->part) return sr_fail(why, SR_MEMORY, "%s: %d parts", path, count);
    for (int i = 0; i < count; i++) {
        sr_runfile *f = sr_run_open_beside(paths[i], i ? c->part[0].f : NULL, why);
        if (!f) return why->status;
        c->part[c->count++].f = f;
        sr_status status = check_damage(f, why);
        if (status == SR_OK) status = copy_check_target(f->path, path, why);
        if (status == SR_OK && i) status = copy_lineage_check(c->part[0].f, f, why);
        if (status == SR_OK) status = check_sites(f, &c->o->choice, why);
        if (status == SR_OK && c->o->anonymous)
            status = copy_anonymous_check(f, &c->o->choice, why);
        if (status != SR_OK) return status;
    }
    return SR_OK;
}

/* Sorts the parts by their first steps, files without steps first. */
static sr_status sort_parts(run_copier *c, sr_failure *why) {
    for (int i = 0; i < c->count; i++) {
        sr_runfile *f = c->part[i].f;
        c->part[i].plan.first_step = -1;
        if (f->info.steps > 0 &&
            sr_run_step_ints(f, "step", 0, 1, &c->part[i].plan.first_step, why) != SR_OK)
            return why->status;
        for (int k = i; k > 0 && c->part[k - 1].plan.first_step > c->part[k].plan.first_step; k--) {
            const part before = c->part[k - 1];
            c->part[k - 1] = c->part[k], c->part[k] = before;
        }
    }
    return SR_OK;
}

static sr_status check_overlap(const part *before, const part *at, sr_failure *why) {
    if (at->plan.first_step < 0 || at->plan.first_step > before->plan.last_step) return SR_OK;
    sr_fail(why, SR_USAGE, "%s: begins at step %lld, but %s ends at step %lld: their steps overlap",
            at->f->path, (long long)at->plan.first_step, before->f->path,
            (long long)before->plan.last_step);
    if (at->plan.first_step > 0) /* else it has no step before */
        sr_hint(why, "copy the steps before %lld of the other file first: --phase 0:%lld",
                (long long)at->plan.first_step, (long long)at->plan.first_step - 1);
    return SR_USAGE;
}

static bool keeps_any(const copy_choice *choice, const run_column *column, int count) {
    bool any = false;
    for (int i = 0; i < count; i++) any = any || copy_keeps(choice, column[i].name);
    return any;
}

static void count_rows(run_copier *c) {
    run_copied *n = &c->done;
    for (int i = 0; i < c->count; i++) {
        const copy_plan *p = &c->part[i].plan;
        const sr_run_info *info = &c->part[i].f->info;
        n->steps += p->steps, n->vectors += p->vectors, n->spectra += p->spectra;
        n->of_steps += info->steps, n->of_vectors += info->vectors, n->of_evals += info->evals;
        n->of_spectra += info->spectra, n->of_bytes += bytes_of(c->part[i].f->path);
    }
}

static sr_status plan_parts(run_copier *c, sr_failure *why) {
    const run_copy_options *o = c->o;
    const bool vectors = keeps_any(&o->choice, run_vectors, SR_VECTOR_COUNT);
    const bool spectra = keeps_any(&o->choice, run_spectra, SR_SPECTRUM_COUNT);
    copy_range of = {.first = o->first, .last = o->last, .steps.every = o->every};
    of.vectors.every = vectors ? o->vectors_every : 0;
    of.spectra.every = spectra ? o->vectors_every : 0;
    part *last = &c->part[0];
    sr_status status = sort_parts(c, why);
    for (int i = 0; i < c->count && status == SR_OK; i++) {
        part *at = &c->part[i];
        status = copy_plan_make(&at->plan, at->f, &o->choice, &of, why);
        if (status == SR_FORMAT) sr_hint(why, "%s", RECOVER_HINT);
        if (status == SR_OK && i) status = check_overlap(at - 1, at, why);
        if (status == SR_OK && (i == 0 || at->plan.last_row >= 0)) last = at;
    }
    if (status == SR_OK) copy_plan_keep_last(&last->plan, last->f);
    if (status == SR_OK) count_rows(c);
    if (status != SR_OK || c->done.steps > 0 || c->done.of_steps == 0) return status;
    return sr_fail(why, SR_USAGE, "%s: none of its %lld steps is among the chosen ones",
                   c->part[0].f->path, (long long)c->done.of_steps);
}

/* -- the origin of the copy ------------------------------------------------------------------ */

static sr_status add_line(char **text, const char *line, const char *path, sr_failure *why) {
    const size_t used = *text ? strlen(*text) : 0, size = used + strlen(line) + 2;
    char *grown = realloc(*text, size);
    if (!grown) return sr_fail(why, SR_MEMORY, "%s: %zu bytes for the texts of a copy", path, size);
    snprintf(grown + used, size - used, "%s%s", used ? "\n" : "", line);
    *text = grown;
    return SR_OK;
}

/* The CRC-32 of the file, as zlib.crc32 of all its bytes. A growing file has none. */
static sr_status describe_bytes(const sr_runfile *f, char line[64], sr_failure *why) {
    enum { BLOCK = 1 << 20 };
    uint32_t sum = 0;
    int64_t bytes = 0;
    ssize_t got = 1;
    snprintf(line, 64, "not finished");
    if (f->unfinished) return SR_OK;
    const int fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    unsigned char *block = fd >= 0 ? malloc(BLOCK) : NULL;
    while (block && got > 0 && (got = read(fd, block, BLOCK)) > 0)
        sum = crc32_add(sum, block, (size_t)got), bytes += got;
    sr_status status = SR_OK;
    if (fd < 0 || got < 0)
        status = sr_fail(why, SR_IO, "%s: %s", f->path, strerror(errno));
    else if (!block)
        status = sr_fail(why, SR_MEMORY, "%s: its checksum", f->path);
    free(block);
    if (fd >= 0) close(fd);
    snprintf(line, 64, "crc32 %08lx of %lld bytes", (unsigned long)sum, (long long)bytes);
    return status;
}

/* Adds the earlier copies of a part, and the part. */
static sr_status describe_part(run_copier *c, const sr_runfile *f, sr_failure *why) {
    char *old[COPY_TEXTS] = {NULL}, sum[64];
    const char *slash = strrchr(f->path, '/'), *name = slash ? slash + 1 : f->path;
    sr_status status = reader_copied(f, old, why);
    if (status == SR_OK && c->o->anonymous) copy_anonymous_texts(f, old), name = "-";
    for (int i = 0; i < COPY_TEXTS && status == SR_OK; i++)
        if (old[i] && *old[i]) status = add_line(&c->text[i], old[i], f->path, why);
    if (status == SR_OK) status = describe_bytes(f, sum, why);
    if (status == SR_OK) status = add_line(&c->text[COPY_SOURCES], name, f->path, why);
    if (status == SR_OK) status = add_line(&c->text[COPY_CHECKSUMS], sum, f->path, why);
    if (status == SR_OK) status = add_line(&c->text[COPY_OPTIONS], c->o->text, f->path, why);
    for (int i = 0; i < COPY_TEXTS; i++) free(old[i]);
    return status;
}

/* -- the copy -------------------------------------------------------------------------------- */

/* Chunks fit the numbers of copied rows, so that a small copy has no half-empty chunks. */
static sr_options options_of(const run_copier *c, const sr_runfile *f, const sr_run_info *info) {
    const copy_choice *choice = &c->o->choice;
    const run_copied *n = &c->done;
    sr_options o = copy_options_like(f, info);
    o.force = c->o->force, o.planned_steps = n->steps;
    o.vectors_every = n->vectors > 0 && n->steps > n->vectors ? n->steps / n->vectors : 1;
    o.vectors =
        o.vectors && c->o->vectors_every > 0 && keeps_any(choice, run_vectors, SR_VECTOR_COUNT);
    o.spectra =
        o.spectra && c->o->vectors_every > 0 && keeps_any(choice, run_spectra, SR_SPECTRUM_COUNT);
    return o;
}

static sr_status create(run_copier *c, const char *path, sr_failure *why) {
    unreadable_data losses = {0};
    sr_run_info info = c->part[0].f->info;
    if (c->o->anonymous) {
        copy_anonymous_info(c->part[0].f, &info);
        c->config = copy_anonymous_config(c->part[0].f, c->o->shares);
        if (!c->config) return sr_fail(why, SR_MEMORY, "%s: configuration", path);
        info.config = c->config;
    }
    const sr_options o = options_of(c, c->part[0].f, &info);
    if (!(c->r = recorder_create(path, &o, true, why))) return why->status;
    recorder_take_created(c->r, info.created);
    for (int i = 0; i < COPY_TEXTS; i++) c->r->copied[i] = c->text[i], c->text[i] = NULL;
    copy_add_sites(c->r, c->part[0].f, &c->o->choice, &losses);
    copy_add_embeddings(c->r, c->part[0].f, &losses);
    for (int i = 0; i < c->count; i++) copy_add_metrics(c->r, c->part[i].f, &c->o->choice, &losses);
    if (losses.count) sr_fail(&c->r->failure, SR_FORMAT, "%s", losses.entry[0].reason);
    if (!sr_failed(c->r)) unreadable_data_check(&losses, c->part[0].f->path, &c->r->failure);
    free(losses.entry);
    return recorder_check(c->r);
}

/* Rows beyond the committed ones of an unfinished file are not lost. */
static sr_status copy_part(run_copier *c, part *at) {
    unreadable_data losses = {0};
    sr_recovery count = SR_INIT(sr_recovery, .running_step = -1);
    sr_status status = recorder_copy_rows(c->r, at->f, &at->plan, -1, &count, &losses);
    const bool lost = count.lost_steps + count.lost_vectors + count.lost_evals > 0;
    if (status == SR_OK && losses.count)
        status = sr_fail(&c->r->failure, SR_FORMAT, "%s", losses.entry[0].reason);
    if (status == SR_OK) status = unreadable_data_check(&losses, at->f->path, &c->r->failure);
    if (status == SR_OK && lost && !at->f->unfinished)
        status = sr_fail(&c->r->failure, SR_FORMAT, "%s: some of its counted rows are missing",
                         at->f->path);
    c->done.evals += count.evals;
    free(losses.entry);
    return status;
}

/* The copy has the end of the last part. */
static sr_status finish(run_copier *c, sr_failure *why) {
    const sr_runfile *last = c->part[c->count - 1].f;
    sr_run_info end = last->info;
    char text[SR_REASON_SIZE];
    const bool running = strcmp(end.status, "running") == 0;
    c->done.unfinished = last->unfinished || running;
    if (c->o->anonymous) copy_anonymous_info(last, &end);
    snprintf(text, sizeof text, "copied from an unfinished file%s%.150s", *end.reason ? ": " : "",
             end.reason);
    c->r->source_end = &end;
    const sr_finish finish =
        SR_INIT(sr_finish, .status = running ? "interrupted" : end.status,
                .reason = running ? text : end.reason, .weights_digest = end.weights_digest);
    sr_recorder *r = c->r;
    c->r = NULL;
    return sr_close(r, &finish, why);
}

/* Removes the new file. */
static sr_status give_up(run_copier *c, sr_failure *why) {
    if (!c->r) return why->status;
    const sr_failure failed = *sr_failed(c->r);
    const char *refused = copy_refused(c->r);
    if (refused)
        sr_fail(why, SR_FORMAT, "%s: %s", c->part[0].f->path, refused);
    else if (why->status == SR_OK)
        *why = failed;
    if (why->status == SR_FORMAT) sr_hint(why, "%s", RECOVER_HINT);
    unlink(c->r->part);
    sr_abandon(c->r);
    return why->status;
}

static sr_status copy_all(run_copier *c, const char *path, sr_failure *why) {
    char name[4096];
    sr_status status = plan_parts(c, why);
    for (int i = 0; i < c->count && status == SR_OK; i++)
        status = describe_part(c, c->part[i].f, why);
    if (status == SR_OK) status = create(c, path, why);
    for (int i = 0; i < c->count && status == SR_OK; i++) status = copy_part(c, &c->part[i]);
    if (status != SR_OK) return give_up(c, why);
    snprintf(name, sizeof name, "%s", c->r->part);
    status = finish(c, why);
    if (status != SR_OK && status != SR_EXISTS) unlink(name);
    c->done.bytes = bytes_of(path);
    return status;
}

sr_status run_copy(char *const *paths, int count, const char *path, const run_copy_options *o,
                   run_copied *result, sr_failure *why) {
    run_copier c = {.o = o};
    sr_failure own = {0};
    if (!why) why = &own;
    sr_status status = open_parts(&c, paths, count, path, why);
    if (status == SR_OK) status = copy_all(&c, path, why);
    for (int i = c.count; i-- > 0;) copy_plan_free(&c.part[i].plan), sr_run_close(c.part[i].f);
    for (int i = 0; i < COPY_TEXTS; i++) free(c.text[i]);
    free(c.part), free(c.config);
    *result = c.done;
    return status;
}
