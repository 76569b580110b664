/* test_checkpoint_sizes.c -- checkpoints whose integers were changed: 0, 1, -1, +-1, powers of two,
 * extremes.
 *
 * For each model one checkpoint, for each integer in it (attributes, /progress) each value of the
 * grammar. A separate process checks and uses the file: no signal, one line for a failure. The
 * check names a size that the weights depend on. STATREC_TORTURE: total number of variations. */
#include <errno.h>
#include <hdf5.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "testing/check.h"
#include "testing/programs.h"
#include "train/loaded_model.h"
#include "train/trainer.h"

#define TEXT                                                                                       \
    "--data text --trainpref t --validpref v --data-dir . --testpref '' --tgt-len 4 "              \
    "--batch-size 2 --eval-batch-size 1 "
#define XL                                                                                         \
    "--data bytes --data-file bytes --data-dir . --mem-len 4 --eval-mem-len 4 --tgt-len 4 "        \
    "--eval-tgt-len 4 --batch-size 2 "
#define CONLL "--data conll --trainpref c --validpref c --testpref '' --data-dir . "
#define TREES                                                                                      \
    "--data trees --min-count 1 --trainpref d --validpref d --testpref '' --data-dir . "           \
    "--hidden-dim 4 "
#define SMALL "--embed-dim 8 --ffn-dim 8 "

static const char *const trained[] = {
    "--model resnet20 --data synth-images --limit 8 --batch-size 4",
    "--model resnet18 --preset mini --data synth-images --limit 8 --batch-size 4",
    "--model mnist_cnn --data synth-images --limit 8 --batch-size 4",
    "--model transformer --preset mini --data synth-pairs --limit 20 --max-tokens 64 --heads 2 "
    "--encoder-layers 1 --decoder-layers 1 " SMALL,
    "--model transformer --preset mini --data synth-pairs --limit 20 --max-tokens 64 --heads 2 "
    "--encoder-layers 1 --decoder-layers 1 --dictionary separate " SMALL,
    "--model transformer_classifier --preset sst5 --data labelled --trainpref l --validpref l "
    "--testpref '' --data-dir . --heads 2 --layers 1 " SMALL,
    "--model tener --preset conll2003-mini --heads 2 --layers 1 --embed-dim 8 " CONLL,
    "--model tensorized --preset ptb-mini --layers 1 --head-dim 4 " SMALL TEXT,
    "--model transformer_lm --preset ptb-mini --layers 1 --heads 2 " SMALL TEXT,
    "--model transformer_xl --preset enwik8-mini --layers 1 --heads 2 --head-dim 4 " SMALL XL,
    "--model mlp_parser --preset adanorm --embed-dim 4 " TREES,
};
enum { MODELS_TRAINED = sizeof trained / sizeof *trained };

/* Data that the weights have one row of for each; a change cannot fit. */
static const char *const exact[] = {"channels",   "classes",  "vocabulary", "target_vocabulary",
                                    "characters", "pos_tags", "arc_labels"};

static void write_data(void) {
    char *bytes = calloc(4001, 1);
    assert_non_null(bytes);
    for (int i = 0; i < 4000; i++) bytes[i] = (char)('a' + i % 7);
    program_write("bytes", bytes);
    program_write("t", "a b c a d b\nc a b\nd d a c b a\nb a\na b c d a b a c\n");
    program_write("v", "a b c d a b a c\n");
    program_write("l", "1 a b c\n2 b d\n1 a a b d\n2 d c\n");
    program_write("c", "Anna B-P\nsaw O\n\nBo B-P\nAx I-P\nran O\n\n");
    program_write("d", "a\tX\t2\tl\nb\tY\t0\tm\n\nc\tX\t0\tm\nb\tY\t1\tl\n\n");
    free(bytes);
}

static int train_all(void **state) {
    (void)state;
    write_data();
    for (int i = 0; i < MODELS_TRAINED; i++) {
        program_result r =
            program_run("statrec train %s --max-steps 1 --threads 1 --quiet --record none "
                        "--checkpoint m%d --checkpoint-every end",
                        trained[i], i);
        if (r.status != 0) fail_msg("%s: %s", trained[i], r.err);
        program_free(&r);
    }
    return chdir(check_temporary()); /* names of the data are relative */
}

/* -- the grammar */

static int64_t value_of(int k, int64_t original) {
    const int64_t fixed[] = {0,         1,         -1,        original - 1,  original + 1,
                             -original, INT64_MAX, INT64_MIN, INT64_MAX - 1, INT64_MIN + 1};
    const int count = (int)(sizeof fixed / sizeof *fixed);
    static const int power[] = {1, 2, 4, 8, 12, 16, 20, 24, 30, 31, 32, 33, 40, 48, 53, 62};
    if (k < count) return fixed[k];
    return (int64_t)1 << power[(k - count) % (int)(sizeof power / sizeof *power)];
}
enum { VALUES = 26, NAME = 160, PLACES_MOST = 4096 };

typedef struct place {
    int file;
    bool attribute;
    char name[NAME];
} place;
static place places[PLACES_MOST];
static int place_count, place_file;

static herr_t add_attribute(hid_t file, const char *name, const H5A_info_t *info, void *context) {
    (void)info, (void)context;
    hid_t a = H5Aopen(file, name, H5P_DEFAULT), type = H5Aget_type(a);
    if (H5Tget_class(type) == H5T_INTEGER) {
        assert_true(place_count < PLACES_MOST);
        place *p = &places[place_count++];
        *p = (place){place_file, true, ""};
        snprintf(p->name, NAME, "%s", name);
    }
    H5Tclose(type), H5Aclose(a);
    return 0;
}

static herr_t add_progress(hid_t group, const char *name, const H5L_info_t *info, void *context) {
    (void)info, (void)context;
    hid_t set = H5Dopen2(group, name, H5P_DEFAULT), type = H5Dget_type(set);
    if (H5Tget_class(type) == H5T_INTEGER && H5Tget_size(type) == 8) {
        assert_true(place_count < PLACES_MOST);
        place *p = &places[place_count++];
        *p = (place){place_file, false, ""};
        snprintf(p->name, NAME, "/progress/%s", name);
    }
    H5Tclose(type), H5Dclose(set);
    return 0;
}

static const char *checkpoint_of(int file) {
    char name[32];
    snprintf(name, sizeof name, "m%d-0000001.ckpt", file);
    return program_file(name);
}

static void find_places(void) {
    for (place_file = 0; place_file < MODELS_TRAINED; place_file++) {
        hid_t f = H5Fopen(checkpoint_of(place_file), H5F_ACC_RDONLY, H5P_DEFAULT);
        assert_true(f >= 0);
        hid_t g = H5Gopen2(f, "/progress", H5P_DEFAULT);
        assert_true(H5Aiterate2(f, H5_INDEX_NAME, H5_ITER_INC, NULL, add_attribute, NULL) >= 0);
        assert_true(H5Literate(g, H5_INDEX_NAME, H5_ITER_INC, NULL, add_progress, NULL) >= 0);
        H5Gclose(g), H5Fclose(f);
    }
    assert_true(place_count > 100);
}

/* Writes varied.ckpt; false if the value is the file's own. */
static bool vary(const place *p, int k, int64_t *value) {
    program_result r = program_run("cp %s varied.ckpt", checkpoint_of(p->file));
    assert_int_equal(r.status, 0);
    program_free(&r);
    hid_t f = H5Fopen(program_file("varied.ckpt"), H5F_ACC_RDWR, H5P_DEFAULT);
    hid_t at = p->attribute ? H5Aopen(f, p->name, H5P_DEFAULT) : H5Dopen2(f, p->name, H5P_DEFAULT);
    assert_true(f >= 0 && at >= 0);
    int64_t original;
    if (p->attribute)
        assert_true(H5Aread(at, H5T_NATIVE_INT64, &original) >= 0);
    else
        assert_true(H5Dread(at, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, &original) >= 0);
    *value = value_of(k, original);
    if (p->attribute)
        assert_true(H5Awrite(at, H5T_NATIVE_INT64, value) >= 0);
    else
        assert_true(H5Dwrite(at, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, value) >= 0);
    if (p->attribute)
        H5Aclose(at);
    else
        H5Dclose(at);
    H5Fclose(f);
    return *value != original;
}

/* -- one process, one file */

enum { REFUSED = 10, NO_REASON = 11 };

/* Whatever the programs do with a checkpoint: check, export, average, evaluate. */
static int use(const char *path) {
    sr_failure why = {0}, other = {0};
    bool weights_only;
    loaded_model *t = calloc(1, sizeof *t);
    loaded_model_text text = {0};
    const struct rlimit memory = {(rlim_t)2 << 30, (rlim_t)2 << 30}, seconds = {20, 20};
    if (!getenv("ASAN_OPTIONS")) setrlimit(RLIMIT_AS, &memory); /* it reserves terabytes */
    setrlimit(RLIMIT_CPU, &seconds);
    const sr_status checked = loaded_model_check(path, &weights_only, &why);
    if (checked != SR_OK && (!*why.text || strchr(why.text, '\n'))) return NO_REASON;
    sr_status status =
        loaded_model_open(t, path, &(loaded_model_options){.data_dir = "", .threads = 1}, &other);
    if (status == SR_OK) status = loaded_model_open_text(t, &text, &other);
    if (status == SR_OK) status = weights_write_npz(t->model, "varied.npz", true, &other);
    if (status == SR_OK) status = loaded_model_write(t, "out.ckpt", "varied", true, &other);
    if (status == SR_OK) status = loaded_model_recompute(t, 1, &other);
    if (status != SR_OK && (!*other.text || strchr(other.text, '\n'))) return NO_REASON;
    loaded_model_close_text(&text);
    loaded_model_close(t);
    free(t);
    return checked != SR_OK ? REFUSED : 0;
}

static int in_a_process(const char *path) {
    int status;
    fflush(stdout);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) _exit(use(path));
    while (waitpid(child, &status, 0) < 0) assert_int_equal(errno, EINTR);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static bool is_exact(const place *p) {
    for (size_t i = 0; i < sizeof exact / sizeof *exact; i++)
        if (p->attribute && !strcmp(p->name, exact[i])) return true;
    return false;
}

static void test_variations(void **state) {
    (void)state;
    find_places();
    for (int i = 0; i < MODELS_TRAINED; i++) /* they are whole as they are */
        if (in_a_process(checkpoint_of(i)) != 0) fail_msg("%s: not whole", trained[i]);
    const char *wanted = getenv("STATREC_TORTURE");
    const int64_t all = (int64_t)place_count * VALUES;
    int64_t count = wanted ? strtoll(wanted, NULL, 10) : 150, refused = 0, done = 0;
    printf("places: %s\n", wanted ? wanted : "150");
    rng r = rng_create(44);
    for (int64_t i = 0; i < count; i++) {
        /* sizes of the data in every second one */
        place *p;
        do p = &places[rng_below(&r, (uint64_t)place_count)];
        while (i % 2 == 0 && !is_exact(p));
        const int k = (int)rng_below(&r, VALUES);
        int64_t value;
        if (!vary(p, k, &value)) continue;
        const int end = in_a_process(program_file("varied.ckpt"));
        if (end != 0 && end != REFUSED)
            fail_msg("%s: %s = %lld: %d", trained[p->file], p->name, (long long)value, end);
        if (end == 0 && is_exact(p))
            fail_msg("%s: %s = %lld is whole", trained[p->file], p->name, (long long)value);
        if (end == 0 && !p->attribute && value < 0 && !strstr(p->name, "random_key") &&
            !strstr(p->name, "/valid_"))
            fail_msg("%s: %s = %lld is whole", trained[p->file], p->name, (long long)value);
        refused += end == REFUSED, done++;
    }
    printf("%lld variations of %lld possible, %lld refused, 0 crashed\n", (long long)done,
           (long long)all, (long long)refused);
}

/* statrec check on varied.ckpt: exit status 1 and one line with this part. */
static void expect_named(const char *part) {
    program_result r = program_run("statrec check varied.ckpt");
    const bool one_line = strchr(r.err, '\n') == r.err + strlen(r.err) - 1;
    if (r.status != 1 || !one_line || !strstr(r.err, part)) fail_msg("%d: %s", r.status, r.err);
    program_free(&r);
}

static void test_named(void **state) {
    (void)state;
    int64_t value;
    for (int i = 0; i < (int)(sizeof exact / sizeof *exact); i++) {
        place p = {3, true, ""};
        snprintf(p.name, NAME, "%s", exact[i]);
        if (!strcmp(exact[i], "channels")) p.file = 0;
        if (!strcmp(exact[i], "classes") || !strcmp(exact[i], "characters")) p.file = 6;
        if (!strcmp(exact[i], "pos_tags") || !strcmp(exact[i], "arc_labels")) p.file = 10;
        assert_true(vary(&p, 2, &value));
        expect_named(exact[i]);
    }
}

/* A dictionary without its last word: a word of the model would have no name. */
static void test_dictionary(void **state) {
    (void)state;
    program_result r = program_run("cp %s varied.ckpt", checkpoint_of(3));
    program_free(&r);
    static char text[1 << 16];
    const char *name = "/text/source_dictionary";
    hid_t f = H5Fopen(program_file("varied.ckpt"), H5F_ACC_RDWR, H5P_DEFAULT);
    hid_t set = H5Dopen2(f, name, H5P_DEFAULT), space = H5Dget_space(set);
    hsize_t size = (hsize_t)H5Sget_simple_extent_npoints(space);
    assert_in_range(size, 2, sizeof text);
    assert_true(H5Dread(set, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, text) >= 0);
    H5Dclose(set), H5Sclose(space);
    for (size--; text[size - 1] != '\n'; size--) continue;
    assert_true(H5Ldelete(f, name, H5P_DEFAULT) >= 0);
    space = H5Screate_simple(1, &size, NULL);
    set = H5Dcreate2(f, name, H5T_STD_U8LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Dwrite(set, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, text) >= 0);
    H5Dclose(set), H5Sclose(space), H5Fclose(f);
    expect_named("/text/source_dictionary has ");
}

int main(void) {
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_variations),
                                       cmocka_unit_test(test_named),
                                       cmocka_unit_test(test_dictionary)};
    return cmocka_run_group_tests(tests, train_all, NULL);
}
