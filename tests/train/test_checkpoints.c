/* test_checkpoints.c -- when a run writes checkpoints and which of them it keeps; a stopped and
 * resumed run equals an uninterrupted run. */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "small_run.h"
#include "testing/check.h"
#include "train/checkpoint/checkpoint.h"
#include "train/loaded_model.h"

enum { MOST = 32 };

static char *path_of(const char *name) {
    static char path[8][600];
    static int used;
    char *p = path[used++ % 8];
    snprintf(p, 600, "%s/%s", check_temporary(), name);
    return p;
}

/* Removes every file small* of the runs before. */
static void clean(void) {
    DIR *d = opendir(check_temporary());
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d));)
        if (!strncmp(e->d_name, "small", 5)) assert_int_equal(unlink(path_of(e->d_name)), 0);
    closedir(d);
}

/* Fails unless the run's checkpoints are those after these updates, newest first. */
static void expect_files(const char *want) {
    int64_t *update;
    int count;
    char text[256] = "";
    sr_failure why = {0};
    check_ok(checkpoint_list(path_of("small"), &update, &count, &why), &why);
    for (int i = 0; i < count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%lld", i ? " " : "",
                 (long long)update[i]);
    free(update);
    assert_string_equal(text, want);
}

/* -- when */

static void intervals(void **state) {
    (void)state;
    static const struct {
        const char *every, *keep, *want;
    } row[] = {{"2", "9", "7 6 4 2"}, {"1e", "9", "7 6 3"}, {"2e", "9", "7 6"},
               {"3e", "9", "7"},      {"end", "9", "7"},    {"none", "9", ""},
               {"600s", "9", "7"},    {"1", "3", "7 6 5"},  {"1", "1", "7"}};
    small_write_pairs(6); /* 3 updates an epoch */
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const char *const args[] = {
            "--epochs",   "3",      "--max-steps", "7", "--checkpoint-every",
            row[i].every, "--keep", row[i].keep,   NULL};
        train_result r;
        clean();
        sr_run_close(small_run(args, NULL, &r));
        expect_files(row[i].want);
    }
}

/* Seconds are those since the last one; the clock is put back instead of waited for. */
static void seconds(void **state) {
    (void)state;
    static train_config c;
    static const char *const want[] = {"", "2", "2", "4 2"}; /* after updates 1, 2, ... */
    train_result result = {0};
    const train_events silent = {0};
    sr_failure why = {0};
    clean();
    small_write_pairs(6);
    small_parse(&c, (const char *const[]){"--checkpoint-every=600s", "--epochs=9", NULL});
    trainer r = {.config = &c, .events = &silent, .result = &result};
    check_ok(trainer_open(&r, "test", &why), &why);
    for (int u = 1; u <= 4; u++) {
        result.updates = u;
        if (u % 2 == 0) r.checkpoint_clock -= 600;
        check_ok(trainer_checkpoint_between(&r, false, &why), &why);
        expect_files(want[u - 1]);
    }
    trainer_close(&r, SR_OK, &why);
}

/* --force: the checkpoints of the run before, the best one too, are no longer there. */
static void replaced(void **state) {
    (void)state;
    const char *const longer[] = {"--max-steps=6", "--epochs=2", "--checkpoint-every=1",
                                  "--keep-best=valid_loss", NULL};
    const char *const shorter[] = {"--max-steps=2", "--checkpoint-every=1", NULL};
    train_result r;
    clean();
    small_write_pairs(6);
    sr_run_close(small_run(longer, NULL, &r));
    expect_files("6 5");
    assert_int_equal(access(path_of("small-best.ckpt"), F_OK), 0);
    sr_run_close(small_run(shorter, NULL, &r));
    expect_files("2 1");
    assert_int_equal(access(path_of("small-best.ckpt"), F_OK), -1);
}

/* -- the best one */

/* Index of the first largest. */
static int largest(const double *value, int count, double sign) {
    int best = 0;
    for (int i = 1; i < count; i++)
        if (sign * value[i] > sign * value[best]) best = i;
    return best;
}

/* The memorized training pairs are wrong for the validation pair: its loss falls, then rises. */
static void best_is_kept(void **state) {
    (void)state;
    static const char *const metric[] = {"valid_loss", "valid_accuracy"};
    small_write("s a b\nt a b\nu a b\nv a b\nw a b\nx a b\n",
                "x s y\nx t y\nx u y\nx v y\nx w y\nx x y\n", "s a b\n", "x t y\n");
    for (int m = 0; m < 2; m++) {
        const char *const args[] = {"--lr=0.05",
                                    "--warmup-updates=0",
                                    "--lr-scheduler=fixed",
                                    "--epochs=24",
                                    "--keep-best",
                                    metric[m],
                                    "--checkpoint-every=end",
                                    NULL};
        train_result r;
        loaded_model t;
        double value[24];
        sr_failure why = {0};
        clean();
        sr_runfile *f = small_run(args, NULL, &r);
        small_evals(f, metric[m], 24, value);
        sr_run_close(f);
        check_ok(loaded_model_open(&t, path_of("small-best.ckpt"),
                                   &(loaded_model_options){.data_dir = "", .threads = 1}, &why),
                 &why);
        const int best = largest(value, 24, m ? 1 : -1);
        assert_in_range(best, 1, 22); /* or nothing was tested */
        assert_int_equal(t.updates, 3 * (best + 1));
        loaded_model_close(&t);
    }
}

/* -- checkpoints that cannot be written */

/* A directory has the name of the first checkpoint. */
static void nowhere_to_write(void **state) {
    (void)state;
    small_write_pairs(6);
    assert_int_equal(mkdir(path_of("taken-0000002.ckpt.part"), 0777), 0);
    for (int on = 0; on < 2; on++) {
        const char *const args[] = {"--checkpoint", path_of("taken"), "--checkpoint-every=2",
                                    on ? "--on-write-error=continue" : NULL, NULL};
        static train_config c;
        const train_events silent = {0};
        train_result r;
        sr_failure why = {0};
        clean();
        small_parse(&c, args);
        c.epochs = 2;
        assert_int_equal(train_run(&c, "test", NULL, &silent, &r, &why), SR_EXISTS);
        check_failure(&why, SR_EXISTS, "taken-0000002.ckpt.part");
        assert_int_equal(r.updates, on ? 6 : 2);
    }
    assert_int_equal(rmdir(path_of("taken-0000002.ckpt.part")), 0);
}

/* -- going on */

typedef struct told {
    int passes, stop_after; /* passes; 0: never */
    char warning[256];
} told;

static void hear_progress(void *context, const train_progress *p) {
    (void)p;
    ((told *)context)->passes++;
}

static void hear_warning(void *context, const char *text) {
    snprintf(((told *)context)->warning, 256, "%s", text);
}

static bool stop(void *context) {
    const told *t = context;
    return t->stop_after && t->passes >= t->stop_after;
}

static void run(const train_config *c, const train_resume *from, told *t, train_result *r) {
    const train_events events = {
        .context = t, .warn = hear_warning, .progress = hear_progress, .stop = stop};
    sr_failure why = {0};
    check_ok(train_run(c, from ? "resumed" : "first", from, &events, r, &why), &why);
}

/* Resumes the run; updates: 0, or more than were planned. */
static void resume(int stop_after, int64_t updates, train_result *r) {
    static train_config c;
    train_resume from;
    told t = {.stop_after = stop_after};
    sr_failure why = {0};
    check_ok(train_resume_find(path_of("small.h5"), "", &from, &c, &why), &why);
    if (updates) c.max_steps = updates;
    run(&c, &from, &t, r);
    train_resume_free(&from);
}

/* All that a run leaves: its evaluations, spectra of the embedding, its last checkpoint. */
typedef struct course {
    int64_t evals, records, spectrum_step[MOST];
    double value[5][MOST], spectrum[MOST][16];
    char digest[32], parent[256], created[64], command[64];
    char *checkpoint;
    size_t size;
} course;

static void look(course *k, int64_t updates, bool bleu) {
    static const char *const names[] = {"step", "valid_loss", "valid_accuracy", "epoch",
                                        "valid_bleu"};
    sr_failure why = {0};
    sr_run_embedding e = {.size = sizeof(sr_run_embedding)};
    file_bytes whole = {0};
    char name[64];
    memset(k, 0, sizeof *k);
    sr_runfile *f = sr_run_open(path_of("small.h5"), &why);
    assert_non_null(f);
    const sr_run_info *info = sr_run_get_info(f);
    k->evals = info->evals;
    assert_in_range(k->evals, 1, MOST);
    for (int i = 0; i < 4 + bleu; i++) small_evals(f, names[i], k->evals, k->value[i]);
    check_ok(sr_run_get_embedding(f, "tokens", &e, &why), &why);
    assert_in_range(k->records = e.records, 1, MOST);
    for (int64_t i = 0; i < e.records; i++)
        check_ok(sr_run_singular_values(f, "tokens", i, &k->spectrum_step[i], k->spectrum[i], &why),
                 &why);
    snprintf(k->digest, sizeof k->digest, "%s", info->weights_digest);
    snprintf(k->parent, sizeof k->parent, "%s", info->parent);
    snprintf(k->created, sizeof k->created, "%s", info->created);
    snprintf(k->command, sizeof k->command, "%s", info->command);
    sr_run_close(f);
    snprintf(name, sizeof name, "small-%07lld.ckpt", (long long)updates);
    check_ok(file_read_as(path_of(name), ACCEPT(KIND_HDF5), "a checkpoint", &whole, &why), &why);
    k->checkpoint = (char *)whole.byte, k->size = whole.size;
}

static void expect_same(course *whole, course *cut) {
    assert_int_equal(cut->evals, whole->evals);
    assert_int_equal(cut->records, whole->records);
    assert_memory_equal(cut->value, whole->value, sizeof whole->value);
    assert_memory_equal(cut->spectrum_step, whole->spectrum_step, sizeof whole->spectrum_step);
    assert_memory_equal(cut->spectrum, whole->spectrum, sizeof whole->spectrum);
    assert_string_equal(cut->digest, whole->digest);
    assert_int_equal(cut->size, whole->size);
    assert_memory_equal(cut->checkpoint, whole->checkpoint, whole->size);
    free(cut->checkpoint), free(whole->checkpoint);
}

/* A signal after `first` passes, another one `second` passes later. */
static void cut_twice(const char *const *args, int first, int second, course *k, bool bleu) {
    static train_config c;
    told t = {.stop_after = first};
    train_result r;
    clean();
    small_parse(&c, args);
    run(&c, NULL, &t, &r);
    assert_true(r.interrupted);
    resume(second, 0, &r);
    assert_true(r.interrupted);
    resume(0, 0, &r);
    assert_false(r.interrupted);
    look(k, r.updates, bleu);
}

static void uncut(const char *const *args, course *k, bool bleu) {
    train_result r;
    clean();
    sr_run_close(small_run(args, NULL, &r));
    look(k, r.updates, bleu);
}

/* Options without saved state (the seed, forms of the loss), and options that count validations. */
static void goes_on_as_it_was(void **state) {
    (void)state;
    const char *const args[] = {"--epochs=3",
                                "--seed=5",
                                "--dropout=0.1",
                                "--smoothing-form=others",
                                "--validate-interval-updates=1",
                                "--bleu-every=3",
                                "--bleu-beam=1",
                                "--patience=8",
                                "--svd-every=2",
                                "--checkpoint-every=1",
                                NULL};
    course whole, cut;
    small_write_pairs(6);
    uncut(args, &whole, true);
    for (int i = 0; i < whole.evals; i++)
        assert_int_equal(isnan(whole.value[4][i]) != 0, (i + 1) % 3 != 0);
    cut_twice(args, 2, 2, &cut, true);
    expect_same(&whole, &cut);
}

/* The first start sets created and command; parent lists every later start. */
static void lineage(void **state) {
    (void)state;
    const char *const args[] = {"--epochs=3", "--checkpoint-every=1", NULL};
    static train_config c;
    told t = {.stop_after = 2};
    train_result r;
    course first, last;
    clean();
    small_write_pairs(6);
    small_parse(&c, args);
    run(&c, NULL, &t, &r);
    sr_failure why = {0};
    sr_runfile *f = sr_run_open(path_of("small.h5"), &why);
    assert_non_null(f);
    snprintf(first.created, sizeof first.created, "%s", sr_run_get_info(f)->created);
    sr_run_close(f);
    nanosleep(&(struct timespec){1, 50000000}, NULL); /* the time has a resolution of one second */
    resume(3, 0, &r);
    resume(0, 0, &r);
    look(&last, r.updates, false);
    assert_string_equal(last.created, first.created);
    assert_string_equal(last.command, "first");
    assert_string_equal(last.parent, "small.h5 step 2; small.h5 step 5");
    free(last.checkpoint);
}

/* Resuming a complete run drops the spectrum of its end, unless that spectrum was due. */
static void spectrum_of_the_end(void **state) {
    (void)state;
    static const char *const planned[] = {"--max-steps=6", "--max-steps=8"};
    static const int64_t want[] = {4, 8, 10};
    small_write_pairs(6);
    for (int i = 0; i < 2; i++) {
        const char *const args[] = {"--epochs=9", planned[i], "--svd-every=4",
                                    "--checkpoint-every=end", NULL};
        train_result r;
        course k;
        clean();
        sr_run_close(small_run(args, NULL, &r));
        resume(0, 10, &r);
        look(&k, 10, false);
        assert_int_equal(k.records, 3);
        for (int s = 0; s < 3; s++) assert_int_equal(k.spectrum_step[s], want[s]);
        free(k.checkpoint);
    }
}

/* A checkpoint after the last recorded row is not used. */
static void rows_fall_short(void **state) {
    (void)state;
    const char *const args[] = {"--epochs=9", "--max-steps=4", "--checkpoint-every=2", "--keep=9",
                                NULL};
    static train_config c;
    train_resume from;
    train_result r;
    sr_failure why = {0};
    clean();
    small_write_pairs(6);
    sr_run_close(small_run(args, NULL, &r));
    assert_int_equal(rename(path_of("small.h5"), path_of("small.short")), 0);
    assert_int_equal(link(path_of("small.short"), path_of("small.h5")), 0);
    resume(0, 6, &r);
    assert_int_equal(unlink(path_of("small.h5")), 0);
    assert_int_equal(rename(path_of("small.short"), path_of("small.h5")), 0);
    expect_files("6 4 2");
    check_ok(train_resume_find(path_of("small.h5"), "", &from, &c, &why), &why);
    assert_int_equal(from.updates, 4);
    assert_non_null(strstr(from.passed_over, "after step 6, but"));
    train_resume_free(&from);
}

static void copy_file(const char *from, const char *to) {
    file_bytes all = {0};
    sr_failure why = {0};
    check_ok(file_read_as(path_of(from), ACCEPT(KIND_HDF5), "a run file", &all, &why), &why);
    FILE *f = fopen(path_of(to), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(all.byte, 1, all.size, f), all.size);
    assert_int_equal(fclose(f), 0);
    file_free(&all);
}

/* Keeps the files that a kill after update 4 would leave. */
static bool keep_files_of_four(void *context) {
    if (((told *)context)->passes != 4) return false;
    copy_file("small.h5.part", "small-killed.h5.part");
    copy_file("small-0000004.ckpt", "small-killed-0000004.ckpt");
    return false;
}

/* The rows reach every checkpoint, even if they are rarely flushed. */
static void rows_reach_the_checkpoint(void **state) {
    (void)state;
    const char *const args[] = {"--epochs=2", "--checkpoint-every=2", "--flush-steps=1000",
                                "--flush-seconds=60", NULL};
    static train_config c;
    told t = {.passes = 0};
    const train_events events = {
        .context = &t, .progress = hear_progress, .stop = keep_files_of_four};
    train_resume from;
    train_result r;
    sr_failure why = {0};
    clean();
    small_write_pairs(6);
    small_parse(&c, args);
    check_ok(train_run(&c, "test", NULL, &events, &r, &why), &why);
    check_ok(train_resume_find(path_of("small-killed.h5"), "", &from, &c, &why), &why);
    assert_int_equal(from.updates, 4);
    assert_string_equal(from.passed_over, "");
    assert_false(from.complete);
    assert_non_null(strstr(from.parent, "small-killed.h5.part step 4"));
    t = (told){.passes = 0};
    run(&c, &from, &t, &r);
    assert_int_equal(r.updates, 6);
    assert_int_equal(t.passes, 2);
    assert_int_equal(access(path_of("small-killed.h5.part"), F_OK), -1);
    train_resume_free(&from);
}

/* After resuming, the file has no discrepancy from the earlier end. */
static void final_pass_of_the_end(void **state) {
    (void)state;
    const char *const args[] = {
        "--norm=bn", "--final-tid", "--max-steps=2", "--epochs=9", "--checkpoint-every=end", NULL};
    double value[SR_FINAL_COUNT][32], *final[SR_FINAL_COUNT];
    for (int i = 0; i < SR_FINAL_COUNT; i++) final[i] = value[i];
    for (int ends = 1; ends >= 0; ends--) {
        int64_t batches;
        train_result r;
        sr_failure why = {0};
        clean();
        small_write_pairs(6);
        sr_run_close(small_run(args, NULL, &r));
        resume(ends ? 0 : 2, 9, &r);
        sr_runfile *f = sr_run_open(path_of("small.h5"), &why);
        assert_non_null(f);
        check_ok(sr_run_final(f, &batches, final, &why), &why);
        assert_int_equal(batches > 0, ends);
        sr_run_close(f);
    }
}

/* Resuming does not need the archive of initial weights. */
static void weights_of_the_start(void **state) {
    (void)state;
    const char *const before[] = {"--max-steps=2", "--checkpoint-every=end", NULL};
    const char *const args[] = {"--epochs=3", "--weights", path_of("start.npz"),
                                "--checkpoint-every=end", NULL};
    static train_config c;
    told t = {.stop_after = 2};
    loaded_model from;
    train_result r;
    sr_failure why = {0};
    clean();
    small_write_pairs(6);
    sr_run_close(small_run(before, NULL, &r));
    check_ok(loaded_model_open(&from, path_of("small.h5"),
                               &(loaded_model_options){.data_dir = "", .threads = 1}, &why),
             &why);
    check_ok(weights_write_npz(from.model, path_of("start.npz"), true, &why), &why);
    loaded_model_close(&from);
    small_parse(&c, args);
    run(&c, NULL, &t, &r);
    assert_int_equal(unlink(path_of("start.npz")), 0);
    resume(0, 0, &r);
    assert_int_equal(r.updates, 9);
}

/* An unreadable .part beside a complete run file: the run file is used. */
static void part_that_is_none(void **state) {
    (void)state;
    const char *const args[] = {"--max-steps=2", "--checkpoint-every=2", NULL};
    static train_config c;
    train_resume from;
    train_result r;
    sr_failure why = {0};
    clean();
    small_write_pairs(6);
    sr_run_close(small_run(args, NULL, &r));
    check_write(path_of("small.h5.part"), "no run file");
    check_ok(train_resume_find(path_of("small.h5"), "", &from, &c, &why), &why);
    assert_string_equal(from.rows, path_of("small.h5"));
    assert_int_equal(from.updates, 2);
    train_resume_free(&from);
}

/* Reports output names that a run file must not set; looks for checkpoints at the caller's
 * prefix. */
static void outputs_of_the_file(void **state) {
    (void)state;
    char weights[600], batches[600], own[600];
    snprintf(weights, sizeof weights, "%s", path_of("w.npz"));
    snprintf(batches, sizeof batches, "%s", path_of("b.npz"));
    snprintf(own, sizeof own, "%s", path_of("small-own"));
    const char *const args[] = {"--max-steps=2",
                                "--dump-weights",
                                weights,
                                "--dump-batches",
                                batches,
                                "--checkpoint",
                                own,
                                "--checkpoint-every=2",
                                NULL};
    static train_config c;
    train_resume from;
    train_result r;
    char dumps[1300];
    sr_failure why = {0};
    clean();
    small_write_pairs(6);
    sr_run_close(small_run(args, NULL, &r));
    train_resume_find(path_of("small.h5"), "", &from, &c, &why);
    check_failure(&why, SR_USAGE, "there is no checkpoint");
    assert_non_null(strstr(why.hint, "small-own-*.ckpt: name that file"));
    train_resume_free(&from);
    why = (sr_failure){0};
    train_resume_find(path_of("small.h5"), path_of("small-other"), &from, &c, &why);
    check_failure(&why, SR_USAGE, "there is no checkpoint");
    assert_non_null(strstr(why.hint, "statrec train --checkpoint-every 500"));
    train_resume_free(&from);
    why = (sr_failure){0};
    check_ok(train_resume_find(path_of("small.h5"), path_of("small-own"), &from, &c, &why), &why);
    snprintf(dumps, sizeof dumps, "%s, %s", weights, batches);
    assert_string_equal(from.stored_dumps, dumps);
    assert_string_equal(from.stored_checkpoint, own);
    assert_string_equal(c.dump_weights, "");
    assert_string_equal(c.dump_batches, "");
    train_resume_free(&from);
}

/* A signal ends a run that writes no file: nothing is left, and nothing went wrong. */
static void no_file_at_all(void **state) {
    (void)state;
    static train_config c;
    told t = {.stop_after = 2};
    train_result r;
    clean();
    small_write_pairs(6);
    small_parse(&c, (const char *const[]){"--epochs=9", "--record=none", NULL});
    *c.output = 0;
    run(&c, NULL, &t, &r);
    assert_true(r.interrupted);
    assert_int_equal(r.updates, 2);
    expect_files("");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(part_that_is_none),
                                       cmocka_unit_test(outputs_of_the_file),
                                       cmocka_unit_test(no_file_at_all),
                                       cmocka_unit_test(intervals),
                                       cmocka_unit_test(seconds),
                                       cmocka_unit_test(replaced),
                                       cmocka_unit_test(best_is_kept),
                                       cmocka_unit_test(nowhere_to_write),
                                       cmocka_unit_test(goes_on_as_it_was),
                                       cmocka_unit_test(lineage),
                                       cmocka_unit_test(spectrum_of_the_end),
                                       cmocka_unit_test(rows_fall_short),
                                       cmocka_unit_test(rows_reach_the_checkpoint),
                                       cmocka_unit_test(final_pass_of_the_end),
                                       cmocka_unit_test(weights_of_the_start)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
