/* Every option of a run reaches its own field: all options at once, each with a distinct value. */
#include <stdio.h>
#include <string.h>

#include "testing/check.h"
#include "train/train.h"

enum { ARGS_MAX = 80 };

static train_config c;

static void parse(const char *const *args) {
    sr_failure why = {0};
    char *argv[ARGS_MAX] = {"statrec", "train", "-o", "x"};
    int argc = 4, positional;
    for (; args[argc - 4]; argc++) argv[argc] = (char *)args[argc - 4];
    check_ok(train_config_parse(&c, argc, argv, 2, &positional, &why), &why);
}

static void training(void **state) {
    (void)state;
    parse((const char *const[]){"--lr=0.21",
                                "--warmup-init-lr=0.22",
                                "--lr-steps=2",
                                "--lr-factor=0.23",
                                "--clip-norm=0.24",
                                "--clip-value=0.245",
                                "--patience=45",
                                "--patience-metric=valid_nll",
                                "--momentum=0.25",
                                "--nesterov",
                                "--weight-decay=0.29",
                                "--warmup-updates=31",
                                "--update-freq=32",
                                "--epochs=33",
                                "--max-steps=34",
                                "--validate-interval-updates=35",
                                "--validate-interval=49",
                                "--seed=36",
                                "--threads=37",
                                "--spectra-every=38",
                                "--activations-every=46",
                                "--parameter-norms-every=47",
                                "--theorems-every=50",
                                "--flush-steps=40",
                                "--flush-seconds=41",
                                "--vectors-every=43",
                                "--final-tid",
                                "--final-batches=44",
                                "--pairs=48",
                                NULL});
    check_equals(c.lr, 0.21);
    check_equals(c.warmup_init, 0.22);
    check_equals(c.lr_factor, 0.23);
    check_equals(c.clip_value, 0.245);
    assert_true(c.patience == 45);
    assert_string_equal(c.patience_metric, "valid_nll");
    check_equals(c.clip_norm, 0.24);
    check_equals(c.optim.momentum, 0.25);
    assert_true(c.optim.nesterov);
    check_equals(c.optim.weight_decay, 0.29);
    assert_true(c.warmup_updates == 31 && c.update_freq == 32 && c.epochs == 33);
    assert_true(c.max_steps == 34 && c.validate_updates == 35 && c.seed == 36 && c.threads == 37);
    assert_true(c.validate_epochs == 49);
    assert_true(c.activations_every == 46 && c.parameter_norms_every == 47);
    assert_true(c.theorems_every == 50);
    assert_true(c.spectra_every == 38 && c.flush_steps == 40);
    check_equals(c.flush_seconds, 41);
    assert_true(c.vectors_every == 43);
    assert_true(c.final_tid && c.final_batches == 44 && c.pairs == 48);
    assert_false(c.validate_batch || c.quiet || c.profile || c.force);
    assert_true(c.model.seed == 36 && c.data.seed == 36);
    parse((const char *const[]){"--model=transformer", "--adam-beta1=0.26", "--adam-beta2=0.27",
                                "--adam-eps=0.28", "--svd-every=39", "--size-limit=42",
                                "--lr-scheduler=cosine", "--lr=0.5", "--lr-min=0.235", NULL});
    check_equals(c.lr_min, 0.235);
    check_equals(c.optim.beta1, 0.26);
    check_equals(c.optim.beta2, 0.27);
    check_equals(c.optim.eps, 0.28);
    assert_true(c.svd_every == 39 && c.size_limit == 42);
}

static void model_and_data(void **state) {
    (void)state;
    parse((const char *const[]){"--model=transformer",
                                "--norm=bn",
                                "--decoder-norm=pn",
                                "--norm-eps=0.11",
                                "--norm-alpha=0.12",
                                "--dropout=0.13",
                                "--attention-dropout=0.14",
                                "--relu-dropout=0.15",
                                "--label-smoothing=0.16",
                                "--embed-dim=48",
                                "--ffn-dim=49",
                                "--heads=6",
                                "--encoder-layers=7",
                                "--decoder-layers=8",
                                "--layer-scale=9",
                                "--placement=pre",
                                "--count-padding",
                                "--data=parallel",
                                "--max-tokens=52",
                                "--vocab-size=53",
                                "--limit=54",
                                "--source=s",
                                "--target=t",
                                "--trainpref=a",
                                "--validpref=b",
                                "--testpref=c",
                                "--data-dir=d",
                                "--shuffle-sources",
                                "--smoothing-form=others",
                                NULL});
    const model_options *m = &c.model;
    const data_options *d = &c.data;
    assert_string_equal(m->norm, "bn");
    assert_string_equal(m->decoder_norm, "pn");
    assert_string_equal(m->placement, "pre");
    check_equals(m->norm_eps, 0.11);
    check_equals(m->norm_alpha, 0.12);
    check_equals(m->dropout, 0.13);
    check_equals(m->attention_dropout, 0.14);
    check_equals(m->relu_dropout, 0.15);
    check_equals(c.label_smoothing, 0.16);
    assert_true(c.smoothing == SMOOTHING_OTHERS);
    assert_true(m->embed_dim == 48 && m->ffn_dim == 49 && m->heads == 6);
    assert_true(m->encoder_layers == 7 && m->decoder_layers == 8 && m->layer_scale == 9);
    assert_true(m->count_padding && d->shuffle_sources && d->augment);
    assert_true(d->max_tokens == 52 && d->vocab_size == 53);
    assert_true(d->limit == 54);
    assert_string_equal(d->source, "s");
    assert_string_equal(d->target, "t");
    assert_string_equal(d->trainpref, "a");
    assert_string_equal(d->validpref, "b");
    assert_string_equal(d->testpref, "c");
    assert_string_equal(d->dir, "d");
    parse((const char *const[]){"--batch-size=51", "--no-augment", NULL});
    assert_true(d->batch_size == 51 && !d->augment);
}

static void language_models(void **state) {
    (void)state;
    const model_options *m = &c.model;
    const data_options *d = &c.data;
    parse((const char *const[]){
        "--model=tensorized", "--layers=11", "--lm-mask=released", "--head-dim=12",
        "--core-number=13", "--adaptive-cutoffs=14,15", "--embed-dim=16", "--ffn-dim=17",
        "--placement=pre", "--dropout=0.18", "--batch-size=19", "--eval-batch-size=20",
        "--tgt-len=21", "--no-eos-on-empty-lines", "--vocab-size=22", NULL});
    assert_true(m->layers == 11 && m->head_dim == 12 && m->core_number == 13);
    assert_string_equal(m->lm_mask, "released");
    assert_string_equal(m->adaptive_cutoffs, "14,15");
    assert_string_equal(m->placement, "pre");
    assert_true(m->embed_dim == 16 && m->ffn_dim == 17);
    check_equals(m->dropout, 0.18);
    assert_true(d->batch_size == 19 && d->eval_batch_size == 20 && d->window == 21);
    assert_true(!d->eos_of_empty && d->vocab_size == 22);
    parse((const char *const[]){"--model=transformer_lm", "--heads=6", "--attention-dropout=0.23",
                                "--relu-dropout=0.24", NULL});
    assert_true(m->heads == 6);
    check_equals(m->attention_dropout, 0.23);
    check_equals(m->relu_dropout, 0.24);
    assert_string_equal(m->lm_mask, "causal");
    assert_true(d->eos_of_empty);
}

/* Settings of each preset from its sources (docs/models.md 2.6, 11.3), below explicit options. */
static void recipes(void **state) {
    (void)state;
    static const struct {
        const char *preset;
        double lr, decay;
        int64_t warmup, tokens;
    } row[] = {{"mini", 0.002, 1e-4, 400, 2048},
               {"transformer", 0.001, 1e-4, 8000, 4096},
               {"transformer_iwslt_de_en", 0.0005, 1e-4, 8000, 4096},
               {"transformer_big", 0.003, 0, 8000, 4096}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        parse((const char *const[]){"--model", "transformer", "--preset", row[i].preset, NULL});
        check_equals(c.lr, row[i].lr);
        check_equals(c.optim.weight_decay, row[i].decay);
        assert_true(c.warmup_updates == row[i].warmup && c.data.max_tokens == row[i].tokens);
        check_equals(c.warmup_init, 1e-7);
        check_equals(c.optim.beta2, 0.98);
        check_equals(c.optim.eps, 1e-8);
        assert_string_equal(c.optimizer, "adam-fairseq");
        assert_string_equal(c.scheduler, "inverse_sqrt");
        parse((const char *const[]){"--lr", "7", "--model", "transformer", "--preset",
                                    row[i].preset, "--weight-decay", "0.5", NULL});
        check_equals(c.lr, 7);
        check_equals(c.optim.weight_decay, 0.5);
    }
    static const struct { /* docs/models.md 3.2, 11.3 */
        const char *preset, *train;
        double lr;
        int64_t sequences, window, steps;
    } lm[] = {{"ptb", "ptb.train.txt", 2.5e-4, 120, 32, 20000},
              {"wikitext-103", "wiki.train.tokens", 2.5e-4, 60, 80, 200000},
              {"ptb-mini", "ptb.train.txt", 1e-3, 64, 20, 5000},
              {"wikitext-2", "wiki.train.tokens", 1e-3, 40, 32, 4000}};
    for (size_t i = 0; i < sizeof lm / sizeof *lm; i++) {
        parse((const char *const[]){"--model", "tensorized", "--preset", lm[i].preset, NULL});
        check_equals(c.lr, lm[i].lr);
        check_equals(c.optim.weight_decay, 0);
        check_equals(c.clip_norm, 0.25);
        check_equals(c.optim.beta1, 0.9);
        check_equals(c.optim.beta2, 0.999);
        check_equals(c.optim.eps, 1e-8);
        assert_true(c.data.batch_size == lm[i].sequences && c.data.window == lm[i].window);
        assert_true(c.max_steps == lm[i].steps && c.warmup_updates == 0);
        assert_true(c.data.eval_batch_size == 10);
        assert_string_equal(c.data.name, "text");
        assert_string_equal(c.data.trainpref, lm[i].train);
        assert_string_equal(c.optimizer, "adam");
        assert_string_equal(c.scheduler, "cosine");
        assert_string_equal(c.model.norm, "ln");
        assert_string_equal(c.model.placement, "post");
    }
    parse((const char *const[]){"--model", "resnet20", NULL}); /* docs/models.md 1.1 */
    check_equals(c.lr, 0.1);
    check_equals(c.optim.momentum, 0.9);
    check_equals(c.optim.weight_decay, 1e-4);
    assert_true(c.warmup_updates == 0 && c.data.batch_size == 128 && c.data.augment);
    assert_string_equal(c.optimizer, "sgd");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(training), cmocka_unit_test(model_and_data),
                                       cmocka_unit_test(recipes),
                                       cmocka_unit_test(language_models)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
