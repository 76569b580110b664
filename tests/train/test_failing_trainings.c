/* test_failing_trainings.c -- a training of each model and task while an allocation or an HDF5 call
 * fails, at each call site in the source that is reached. It reports why, or its weights equal
 * those without the failure. Nothing stays allocated or open; no file stays half written. */
#define _GNU_SOURCE 1 /* RTLD_NEXT */
#include <stdio.h>

#include "base/npz/npz.h"
#include "statrec/runfile.h"
#include "testing/failing_deeds.h"
#include "train/train.h"

enum { WORDS = 160, TEXT = 4096 };

static train_config config;
static char digest[32]; /* weights without a failure */

static char *path_of(const char *name) {
    static char path[4][600];
    static int used;
    char *p = path[used++ % 4];
    snprintf(p, 600, "%s/%s", check_temporary(), name);
    return p;
}

/* -- trainings --------------------------------------------------------------------------------- */

/* Every word of `options` is one of the command line. The data are files of check_temporary(). */
static const struct training {
    const char *name, *options;
} trainings[] = {
    {"pairs",
     "--model transformer --preset mini --norm bn+ls --decoder-norm pn --heads 2 --placement peri "
     "--qk-norm ln --encoder-layers 1 --decoder-layers 1 --embed-dim 16 --ffn-dim 16 "
     "--data parallel --data-dir . --trainpref pairs --validpref pairs --testpref pairs "
     "--max-tokens 16 "
     "--max-steps 2 --bpe-merges 2 --observe batch --attention-stats --spectra-every 1 "
     "--activations-every 1 --parameter-norms-every 1 --theorems-every 1 --svd-every 1 "
     "--final-tid --final-batches 2 --pairs 3 --dump-weights weights.npz "
     "--dump-batches batches.npz --dump-steps 1 --bleu-every 1 --bleu-beam 2 --test "
     "--validate-train 1 --patience 3 --optimizer adam --clip-norm 1 "
     "--lr-scheduler inverse_sqrt --warmup-updates 2 --profile"},
    {"shards",
     "--model transformer --preset mini --norm pn --heads 2 --encoder-layers 1 --decoder-layers 1 "
     "--embed-dim 16 --ffn-dim 16 --data parallel --data-dir . --trainpref pairs --validpref pairs "
     "--max-tokens 16 --max-steps 2 --dictionary separate --shards 2 --record-shards "
     "--observe batch --activations-every 1 --attention-stats --final-tid --pairs 3 "
     "--update-freq 2 --lr-scheduler step --lr-steps 1,2 --lr-steps-in updates --label-smoothing "
     "0.1"},
    {"sentences",
     "--model transformer_classifier --preset rt --norm rbn --heads 2 --embed-dim 8 --ffn-dim 8 "
     "--data labelled --data-dir . --trainpref labelled --validpref labelled --batch-by sentences "
     "--batch-size 4 --max-steps 2 "
     "--freeze-stats 0.5 --optimizer adagrad --patience 1 --patience-metric valid_accuracy"},
    {"tags", "--model tener --preset conll2003-mini --norm unit --heads 2 --ffn-dim 8 "
             "--word-dim 8 --word-vectors vectors --data conll --data-dir . --trainpref tags "
             "--validpref tags "
             "--testpref tags --batch-size 4 --max-steps 2 --char-encoder transformer --test "
             "--theorems-every 1 --optimizer sgd --nesterov"},
    {"text",
     "--model tensorized --preset ptb-mini --norm un --placement pre --embed-dim 8 --head-dim 4 "
     "--ffn-dim 8 --data text --data-dir . --trainpref text --validpref text --batch-size 2 "
     "--tgt-len 4 "
     "--eval-batch-size 1 --max-steps 2 --adaptive-cutoffs 3 --precision bf16"},
    {"language model",
     "--model transformer_lm --preset ptb-mini --norm groupnorm --heads 2 --embed-dim 8 "
     "--ffn-dim 8 --data text --data-dir . --trainpref text --validpref text --batch-size 2 "
     "--tgt-len 4 "
     "--eval-batch-size 1 --max-steps 2 --svd-every 1 --optimizer adam-fairseq"},
    {"bytes",
     "--model transformer_xl --preset enwik8-mini --norm brn --heads 2 --head-dim 4 --embed-dim 8 "
     "--ffn-dim 8 --mem-len 4 --data bytes --data-dir . --data-file bytes --valid-share 0.3 "
     "--batch-size 1 --eval-batch-size 1 "
     "--tgt-len 4 --eval-tgt-len 2 --max-steps 2 --attention-stats --lr-scheduler cosine"},
    {"trees",
     "--model mlp_parser --norm mabn --hidden-dim 8 --embed-dim 4 --data trees --data-dir . "
     "--trainpref trees "
     "--validpref trees --testpref trees --batch-size 8 --max-steps 2 --test --observe batch "
     "--final-tid --layer-scale 2"},
    {"images",
     "--model mnist_cnn --norm repbn --conv-norms --data synth-images --limit 24 --batch-size 8 "
     "--max-steps 2 --augment --optimizer adamw --no-prefetch"},
    {"residual images", "--model resnet20 --norm instancenorm --data synth-images --limit 4 "
                        "--batch-size 2 --max-steps 1"},
};

static void write_file(const char *name, const char *text) {
    FILE *f = fopen(path_of(name), "w");
    assert_true(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static void write_data(void) {
    write_file("pairs.de", "s a b\nt a b\nu a b\nv a b\ns a c\n");
    write_file("pairs.en", "x t y\nx u y\nx v y\nx w y\nz t y\n");
    write_file("labelled", "1 a b c\n2 b d\n1 a a b d\n2 d c\n1 b b\n");
    write_file("tags", "Anna B-P\nsaw O\n\nBo B-P\nAx I-P\nran O\n\nAx B-P\nsat O\n\n");
    write_file("vectors", "saw 1 2 3 4 5 6 7 8\nran 8 7 6 5 4 3 2 1\nsat 0 0 1 0 0 1 0 1\n");
    write_file("text", "a b c a d b\nc a b\nd d a c b a\nb a\na b c d a b a c\n");
    write_file("bytes", "the cat sat on the mat and the dog sat on the cat again and again\n");
    write_file("trees", "a\tX\t2\tl\nb\tY\t0\tm\n\nc\tX\t0\tm\nb\tY\t1\tl\n\na\tX\t0\tm\n");
}

static void parse(const char *options) {
    char text[TEXT], *word[WORDS] = {"statrec", "train"};
    int count = 2, positional;
    sr_failure why = {0};
    snprintf(text, sizeof text, "%s --threads 1 --seed 3 --sync none --no-force -o run.h5",
             options);
    for (char *w = strtok(text, " "); w; w = strtok(NULL, " ")) {
        assert_true(count < WORDS);
        word[count++] = w;
    }
    check_ok(train_config_parse(&config, count, word, 2, &positional, &why), &why);
}

/* -- a training and its files ------------------------------------------------------------------ */

static const char *const written[] = {"run.h5", "weights.npz", "batches.npz"};

static void prepare(void) {
    for (int i = 0; i < 3; i++) {
        char part[64];
        snprintf(part, sizeof part, "%s.part", written[i]);
        remove(written[i]);
        remove(part);
    }
}

static sr_status train(sr_failure *why) {
    static const train_events silent;
    static train_result result;
    const sr_status status = train_run(&config, "test", NULL, &silent, &result, why);
    if (status == SR_OK && failing_at == 0) strcpy(digest, result.digest);
    if (status == SR_OK && strcmp(result.digest, digest) != 0)
        complain("training", "its weights are %s, not %s", result.digest, digest);
    return status;
}

/* A run file of a failed training opens, also the part that it could not finish. */
static void look_at_run(const char *after, const char *name, bool wanted) {
    sr_failure why = {0};
    if (access(name, F_OK) != 0) {
        if (wanted) complain(after, "no %s", name);
        return;
    }
    sr_runfile *f = sr_run_open(name, &why);
    if (!f) complain(after, "%s", why.text);
    sr_run_close(f);
}

static void look(const char *after, sr_status status) {
    sr_failure why = {0};
    look_at_run(after, "run.h5", status == SR_OK);
    if (status == SR_OK && access("run.h5.part", F_OK) == 0) complain(after, "a part is left");
    for (int i = 1; i < 3; i++) {
        if (access(written[i], F_OK) != 0) continue;
        npz_reader *r = npz_open(written[i], &why);
        if (!r) complain(after, "%s", why.text);
        npz_close(r);
    }
}

static void fail_places(const struct training *t, failing_kind kind) {
    const deed d = {t->name, train, look, prepare, "", true};
    parse(t->options);
    deed_fail_new(&d, kind);
    prepare();
}

static void test_allocations(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof trainings / sizeof *trainings; i++)
        fail_places(&trainings[i], FAILING_ALLOCATIONS);
}

/* The others come to no other call. */
static void test_hdf5(void **state) {
    (void)state;
    fail_places(&trainings[0], FAILING_HDF5);
}

static void test_system(void **state) {
    (void)state;
    fail_places(&trainings[0], FAILING_SYSTEM);
}

static int begin(void **state) {
    (void)state;
    assert_int_equal(chdir(check_temporary()), 0);
    write_data();
    return 0;
}

int main(void) {
    /* hundreds of files: in memory if possible */
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_allocations),
        cmocka_unit_test(test_hdf5),
        cmocka_unit_test(test_system),
    };
    return cmocka_run_group_tests(tests, begin, NULL);
}
