/* loaded_model.c -- opens a trained model; runs passes over its training data. */
#include "train/loaded_model.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/gemm/gemm.h"
#include "train/checkpoint/checkpoint.h"

/* -- opening */

static sr_status read_head(loaded_model *t, const array_reader *f, sr_failure *why) {
    char *text = NULL;
    int64_t *size = NULL;
    const char *name;
    sr_status status = array_reader_text(f, "config", &text, why);
    if (status == SR_OK) status = train_config_read(&t->config, text, t->path, why);
    free(text);
    if (status == SR_OK) status = array_reader_int(f, "updates", &t->updates, why);
    if (status != SR_OK) return status;
    t->shape.task = model_find(t->config.model.name)->task;
    if (array_reader_has_attribute(f, "meaning")) /* older ones do not have it */
        status = array_reader_int(f, "meaning", &t->shape.meaning, why);
    for (int i = 0; status == SR_OK && (name = checkpoint_size(&t->shape, i, &size)); i++)
        status = array_reader_int(f, name, size, why);
    if (status == SR_FORMAT && size == &t->shape.target_vocabulary &&
        !array_reader_has_attribute(f, "target_vocabulary")) {
        *why = (sr_failure){0};
        sr_fail(why, SR_FORMAT, "%s: has no target_vocabulary, so only its weights can be read",
                t->path);
        sr_hint(why, "`statrec train --weights %s` starts from them", t->path);
    }
    if (status == SR_OK && t->updates < 0)
        status = sr_fail(why, SR_FORMAT, "%s: updates is %lld, not 0 or more", t->path,
                         (long long)t->updates);
    return status == SR_OK ? checkpoint_check_sizes(&t->shape, t->path, why) : status;
}

enum { LONGEST = 1 << 16 }; /* a table of positions is no parameter */

/* Builds the model of the file, no larger than the stored weights. */
static sr_status hold_against_file(loaded_model *t, const array_reader *f, sr_failure *why) {
    int64_t arrays = 0, *most = &t->config.model.most_parameters;
    const char *group = checkpoint_groups[STATE_PARAMETER];
    sr_status status = checkpoint_count(f, group, false, &arrays, most, why);
    if (status == SR_OK && *most == 0)
        return sr_fail(why, SR_FORMAT, "%s: has no parameters", t->path);
    if (status == SR_OK && t->shape.longest > LONGEST && t->shape.longest > *most)
        return sr_fail(why, SR_FORMAT, "%s: longest is %lld, and there are %lld parameters",
                       t->path, (long long)t->shape.longest, (long long)*most);
    return status;
}

/* The model of the file, without a tape. */
static sr_status build_model(loaded_model *t, sr_failure *why) {
    sr_failure own = {0};
    t->model = model_create(&t->config.model, &t->shape, &own);
    if (t->model) return SR_OK;
    if (own.status == SR_FORMAT) /* from params.c, without the file's name */
        return sr_fail(why, SR_FORMAT, "%s: %s", t->path, own.text);
    sr_fail(why, own.status, "%s", own.text), sr_hint(why, "%s", own.hint);
    return own.status;
}

static sr_status build(loaded_model *t, const loaded_model_options *o, sr_failure *why) {
    t->threads = o->threads ? o->threads : omp_get_num_procs();
    sr_status status = gemm_begin(t->threads, why);
    if (status != SR_OK) return status;
    if (*o->data_dir)
        snprintf(t->config.data.dir, sizeof t->config.data.dir, "%.511s", o->data_dir);
    if (o->testpref && *o->testpref)
        snprintf(t->config.data.testpref, sizeof t->config.data.testpref, "%.511s", o->testpref);
    t->batching = o->batching ? o->batching : "";
    t->max_tokens_of = o->max_tokens_of ? o->max_tokens_of : "";
    t->task = task_of(t->shape.task);
    t->task_options =
        (task_options){t->config.label_smoothing, t->config.smoothing, t->config.bleu_beam};
    status = build_model(t, why);
    if (status != SR_OK) return status;
    t->tape = tape_create(t->threads, why);
    if (!t->tape) return why->status;
    t->tape->bf16 = t->config.bf16;
    return SR_OK;
}

static sr_status set_path(loaded_model *t, const char *path, sr_failure *why) {
    if (strlen(path) >= sizeof t->path)
        return sr_fail(why, SR_USAGE, "%.80s...: the path is too long", path);
    strcpy(t->path, path);
    return SR_OK;
}

sr_status loaded_model_open(loaded_model *t, const char *name, const loaded_model_options *o,
                            sr_failure *why) {
    memset(t, 0, sizeof *t);
    sr_status status = SR_OK;
    train_resume newest = {0}; /* checkpoint of a run */
    const bool is_run = !checkpoint_is_name(name);
    if (is_run) status = train_resume_find(name, "", &newest, &t->config, why);
    if (status == SR_OK) status = set_path(t, is_run ? newest.checkpoint : name, why);
    train_resume_free(&newest);
    if (status != SR_OK) return status;
    array_reader *f = array_reader_open(t->path, CHECKPOINT_FORMAT, CHECKPOINT_VERSION, why);
    if (!f) return why->status;
    status = read_head(t, f, why);
    if (status == SR_OK) status = hold_against_file(t, f, why);
    array_reader_close(f);
    if (status == SR_OK) status = build(t, o, why);
    return status == SR_OK ? weights_read(t->model, t->path, why) : status;
}

/* Values of /progress that decide where a training continues. */
static sr_status check_progress(const array_reader *f, sr_failure *why) {
    int64_t count, number;
    const char *const group = checkpoint_groups[STATE_PROGRESS];
    sr_status status = array_reader_count(f, group, &count, why);
    for (int64_t i = 0; i < count && status == SR_OK; i++) {
        char member[2 * PARAM_NAME], name[CHECKPOINT_NAME];
        npz_array a;
        status = array_reader_name(f, group, i, member, sizeof member, why);
        snprintf(name, sizeof name, "%s/%s", group, member);
        if (status == SR_OK) status = array_reader_shape(f, name, &a, why);
        if (status != SR_OK || a.rank != 0 || a.type != NPZ_INT64) continue;
        a.data = &number;
        status = array_reader_fill(f, name, &a, why);
        if (status == SR_OK)
            status = checkpoint_check_progress(array_reader_path(f), member, &a, why);
    }
    return status;
}

/* The first format revision with checkpoints had joint dictionaries alone. */
static bool is_oldest(const array_reader *f) {
    return f && !array_reader_has_attribute(f, "target_vocabulary") &&
           array_reader_has_attribute(f, "vocabulary");
}

sr_status loaded_model_check(const char *path, bool *weights_only, sr_failure *why) {
    loaded_model *t = calloc(1, sizeof *t);
    if (!t) return sr_fail(why, SR_MEMORY, "%s: out of memory to check it", path);
    loaded_model_text text = {0};
    array_reader *f = NULL;
    sr_status status = set_path(t, path, why);
    if (status == SR_OK) {
        f = array_reader_open(path, CHECKPOINT_FORMAT, CHECKPOINT_VERSION, why);
        status = f ? SR_OK : why->status;
    }
    *weights_only = is_oldest(f);
    if (status == SR_OK && !*weights_only) {
        status = read_head(t, f, why);
        if (status == SR_OK) status = hold_against_file(t, f, why);
        if (status == SR_OK) status = check_progress(f, why);
        if (status == SR_OK) status = build_model(t, why);
        if (status == SR_OK) status = weights_read(t->model, path, why);
        if (status == SR_OK) status = loaded_model_open_text(t, &text, why);
    }
    array_reader_close(f);
    loaded_model_close_text(&text);
    loaded_model_close(t);
    free(t);
    return status;
}

void loaded_model_close(loaded_model *t) {
    tape_free(t->tape);
    model_free(t->model);
    data_close(t->data);
    t->tape = NULL, t->model = NULL, t->data = NULL;
}

/* Sentences may be as long as the model has positions. */
static sr_status fit_longest(const loaded_model *t, int64_t longest, sr_failure *why) {
    if (longest <= t->shape.longest) return SR_OK;
    if (t->model->row->reach) return t->model->row->reach(t->model, longest, why);
    sr_fail(why, SR_USAGE, "%s: made for %lld tokens at once, the data have %lld", t->path,
            (long long)t->shape.longest, (long long)longest);
    sr_hint(why, "cut the text into shorter pieces, or train a model on pieces this long");
    return SR_USAGE;
}

static sr_status check_sizes(const loaded_model *t, sr_failure *why) {
    int64_t *of_model, *of_data;
    const char *name;
    data_shape wanted = t->shape, shape = *data_get_shape(t->data);
    if (fit_longest(t, shape.longest, why) != SR_OK) return why->status;
    for (int i = 0; (name = checkpoint_size(&wanted, i, &of_model)); i++) {
        checkpoint_size(&shape, i, &of_data);
        if (*of_model == *of_data || of_model == &wanted.longest) continue;
        return sr_fail(why, SR_USAGE, "%s: made for %s %lld, the data have %lld: other data",
                       t->path, name, (long long)*of_model, (long long)*of_data);
    }
    return SR_OK;
}

/* value: "": the run's */
static sr_status set_data_option(const char *data, const char *key, const char *value,
                                 char field[DATA_TEXT], sr_failure *why) {
    if (!*value) return SR_OK;
    if (!data_obeys(data, key))
        return sr_fail(why, SR_USAGE, "--%s: data %s has no such option", key, data);
    snprintf(field, DATA_TEXT, "%s", value);
    return SR_OK;
}

sr_status loaded_model_open_data(loaded_model *t, sr_failure *why) {
    if (t->data) return SR_OK;
    train_config c = t->config; /* a written model keeps its run's batches */
    sr_status status = set_data_option(c.data.name, "batching", t->batching, c.data.batching, why);
    if (status == SR_OK)
        status = set_data_option(c.data.name, "max-tokens-of", t->max_tokens_of,
                                 c.data.max_tokens_of, why);
    if (status != SR_OK) return status;
    t->data = train_data_open(&c, &t->text, why);
    if (!t->data || check_sizes(t, why) != SR_OK) return why->status;
    array_reader *f = array_reader_open(t->path, CHECKPOINT_FORMAT, CHECKPOINT_VERSION, why);
    if (!f) return why->status;
    status = checkpoint_check_meaning(f, data_get_shape(t->data), why);
    array_reader_close(f);
    return status;
}

/* -- passes over the training data, dropout as in training */

static sr_status pass_over(loaded_model *t, int64_t index, norm_mode mode, model_memory *k,
                           sr_failure *why) {
    batch b;
    pass p = {.tape = t->tape, .batch = &b, .mode = mode, .memory = k};
    rng root = rng_create((uint64_t)t->config.seed), random = rng_split(&root, 2);
    sr_status status = data_batch(t->data, SPLIT_TRAIN, 0, index, &b, why);
    if (status != SR_OK) return status;
    tape_reset(t->tape, rng_split(&random, (uint64_t)index), true, false);
    if (task_loss(t->task, &t->task_options, t->model, &p, NULL)) return SR_OK;
    const sr_failure *f = tape_failure(t->tape);
    return sr_fail(why, f->status, "%s: %s", t->path, f->text);
}

/* Passes over `batches` training batches (0: all). NORM_TRAIN: batch k has the weight 1/k in the
 * running statistics. */
static sr_status pass_over_batches(loaded_model *t, int64_t batches, norm_mode mode,
                                   sr_failure *why) {
    const int64_t all = data_batches(t->data, SPLIT_TRAIN);
    const int64_t count = batches && batches < all ? batches : all;
    model_memory memory;
    sr_status status = task_memory(&memory, t->model, t->data, SPLIT_TRAIN, true, why);
    for (int64_t k = 0; k < count && status == SR_OK; k++) {
        for (int i = 0; i < t->model->sites && mode == NORM_TRAIN; i++)
            t->model->site[i]->options.alpha = (double)k / (double)(k + 1);
        status = pass_over(t, k, mode, &memory, why);
    }
    model_memory_free(&memory);
    return status;
}

/* Training passes change these besides the running statistics. */
typedef struct site_keep {
    double alpha;
    int64_t calls;
} site_keep;

sr_status loaded_model_recompute(loaded_model *t, int64_t batches, sr_failure *why) {
    sr_status status = loaded_model_open_data(t, why);
    if (status != SR_OK) return status;
    const model *m = t->model;
    site_keep *keep = malloc((size_t)(m->sites + 1) * sizeof *keep);
    if (!keep) return sr_fail(why, SR_MEMORY, "%s: out of memory for %d sites", t->path, m->sites);
    for (int i = 0; i < m->sites; i++)
        keep[i] = (site_keep){m->site[i]->options.alpha, m->site[i]->calls};
    status = pass_over_batches(t, batches, NORM_TRAIN, why);
    for (int i = 0; i < m->sites; i++)
        m->site[i]->options.alpha = keep[i].alpha, m->site[i]->calls = keep[i].calls;
    free(keep);
    return status;
}

sr_status loaded_model_tid(loaded_model *t, int64_t batches, double *mean, double *var,
                           sr_failure *why) {
    sr_status status = loaded_model_open_data(t, why);
    if (status != SR_OK) return status;
    final_tid *f = final_tid_begin(t->model, why);
    if (!f) return why->status;
    status = pass_over_batches(t, batches, NORM_BATCH, why);
    for (int i = 0; i < t->model->sites; i++) final_tid_of(f, i, &mean[i], &var[i]);
    final_tid_end(f);
    return status;
}
