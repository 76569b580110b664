/* test_torture_checkpoints.c -- checkpoints of a training that dies or fails at any system call. A
 * file with a checkpoint's name is complete, with the weights of that update, and stays until a
 * newer one exists. One that is truncated, or has a flipped bit, is rejected or has the same
 * weights. */
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "testing/check.h"
#include "testing/programs.h"
#include "torture.h"
#include "train/loaded_model.h"

enum { STEPS = 6, FLIPS = 40 /* for each place */ };

/* Keeps two; other parts make few calls. */
static const char train[] =
    "statrec train --model transformer --preset mini --embed-dim 4 --ffn-dim 4 --heads 1 "
    "--encoder-layers 1 --decoder-layers 1 --data synth-pairs --limit 60 --max-tokens 64 "
    "--threads 1 --quiet --max-steps 6 --checkpoint-every 1 --flush-steps 1000 --flush-seconds "
    "86400 "
    "--sync none --record none --norm bn";

static long calls;

static char *load(const char *path, size_t *size) {
    FILE *f = fopen(path, "rb");
    assert_true(f && fseek(f, 0, SEEK_END) == 0);
    *size = (size_t)ftell(f);
    char *bytes = malloc(*size + 1);
    rewind(f);
    assert_true(bytes && fread(bytes, 1, *size, f) == *size);
    fclose(f);
    return bytes;
}

static void store(const char *path, const char *bytes, size_t size) {
    FILE *f = fopen(path, "wb");
    assert_true(f && fwrite(bytes, 1, size, f) == size);
    assert_int_equal(fclose(f), 0);
}

/* The weights of a checkpoint, as bytes; NULL: rejected, in a line. */
static char *weights_of(const char *path, size_t *size) {
    static loaded_model t;
    const loaded_model_options o = {.data_dir = "", .threads = 1};
    const char *copy = program_file("weights.npz");
    checkpoint_card card = {0};
    sr_failure why = {0};
    t = (loaded_model){0};
    sr_status status = checkpoint_info_read(path, &card, &why);
    checkpoint_info_free(&card);
    if (status == SR_OK) status = loaded_model_open(&t, path, &o, &why);
    if (status == SR_OK) check_ok(weights_write_npz(t.model, copy, true, &why), &why);
    loaded_model_close(&t);
    if (status == SR_OK) return load(copy, size);
    if (strlen(why.text) < 10 || why.status == SR_MEMORY) fail_msg("%s: '%s'", path, why.text);
    return NULL;
}

/* -- the run that nothing happened to */

static char *reference[STEPS + 1];
static size_t reference_size[STEPS + 1];

static int measure(void **state) {
    (void)state;
    long ignored;
    program_result r =
        program_run("%s STATREC_FAULT_COUNT=$PWD/count %s -o run.h5", torture_faulty(), train);
    if (r.status != 0) fail_msg("exit status %d: %s", r.status, r.err);
    program_free(&r);
    torture_read_count(&calls, &ignored);
    r = program_run("mkdir all && %s --keep 100 -o all/run.h5", train);
    if (r.status != 0) fail_msg("exit status %d: %s", r.status, r.err);
    program_free(&r);
    for (int i = 1; i <= STEPS; i++) {
        char name[64];
        snprintf(name, sizeof name, "all/run-%07d.ckpt", i);
        reference[i] = weights_of(program_file(name), &reference_size[i]);
        assert_non_null(reference[i]);
        if (i > 1 && memcmp(reference[i], reference[i - 1], reference_size[i]) == 0)
            fail_msg("update %d changed nothing", i);
    }
    printf("%ld calls of the system\n", calls);
    return 0;
}

/* -- at every k-th call */

/* The update of the newest existing checkpoint, 0: none. Each must match its name. */
static int newest_left(const char *after) {
    glob_t found;
    char pattern[1200];
    int newest = 0;
    snprintf(pattern, sizeof pattern, "%s/run-*.ckpt", check_temporary());
    if (glob(pattern, 0, NULL, &found) != 0) return 0;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const char *path = found.gl_pathv[i];
        const int update = atoi(strrchr(path, '-') + 1);
        size_t size = 0;
        char *weights = weights_of(path, &size);
        if (!weights) fail_msg("%s: %s is no whole checkpoint", after, path);
        assert_true(update >= 1 && update <= STEPS);
        if (size != reference_size[update] || memcmp(weights, reference[update], size) != 0)
            fail_msg("%s: %s has other weights", after, path);
        free(weights);
        if (update > newest) newest = update;
    }
    globfree(&found);
    return newest;
}

/* Dies, or fails, at the k-th call; returns the newest remaining checkpoint, -1: it completed. */
static int end_at(const char *what, long k) {
    char after[64];
    snprintf(after, sizeof after, "%s at call %ld", what, k);
    program_result r = program_run("rm -f run*; %s STATREC_FAULT=%s:%ld %s -o run.h5",
                                   torture_faulty(), what, k, train);
    if (r.status > 2 && r.status != 128 + SIGKILL)
        fail_msg("%s: exit status %d: %s", after, r.status, r.err);
    if (r.status == 1 && !strchr(r.err, '\n')) fail_msg("%s: no reason", after);
    const bool whole = r.status == 0;
    program_free(&r);
    const int newest = newest_left(after);
    if (whole && newest != STEPS)
        fail_msg("%s: status 0, and checkpoint %d is the last", after, newest);
    return whole ? -1 : newest;
}

static void end_everywhere(const char *what) {
    const long n = torture_places() < calls ? torture_places() : calls;
    int before = 0;
    for (long k = 0; k < n; k++) {
        const int newest = end_at(what, torture_place(k, n, calls));
        if (newest < 0) continue;
        if (newest < before)
            fail_msg("%s: checkpoint %d was there, and now %d is the newest", what, before, newest);
        before = newest;
    }
    printf("%s: %ld places\n", what, n);
    assert_true(before > 0);
}

static void test_killed(void **state) {
    (void)state;
    end_everywhere("kill");
}

static void test_torn(void **state) {
    (void)state;
    end_everywhere("torn");
}

static void test_failing(void **state) {
    (void)state;
    end_everywhere("fail");
}

static void test_full_disk(void **state) {
    (void)state;
    end_everywhere("full");
}

/* -- flipped and cut */

/* Rejected, or the same. */
static bool is_refused(const char *what, size_t at) {
    size_t size = 0;
    char *weights = weights_of(program_file("spoilt.ckpt"), &size);
    if (weights && (size != reference_size[STEPS] || memcmp(weights, reference[STEPS], size) != 0))
        fail_msg("%s %zu: other weights", what, at);
    free(weights);
    return !weights;
}

static void test_flipped(void **state) {
    (void)state;
    size_t size;
    char *bytes = load(program_file("all/run-0000006.ckpt"), &size);
    const long flips = FLIPS * torture_places();
    long refused = 0;
    uint64_t random = 4711;
    for (long i = 0; i < flips; i++) {
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        const size_t at = (size_t)(random >> 20) % size;
        bytes[at] = (char)(bytes[at] ^ 1 << (random >> 60) % 8);
        store(program_file("spoilt.ckpt"), bytes, size);
        bytes[at] = (char)(bytes[at] ^ 1 << (random >> 60) % 8);
        refused += is_refused("a bit of byte", at);
    }
    printf("%ld of %ld flipped bits are refused, the others change nothing\n", refused, flips);
    assert_true(refused > flips / 20);
    free(bytes);
}

static void test_cut(void **state) {
    (void)state;
    size_t size;
    char *bytes = load(program_file("all/run-0000006.ckpt"), &size);
    const long cuts = 4 * torture_places();
    for (long i = 0; i < cuts; i++) {
        const size_t left = i == 0 ? size - 1 : size * (size_t)i / (size_t)cuts;
        store(program_file("spoilt.ckpt"), bytes, left);
        if (!is_refused("cut to", left)) fail_msg("cut to %zu of %zu bytes: taken", left, size);
    }
    free(bytes);
}

int main(void) {
    torture_begin();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_killed),  cmocka_unit_test(test_torn),
        cmocka_unit_test(test_failing), cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_flipped), cmocka_unit_test(test_cut),
    };
    return cmocka_run_group_tests(tests, measure, NULL);
}
